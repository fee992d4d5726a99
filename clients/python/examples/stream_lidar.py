#!/usr/bin/env python3
"""Maps LiDAR scans with a voxeld daemon, then says what a robot's surroundings look like.

    stream_lidar.py                      synthetic scans in a hall with a pillar, as points
    stream_lidar.py --range-images       the same as range images: rows of one elevation, 0 where nothing came back
    stream_lidar.py --moving             the same by a sensor that drives while it scans: a time for each point
    stream_lidar.py FOLDER               a KITTI odometry sequence: velodyne/*.bin (float32 x y z reflectance), poses.txt and
                                         calib.txt; without calib.txt poses.txt holds the LiDAR's own poses (12 or 16 numbers,
                                         or x y z qx qy qz qw a line)
Needs the package voxeld (PYTHONPATH=build/python) and numpy.
"""
import argparse
import glob
import math
import os
import sys

import numpy

import voxeld

ROWS, COLUMNS, SCAN_NS = 32, 720, 100_000_000
SPEED_M_S = 2.0


def hall(at, directions):
    """Ranges from places [..][3] along unit directions [..][3]: a hall of 16 x 10 x 3 m with a pillar at (3, 1); its gate, at
    y < 1 of the wall x = 8, is open."""
    with numpy.errstate(divide="ignore", invalid="ignore"):
        walls = (numpy.sign(directions) * numpy.array([8, 5, 1.5]) - at) / directions
        ranges = numpy.nanmin(numpy.where(directions == 0, numpy.inf, walls), axis=-1)
        hit = at + ranges[..., None] * directions
        ranges = numpy.where((hit[..., 0] > 7.99) & (abs(hit[..., 1]) < 1), numpy.inf, ranges)
        across = at[..., :2] - (3, 1)  # the pillar: a circle of 0.4 m seen from above
        a = (directions[..., :2] ** 2).sum(axis=-1)
        b = (across * directions[..., :2]).sum(axis=-1)
        root = b * b - a * ((across**2).sum(axis=-1) - 0.16)
        pillar = numpy.where((root > 0) & (a > 1e-9), (-b - numpy.sqrt(numpy.maximum(root, 0))) / a, numpy.inf)
    return numpy.minimum(ranges, numpy.where(pillar > 0, pillar, numpy.inf))


def synthetic(moving):
    """Scans [rows][columns] with their directions, the place of the sensor at begin and end, and times of the columns, in ns."""
    elevation = numpy.radians(numpy.linspace(25, -25, ROWS))
    azimuth = -math.pi + 2 * math.pi * numpy.arange(COLUMNS) / COLUMNS
    flat = numpy.cos(elevation)[:, None]
    directions = numpy.stack([flat * numpy.cos(azimuth), flat * numpy.sin(azimuth), numpy.broadcast_to(numpy.sin(elevation)[:, None], (ROWS, COLUMNS))], axis=-1)
    times = (numpy.arange(COLUMNS) * SCAN_NS // COLUMNS).astype(numpy.int32)
    for i in range(20):
        begin = numpy.array([-6 + SPEED_M_S * i * SCAN_NS / 1e9, -0.5, 0])
        way = numpy.zeros((COLUMNS, 3))
        way[:, 0] = SPEED_M_S * times / 1e9 if moving else 0
        end = begin + (SPEED_M_S * SCAN_NS / 1e9 if moving else 0, 0, 0)
        yield elevation, directions, hall(begin + way, directions), begin, end, times


def pose_at(place):
    return (*place.tolist(), 0, 0, 0, 1)


def send_synthetic(client, o):
    elevation = next(synthetic(False))[0]
    # An infinite reading saw nothing up to max_range_m; points cannot say that, they leave such readings out.
    stream = client.stream_range(o.map, elevation, max_range_m=o.max_range) if o.range_images else client.stream_points(o.map, max_range_m=o.max_range)
    with stream:
        for i, (_, directions, ranges, begin, end, times) in enumerate(synthetic(o.moving)):
            readings, moments = ranges.astype(numpy.float32), times
            if not o.range_images:
                seen = numpy.isfinite(ranges)
                readings, moments = (directions * numpy.where(seen, ranges, 0)[..., None])[seen], numpy.broadcast_to(times, seen.shape)[seen]
            if o.moving:
                stream.send(readings, [pose_at(begin), pose_at(end)], stamp_ns=i * SCAN_NS, pose_times_ns=[0, SCAN_NS], time_ns=moments)
            else:
                stream.send(readings, pose_at(begin), stamp_ns=i * SCAN_NS)
    return stream


def matrix(row):
    out = numpy.eye(4)
    out[:3] = numpy.asarray(row, dtype=float)[:12].reshape(3, 4)
    return out


def kitti_poses(folder, n):
    """map_T_lidar of each scan."""
    rows = numpy.loadtxt(os.path.join(folder, "poses.txt"), ndmin=2)
    if len(rows) < n:
        sys.exit(f"{folder}/poses.txt has {len(rows)} lines for {n} scans")
    if rows.shape[1] == 7:
        return list(rows[:n])
    poses = [matrix(row) for row in rows[:n]]
    calib = os.path.join(folder, "calib.txt")
    if not os.path.exists(calib):
        return poses
    with open(calib, encoding="ascii") as file:
        lines = [line.split(":") for line in file if line.startswith(("Tr:", "Tr_velo_to_cam:"))]
    if not lines:
        sys.exit(f"{calib} has no line 'Tr:', LiDAR to camera")
    camera_from_lidar = matrix(lines[0][1].split())
    return [numpy.linalg.inv(camera_from_lidar) @ pose @ camera_from_lidar for pose in poses]


def send_folder(client, o):
    names = sorted(glob.glob(os.path.join(o.folder, "velodyne", "*.bin"))) or sorted(glob.glob(os.path.join(o.folder, "*.bin")))
    if not names:
        sys.exit(f"there is no .bin in {o.folder}/velodyne or {o.folder}")
    with client.stream_points(o.map, max_range_m=o.max_range) as stream:
        for i, (name, pose) in enumerate(zip(names, kitti_poses(o.folder, len(names)))):
            points = numpy.fromfile(name, dtype="<f4")
            if points.size % 4:
                sys.exit(f"{name} holds {points.size} numbers: not four for each point")
            stream.send(points.reshape(-1, 4)[:, :3], pose, stamp_ns=i * SCAN_NS)
    return stream


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--map", default="lidar")
    parser.add_argument("--voxel-size", type=float, default=0.1)
    parser.add_argument("--max-range", type=float, default=60)
    parser.add_argument("--range-images", action="store_true")
    parser.add_argument("--moving", action="store_true")
    parser.add_argument("--mesh", help="PLY file to write")
    o = parser.parse_args()
    with voxeld.Client() as client:
        if o.map not in client.maps():
            client.create_map(o.map, voxel_size_m=o.voxel_size)
        stream = send_folder(client, o) if o.folder else send_synthetic(client, o)
        info = client.info(o.map)
        print(f"{stream.n_integrated} scans are in map {o.map}: {info['voxels']} voxels, epoch {info['epoch']}")
        z = 0.0 if not o.folder else float(numpy.mean(info["active_m"], axis=0)[2])
        cells = client.query_slice(o.map, z - 0.3, z + 0.3, cell_m=4 * info["voxel_size_m"], min_epoch=stream.epoch)
        grid = cells.occupancy()
        print(f"at z = {z:.1f} m, of {grid.size} cells {(grid == 0).sum()} are free, {(grid > 0).sum()} occupied, {(grid < 0).sum()} unknown")
        if o.mesh:
            client.mesh(o.map, min_epoch=stream.epoch).save(o.mesh)
            print(f"{o.mesh} is written")


if __name__ == "__main__":
    try:
        main()
    except (voxeld.Error, ValueError, OSError) as error:
        sys.exit(f"stream_lidar: {error}")
