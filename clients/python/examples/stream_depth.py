#!/usr/bin/env python3
"""Maps depth images with a voxeld daemon, then asks for distances and writes the mesh.

    stream_depth.py                                     synthetic frames of a wall with a box in front of it
    stream_depth.py FOLDER --intrinsics FX,FY,CX,CY     frame-*.depth.png with frame-*.pose.txt (4 x 4), or *.png with poses.txt
                                                        (a line each: x y z qx qy qz qw, or 12 or 16 numbers of a matrix)
Needs the module voxeld (PYTHONPATH=build/python) and, for a folder, Pillow (python3-pil).
"""
import argparse
import glob
import os
import sys

import numpy

import voxeld


def synthetic():
    """Twenty images of a wall 2 m ahead of a camera that moves sideways, with a box 0.5 m in front of the wall."""
    v, u = numpy.mgrid[0:240, 0:320]
    for i in range(20):
        x = 0.05 * i
        depth = numpy.full((240, 320), 2.0, dtype=numpy.float32)
        right = (u - 159.5) / 260 * 1.5 + x
        down = (v - 119.5) / 260 * 1.5
        depth[(abs(right - 0.5) < 0.2) & (abs(down) < 0.2)] = 1.5
        yield depth, (x, 0, 0, 0, 0, 0, 1)


def poses_of(folder, names):
    own = [name.replace(".depth.png", ".pose.txt") for name in names]
    if all(name.endswith(".depth.png") for name in names) and os.path.exists(own[0]):
        return [numpy.loadtxt(name).reshape(-1, 4)[:3] for name in own]
    rows = numpy.loadtxt(os.path.join(folder, "poses.txt"), ndmin=2)
    if len(rows) < len(names):
        sys.exit(f"{folder}/poses.txt has {len(rows)} lines for {len(names)} images")
    return [row if len(row) == 7 else row.reshape(-1, 4)[:3] for row in rows]


def images(folder):
    from PIL import Image

    names = sorted(glob.glob(os.path.join(folder, "*.depth.png"))) or sorted(glob.glob(os.path.join(folder, "*.png")))
    if not names:
        sys.exit(f"there is no PNG in {folder}" if os.path.isdir(folder) else f"there is no folder {folder}")
    for name, pose in zip(names, poses_of(folder, names)):
        yield numpy.asarray(Image.open(name)).astype(numpy.uint16), pose


def numbers(text, names):
    values = text.split(",")
    if len(values) != names.count(",") + 1:
        raise argparse.ArgumentTypeError(f"is {names}, not '{text}'")
    try:
        return [float(value) for value in values]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"is {names}, not '{text}'") from error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--map", default="python", help="default python; frames are added to one that is there")
    parser.add_argument("--voxel-size", type=float, default=0.02, help="of a new map, metres; default 0.02")
    parser.add_argument("--intrinsics", type=lambda v: numbers(v, "FX,FY,CX,CY"), help="FX,FY,CX,CY of the folder's camera, pixels")
    parser.add_argument("--units", type=float, default=1000, help="of a PNG's depths, a metre; default 1000")
    parser.add_argument("--query", type=lambda v: numbers(v, "X,Y,Z"), default="0.5,0,1.4",
                        help="X,Y,Z of a point to ask about; --query=X,Y,Z when it begins with a minus")
    parser.add_argument("--mesh", help="PLY file to write")
    o = parser.parse_args()
    if bool(o.folder) != bool(o.intrinsics):
        parser.error("a folder needs --intrinsics FX,FY,CX,CY of its camera" if o.folder else "--intrinsics is of a folder's camera")
    fx, fy, cx, cy = o.intrinsics or (260, 260, 159.5, 119.5)
    frames = images(o.folder) if o.folder else synthetic()
    with voxeld.Client() as client:
        if o.map not in client.maps():
            client.create_map(o.map, voxel_size_m=o.voxel_size)
        else:
            print(f"map {o.map} is there already: the frames are added to it")
        with client.stream_depth(o.map, fx=fx, fy=fy, cx=cx, cy=cy, units_per_m=o.units) as stream:
            for i, (depth, pose) in enumerate(frames):
                stream.send(depth, pose, stamp_ns=i * 33333333)
        info = client.info(o.map)
        print(f"{stream.n_integrated} frames are in map {o.map}: {info['voxels']} voxels, epoch {info['epoch']}")
        answer = client.query_points(o.map, [o.query], unknown_distance=True)
        state = ("unknown", "free", "occupied")[answer.state[0]]
        if numpy.isnan(answer.distance_m[0]):
            print(f"{o.query} is {state}, no surface within {answer.max_distance_m:g} m")
        else:
            print(f"{o.query} is {state}, {answer.distance_m[0]:.3f} m from a surface, gradient {answer.gradient[0].round(2)}")
        if o.mesh:
            client.mesh(o.map).save(o.mesh)
            print(f"{o.mesh} is written")


if __name__ == "__main__":
    try:
        main()
    except (voxeld.Error, ValueError, OSError) as error:
        sys.exit(f"stream_depth: {error}")
