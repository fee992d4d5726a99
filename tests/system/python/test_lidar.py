"""Range images and scans of a moving LiDAR from Python: the same maps as voxelctl makes of the same files; refusals."""
import json
import math
import os
import subprocess
import sys

import numpy

import common
import voxeld
from common import BIN, ROOT, WORK, check, ctl, refused

random = numpy.random.default_rng(31)
print("seed 31")


def room(directions, at=(0, 0, 0)):
    """Ranges from a place in a box of 12 x 8 x 3 m round the origin."""
    with numpy.errstate(divide="ignore", invalid="ignore"):
        walls = (numpy.sign(directions) * numpy.array([6, 4, 1.5]) - numpy.asarray(at)) / directions
    return numpy.where(directions != 0, walls, numpy.inf).min(axis=-1)


def pose_7(matrix):
    return voxeld.pose_of(matrix)


def range_images(client):
    """A generated workload: rows of one elevation each, 0 where nothing came back."""
    path = os.path.join(WORK, "street.vxwl")
    subprocess.run([os.path.join(BIN, "genworkload"), "--scene", "street", "--frames", "3", "--output", path], check=True, capture_output=True)
    client.create_map("range_c", voxel_size_m=0.4)
    ctl("play", path, "--map", "range_c")
    with open(path, "rb") as file:
        data = file.read()
    kind, n, width, height = numpy.frombuffer(data, "<u4", 4, 8).tolist()
    lowest, highest = numpy.frombuffer(data, "<f4", 2, 24).astype(float).tolist()
    check(kind == 1 and n == 3, f"a workload of kind {kind}, {n} frames")
    frames = numpy.frombuffer(data, [("pose", "<f4", (3, 4)), ("image", "<f4", (height, width))], n, 40)
    elevation = highest - (highest - lowest) * numpy.arange(height) / (height - 1)
    client.create_map("range_python", voxel_size_m=0.4)
    acks = []
    with client.stream_range("range_python", elevation, no_return_value=0, on_ack=acks.append) as stream:
        for i, frame in enumerate(frames):
            stream.send(frame["image"], frame["pose"], stamp_ns=i * 100000000)
    check(client.info("range_python")["voxels"] > 10000 and acks[0].readings["no_return"] > 0, f"the map of range images: {acks[0]}")
    # The poses are float32 matrices, which C and numpy turn to quaternions with other roundings: equal but for a few voxels.
    one, other = (client.info(name)["voxels"] for name in ("range_c", "range_python"))
    check(abs(one - other) < 1e-4 * one, f"{one} voxels, {other} from Python")
    points = numpy.concatenate([frame["pose"][:, 3] + random.uniform((-20, -20, -2), (20, 20, 8), (3000, 3)) for frame in frames])
    a, b = client.query_points("range_c", points), client.query_points("range_python", points)
    check((a.state == b.state).mean() > 0.999 and len(set(a.state.tolist())) == 3, f"states of the two: {(a.state == b.state).mean()}")
    # Both ways round, and the step given: the same image.
    image = frames["image"][0]
    names = []
    for name, options, readings in (("there", {}, image), ("back", {"first_azimuth_rad": math.pi - 2 * math.pi / width, "azimuth_span_rad": -2 * math.pi},
                                                           image[:, ::-1]), ("steps", {"azimuth_step_rad": 2 * math.pi / width}, image)):
        client.create_map(name, voxel_size_m=0.4)
        with client.stream_range(name, elevation, no_return_value=0, **options) as stream:
            stream.send(readings, numpy.eye(4), stamp_ns=0)
        names.append(name)
    check(client.digest("there") == client.digest("steps"), "span and step differ")
    states = [client.query_points(name, points - points.mean(axis=0)).state for name in names]
    check((states[0] == states[1]).mean() > 0.999, f"columns from right to left: {(states[0] == states[1]).mean()}")


def no_return(client):
    """Infinity and 0 carve; NaN, and 0 where it is invalid, do not."""
    elevation = numpy.radians(numpy.linspace(20, -20, 41))
    for name, value, options, free in (("inf", numpy.inf, {}, True), ("zero", 0, {}, True), ("nan", numpy.nan, {}, False),
                                       ("invalid", 0, {"invalid_zero": True}, False), ("declared", 99.5, {"no_return_value": 99.5}, True)):
        client.create_map(name, voxel_size_m=0.2)
        acks = []
        with client.stream_range(name, elevation, first_azimuth_rad=-0.5, azimuth_span_rad=1.0, max_range_m=5, on_ack=acks.append, **options) as stream:
            stream.send(numpy.full((41, 120), value, dtype=numpy.float32), numpy.eye(4), stamp_ns=0)
        state = client.query_points(name, [[3, 0, 0]]).state[0]
        check((state == voxeld.FREE) == free and (acks[0].readings["no_return"] > 0) == free, f"{name}: {voxeld.Ack(*acks[0])}")
        check(client.query_points(name, [[-3, 0, 0]]).state[0] == voxeld.UNKNOWN, f"{name}: behind the sensor")


def path_of(ns):
    """Where the sensor is at a time: it drives, and turns by quarters with exact quaternions between whole 100 ms."""
    turn = {0: (0, 0, 0, 1), 1: (0, 0, 0.6, 0.8), 2: (0, 0, 0.8, 0.6)}
    step = ns // 50000000
    return (0.5 * step, 0.25 * step, 0, *turn[step % 3])


def moving_scans(client):
    """PCD scans with a time for each point, poses 20 times a second: as voxelctl de-skews them."""
    folder = os.path.join(WORK, "moving")
    os.mkdir(folder)
    stamps = [0, 100000000]
    poses = [i * 50000000 for i in range(5)]
    with open(os.path.join(folder, "poses.txt"), "w", encoding="ascii") as file:
        file.writelines(f"{ns / 1e9:.9f} " + " ".join(repr(float(v)) for v in path_of(ns)) + "\n" for ns in poses)
    with open(os.path.join(folder, "times.txt"), "w", encoding="ascii") as file:
        file.writelines(f"{ns / 1e9:.9f}\n" for ns in stamps)
    client.create_map("moving_python", voxel_size_m=0.2)
    client.create_map("rigid_python", voxel_size_m=0.2)
    with client.stream_points("moving_python") as stream, client.stream_points("rigid_python") as rigid:
        for i, stamp in enumerate(stamps):
            directions = random.normal(0, 1, (4000, 3))
            points = (directions * room(directions)[:, None]).astype(numpy.float32)
            times = numpy.sort(random.integers(1000000, 99000000, 4000)).astype(numpy.int32)
            rows = numpy.empty(4000, [("p", "<f4", 3), ("t", "<u4")])
            rows["p"], rows["t"] = points, times
            with open(os.path.join(folder, f"{i:06d}.pcd"), "wb") as file:
                file.write(b"VERSION .7\nFIELDS x y z t\nSIZE 4 4 4 4\nTYPE F F F U\nCOUNT 1 1 1 1\nWIDTH 4000\nHEIGHT 1\n"
                           b"VIEWPOINT 0 0 0 1 0 0 0\nPOINTS 4000\nDATA binary\n" + rows.tobytes())
            around = [ns for ns in poses if stamp <= ns <= stamp + 100000000]
            stream.send(points, [path_of(ns) for ns in around], stamp_ns=stamp, time_ns=times, pose_times_ns=[ns - stamp for ns in around])
            rigid.send(points, path_of(stamp), stamp_ns=stamp)
    client.create_map("moving_c", voxel_size_m=0.2)
    report = json.loads(ctl("--json", "play", folder, "--map", "moving_c", "--format", "pcd", "--deskew", "on"))
    check(report["frames_deskewed"] == 2, f"voxelctl: {report}")
    check(client.info("moving_python")["voxels"] > 1000, "the map is empty")
    check(client.digest("moving_python") == client.digest("moving_c"), "scans of a moving sensor make another map than voxelctl")
    check(client.digest("moving_python") != client.digest("rigid_python"), "the poses do not matter")


def moving_images(client):
    """A range image whose columns have times: a sensor that drives along a wall-less room stays sharp."""
    elevation = numpy.radians(numpy.linspace(15, -15, 24))
    azimuth = -math.pi + 2 * math.pi * numpy.arange(360) / 360
    directions = numpy.stack([numpy.cos(elevation)[:, None] * numpy.cos(azimuth), numpy.cos(elevation)[:, None] * numpy.sin(azimuth),
                              numpy.sin(elevation)[:, None] * numpy.ones(360)], axis=-1)
    times = (numpy.arange(360) * 250000).astype(numpy.int64)
    places = numpy.stack([times / 90e6, numpy.zeros(360), numpy.zeros(360)], axis=-1)  # a metre on the way
    image = numpy.stack([room(directions[:, u], places[u]) for u in range(360)], axis=1).astype(numpy.float32)
    ends = numpy.tile(numpy.eye(4), (2, 1, 1))
    ends[1, 0, 3] = 1
    error = []
    for name, sent in (("sharp", {"pose": ends, "pose_times_ns": [0, 90000000], "time_ns": times}), ("blurred", {"pose": numpy.eye(4)})):
        client.create_map(name, voxel_size_m=0.1)
        with client.stream_range(name, elevation) as stream:
            stream.send(image, stamp_ns=0, **sent)
        vertices = client.mesh(name).vertices
        wall = vertices[(vertices[:, 0] > 5) & (abs(vertices[:, 1]) < 3)]
        error.append(numpy.abs(wall[:, 0] - 6).mean() if len(wall) else numpy.inf)
    check(error[0] < 0.05 and error[0] < 0.3 * error[1], f"the wall at x = 6 is off by {error} m")


def greys(client):
    """Intensities are greys of a map with colour; rings are checked."""
    client.create_map("grey", voxel_size_m=0.1, colour=True)
    directions = random.normal(0, 1, (20000, 3))
    points = directions * room(directions)[:, None]
    with client.stream_points("grey", intensity_white=200) as stream:
        stream.send(points, numpy.eye(4), intensity=numpy.full(20000, 100.0), ring=numpy.arange(20000) % 64)
    tint = client.query_tints("grey", points[:500])
    seen = tint.weight > 0
    check(seen.mean() > 0.5 and (abs(tint.colour[seen].astype(int) - 128) <= 1).all(), f"greys: {tint.colour[seen][:3]}")


def refusals(client):
    client.create_map("refused", voxel_size_m=0.2)
    before = client.digest("refused")
    refused("BadInput", "radians, not degrees", client.stream_range, "refused", [-15, 0, 15])
    refused("BadInput", "must rise, or fall", client.stream_range, "refused", [0, 0.1, 0.1])
    refused("BadInput", r"\[rows\]", client.stream_range, "refused", [])
    refused("BadInput", "finite", client.stream_range, "refused", [0, numpy.nan])
    refused("BadInput", "azimuth_span_rad", client.stream_range, "refused", [0, 0.1], azimuth_span_rad="all")
    stream = client.stream_range("refused", [0.1, 0, -0.1])
    image, eye = numpy.full((3, 90), 4, dtype=numpy.float32), numpy.eye(4)
    refused("BadInput", r"\[3\]\[columns\], not \[4, 90\]", stream.send, numpy.zeros((4, 90)), eye)
    refused("BadInput", "float .metres., not uint16", stream.send, image.astype(numpy.uint16), eye)
    refused("BadInput", r"time_ns has the shape \[3\], not \[90\]", stream.send, image, eye, time_ns=numpy.zeros(3, int))
    refused("BadInput", "need pose_times_ns", stream.send, image, [eye, eye])
    refused("BadInput", "pose_times_ns must rise", stream.send, image, [eye, eye], pose_times_ns=[5, 5], time_ns=numpy.zeros(90, int))
    refused("BadInput", r"pose_times_ns has the shape \[3\]", stream.send, image, [eye, eye], pose_times_ns=[0, 1, 2])
    refused("BadInput", "several poses need time_ns", stream.send, image, [eye, eye], pose_times_ns=[0, 1])
    refused("BadInput", "whole nanoseconds", stream.send, image, [eye, eye], pose_times_ns=[0.0, 0.1], time_ns=numpy.zeros(90, int))
    refused("BadInput", "time_ns holds float64 with fractions", stream.send, image, [eye, eye], pose_times_ns=[0, 9], time_ns=numpy.full(90, 0.05))
    refused("BadInput", "time_ns lies in", stream.send, image, [eye, eye], pose_times_ns=[0, 9], time_ns=numpy.full(90, 10**12))
    refused("BadInput", "1 to 64 poses, got 65", stream.send, image, [eye] * 65, pose_times_ns=range(65), time_ns=numpy.zeros(90, int))
    refused("BadInput", r"pose\[1\] is no rigid motion", stream.send, image, [eye, 2 * eye], pose_times_ns=[0, 9], time_ns=numpy.zeros(90, int))
    refused("BadInput", "a pose is 4 x 4", stream.send, image, numpy.eye(3))
    refused("BadInput", "intensity has the shape", stream.send, image, eye, intensity=numpy.zeros(3))
    stream.send(image, [eye, eye], stamp_ns=0, pose_times_ns=[0, 10], time_ns=numpy.full(90, 20))
    refused("INVALID_ARGUMENT", "time", stream.flush)
    stream.send(image, [eye, eye], stamp_ns=0, pose_times_ns=[0, 3 * 10**9], time_ns=numpy.full(90, 20))
    refused("INVALID_ARGUMENT", "", stream.flush)
    stream.send(image, eye, stamp_ns=0, ring=numpy.zeros((3, 90)))
    refused("INVALID_ARGUMENT", "no channel 2", stream.flush)
    stream.close()
    points = client.stream_points("refused")
    refused("BadInput", "stamp_ns is an int, nanoseconds", points.send, numpy.ones((4, 3)), eye, stamp_ns=1.7e9)
    refused("BadInput", "stamp_ns: ", points.send, numpy.ones((4, 3)), eye, stamp_ns=2**70)
    points.send(numpy.zeros((0, 3)), eye, stamp_ns=numpy.int64(1))
    points.flush()
    check(points.warnings == {"EMPTY": 1} and points.n_integrated == 1, f"a scan without points: {points.warnings}")
    refused("BadInput", r"shape \[n\]\[3\]", points.send, numpy.zeros((4, 4)), eye)
    refused("BadInput", "object|not numbers|different lengths", points.send, [[1, 2, 3], [1]], eye)
    refused("BadInput", "label lies in", points.send, numpy.ones((4, 3)), eye, label=[1, 2, 3, 300])
    refused("BadInput", "ring lies in", points.send, numpy.ones((4, 3)), eye, ring=[1, 2, 3, -1])
    refused("RESOURCE_EXHAUSTED", "thin it out", points.send, numpy.ones((6000000, 3)), eye)
    points.close()
    depth = client.stream_depth("refused", 50, 50, 31.5, 23.5)
    refused("BadInput", "a depth image has one pose", depth.send, numpy.ones((48, 64)), [eye, eye], pose_times_ns=[0, 1], time_ns=numpy.zeros(64, int))
    refused("BadInput", "readings holds", depth.send, numpy.full((48, 64), "far"), eye)
    refused("BadInput", "k1 k2 p1 p2 k3 at most", client.stream_depth, "refused", 50, 50, 31.5, 23.5, distortion=range(8))
    depth.close()
    check(client.digest("refused") == before, "a refused frame changed the map")
    for _ in range(80):  # a stream that was closed, or that nobody holds, takes nothing of the daemon any more
        client.stream_points("refused").close()
        client.stream_points("refused").send(numpy.ones((9, 3)), eye, stamp_ns=0)
    refused("UNAVAILABLE", "the stream was closed", depth.send, numpy.ones((4, 4)), eye)


def latest(client):
    """A live sensor: frames that came too late are superseded, and said so."""
    client.create_map("live", voxel_size_m=0.05)
    acks = []
    image = numpy.full((240, 320), 2.0, dtype=numpy.float32)
    with client.stream_depth("live", 260, 260, 159.5, 119.5, latest=True, on_ack=acks.append) as stream:
        for i in range(40):
            stream.send(image, numpy.eye(4), stamp_ns=i)
    check(stream.n_integrated + stream.n_superseded == len(acks) == 40 and stream.n_integrated == client.info("live")["frames"], "latest: counts")
    check(sum(a.superseded for a in acks) == stream.n_superseded and not acks[-1].superseded, f"latest: {stream.n_superseded} superseded")


def examples(client):
    example = [sys.executable, os.path.join(ROOT, "clients/python/examples/stream_lidar.py")]
    plan = [sys.executable, os.path.join(ROOT, "clients/python/examples/plan.py")]

    def run(program, *options):
        return subprocess.run([*program, *options], capture_output=True, text=True, cwd=WORK, check=False)

    for options in (("--map", "ex"), ("--map", "ex_range", "--range-images"), ("--map", "ex_moving", "--moving")):
        done = run(example, *options)
        check(done.returncode == 0 and "scans are in map" in done.stdout, f"stream_lidar {options}: {done.stdout} {done.stderr}")
    done = run(plan, "ex_range", "-4,-1,0", "1,-2,0")
    check(done.returncode == 0 and "the way is free of surfaces; clearance more than 0.8" in done.stdout, f"plan: {done.stdout} {done.stderr}")
    for how, code in (("free", 0), ("report", 1)):  # past the pillar, into what it hides
        done = run(plan, "ex_range", "--unknown", how, "-3,0,0", "3,0,0", "5,-2,0")
        check(done.returncode == code and "it is tightest 5.9" in done.stdout, f"plan, unknown {how}: {done.stdout} {done.stderr}")
    done = run(plan, "ex_range", "0,0,0", "0,9,0")
    check(done.returncode == 1 and "touches" in done.stdout, f"plan through a wall: {done.stdout} {done.stderr}")
    done = run(plan, "nosuch", "0,0,0", "1,0,0")
    check(done.returncode != 0 and "no map" in done.stderr, f"plan in no map: {done.stderr}")
    # A KITTI sequence, as voxelctl reads it.
    folder = os.path.join(WORK, "kitti")
    os.makedirs(os.path.join(folder, "velodyne"))
    with open(os.path.join(folder, "poses.txt"), "w", encoding="ascii") as file:
        for i in range(3):
            directions = random.normal(0, 1, (3000, 3))
            at = (0.5 * i, 0, 0)
            points = numpy.concatenate([directions * room(directions, at)[:, None], random.uniform(0, 1, (3000, 1))], axis=1)
            points.astype("<f4").tofile(os.path.join(folder, "velodyne", f"{i:06d}.bin"))
            # left camera: x right, y down, z forward; Tr below takes LiDAR axes there
            file.write(f"1 0 0 0 0 1 0 0 0 0 1 {at[0]}\n")
    with open(os.path.join(folder, "calib.txt"), "w", encoding="ascii") as file:
        file.write("Tr: 0 -1 0 0 0 0 -1 0 1 0 0 0\n")
    done = run(example, folder, "--map", "kitti_python", "--voxel-size", "0.2")
    check(done.returncode == 0, f"stream_lidar of a folder: {done.stdout} {done.stderr}")
    client.create_map("kitti_c", voxel_size_m=0.2)
    ctl("play", folder, "--map", "kitti_c", "--format", "kitti")
    check(client.digest("kitti_c") == client.digest("kitti_python"), "a KITTI folder makes another map than voxelctl")


def main(client):
    range_images(client)
    no_return(client)
    moving_scans(client)
    moving_images(client)
    greys(client)
    refusals(client)
    latest(client)
    examples(client)


common.run(main, "LiDAR from Python")
