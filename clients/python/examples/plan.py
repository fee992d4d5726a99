#!/usr/bin/env python3
"""Asks a map how much room a robot has along a path, and where it is tightest.

    plan.py MAP X,Y,Z X,Y,Z ...                  a ball of --radius along straight lines between the way-points
    plan.py MAP --waypoints FILE                 a way-point a line: x y z, or x y z qx qy qz qw
Exit code: 0 the way is free, 1 it is not (unknown space blocks, too,
unless --unknown free).  Needs the package voxeld (PYTHONPATH=build/python); stream_depth.py and stream_lidar.py make maps.
"""
import argparse
import re
import sys

import numpy

import voxeld


def arguments():
    """The options, and the way-points: words of three numbers, which argparse would take for options if they begin with a minus."""
    number = r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?"
    triples = [word for word in sys.argv[1:] if re.fullmatch(",".join([number] * 3), word)]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("map")
    parser.add_argument("--waypoints", help="file of way-points")
    parser.add_argument("--radius", type=float, default=0.2, help="of the robot, m; at most the map's R")
    parser.add_argument("--unknown", choices=("report", "free", "occupied"), default="report", help="how unknown space counts")
    o = parser.parse_args([word for word in sys.argv[1:] if word not in triples])
    if o.waypoints:
        return o, numpy.loadtxt(o.waypoints, ndmin=2)
    return o, numpy.array([[float(v) for v in word.split(",")] for word in triples]).reshape(-1, 3)


def between(waypoints, step_m):
    """Positions every step_m along the way, and how far along each is."""
    places = waypoints[:, :3]
    legs = numpy.linalg.norm(numpy.diff(places, axis=0), axis=1)
    along = numpy.concatenate([[0], numpy.cumsum(legs)])
    at = numpy.linspace(0, along[-1], max(2, int(numpy.ceil(along[-1] / step_m)) + 1))
    return numpy.stack([numpy.interp(at, along, places[:, k]) for k in range(3)], axis=-1), at


def main():
    o, waypoints = arguments()
    if len(waypoints) < 2:
        sys.exit("plan: a path has two way-points or more")
    with voxeld.Client() as client:
        # The way as a whole: swept, so nothing between two samples is missed.
        way = client.query_paths(o.map, o.radius, waypoints, unknown=o.unknown)
        reach = way.max_distance_m
        print(f"map {o.map}, epoch {way.epoch}: distances up to {reach:g} m")
        if way.sphere[0] >= 0:
            leg, part = divmod(float(way.contact[0]), 1)
            print(f"the robot touches something behind way-point {leg:.0f}, {100 * part:.0f} % of the way to the next")
        else:
            room = f"{way.clearance_m[0]:.3f} m" if numpy.isfinite(way.clearance_m[0]) else f"more than {reach - o.radius:.3f} m"
            print(f"the way is free of surfaces; clearance {room}")
        if numpy.isfinite(way.unknown[0]):
            print(f"unknown space is met at way-point {way.unknown[0]:.2f}")
        # Distances along it: where it is tightest.
        places, at = between(waypoints, step_m=client.info(o.map)["voxel_size_m"])
        along = client.query_points(o.map, places, min_epoch=way.epoch)
        if numpy.isfinite(along.distance_m).any():
            k = int(numpy.nanargmin(along.distance_m))
            x, y, z = places[k].tolist()
            print(f"it is tightest {at[k]:.2f} m along, at {x:.2f} {y:.2f} {z:.2f}: {along.distance_m[k]:.3f} m to the nearest surface, "
                  f"which lies towards {' '.join(f'{-v:.2f}' for v in along.gradient[k].tolist())}")
        print(f"of {len(places)} places on the way {(along.state == voxeld.FREE).sum()} are free, {(along.state == voxeld.UNKNOWN).sum()} unknown")
    return int(way.blocked("free" if o.unknown == "free" else "occupied")[0])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (voxeld.Error, ValueError, OSError) as error:
        sys.exit(f"plan: {error}")
