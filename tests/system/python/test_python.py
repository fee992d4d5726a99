"""The Python client against a real daemon: the same map as voxelctl makes, answers, refusals, credits, a daemon that dies."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import warnings

import numpy

import common
import voxeld
from common import ROOT, WORK as work, check, ctl, refused, start_daemon


def checksums():
    check(voxeld.crc32c(b"123456789") == 0xE3069283, "CRC32C of 123456789")
    check(voxeld.crc32c(b"") == 0 and voxeld.crc32c(bytes(32)) == 0x8A9136AA, "CRC32C of zeros")
    random = numpy.random.default_rng(5)
    for n in (1, 2, 255, 256, 4097, 100003, 614400):
        data = random.integers(0, 256, n, dtype=numpy.uint8).tobytes()
        half = n // 3
        joined = voxeld._wire._crc_shift(numpy.array([voxeld.crc32c(data[:half])], dtype=numpy.uint32), voxeld._wire._crc_advance(n - half))
        check(voxeld.crc32c(data) == int(joined[0]) ^ voxeld.crc32c(data[half:]) or half == 0, f"CRC32C of {n} bytes")


def golden():
    """Today's messages as C packs them are read, and packed again to the same bytes."""
    n = 0
    with open(os.path.join(ROOT, "tests/golden/messages.hex"), encoding="ascii") as file:
        for line in file:
            name, data = line.split()[0].split("/")[0], bytes.fromhex(line.split()[1])
            if data[:4] != b"VXP1":
                continue  # the body of STATS_REPLY
            header = voxeld._wire.Header.FromString(data[16:])
            check(header.WhichOneof("body") == name and voxeld._wire.TYPES[name] == int.from_bytes(data[6:8], "little"), f"type of {line[:40]}")
            check(header.SerializeToString(deterministic=True) == data[16:], f"bytes of {line[:40]}")
            n += 1
    check(n > 30, f"{n} golden messages")


# Poses whose quaternions have exact length 1, so that Python and C send the same numbers.
POSES = [(0.1 * i, -0.05 * i, 0.25, *q) for i, q in enumerate([(0, 0, 0, 1), (0.5, 0.5, 0.5, 0.5), (0, 0.6, 0, 0.8), (0, 0, 1, 0)])]


def depth_images():
    v, u = numpy.mgrid[0:48, 0:64]
    for i, pose in enumerate(POSES):
        image = (1500 + 8 * u + 5 * v + 40 * i).astype(numpy.uint16)
        image[10:14, 20:30] = 900
        image[0, :] = 0
        yield image, pose


def same_map_as_voxelctl(client):
    """The same frames through voxelctl and through Python: the same digest."""
    folder = os.path.join(work, "depth_set")
    os.makedirs(os.path.join(folder, "depth"))
    client.create_map("depth_c", voxel_size_m=0.05)
    client.create_map("depth_python", voxel_size_m=0.05)
    acks = []
    with client.stream_depth("depth_python", 50, 50, 31.5, 23.5, on_ack=acks.append) as stream:
        for i, (image, pose) in enumerate(depth_images()):
            with open(os.path.join(folder, "depth", f"{i}.pgm"), "wb") as file:
                file.write(b"P5\n64 48\n65535\n" + image.astype(">u2").tobytes())
            stream.send(image, pose, stamp_ns=i * 1000000000 // 30)
    with open(os.path.join(folder, "pose.txt"), "w", encoding="ascii") as file:
        file.writelines(" ".join(repr(float(v)) for v in pose) + "\n" for pose in POSES)
    ctl("play", folder, "--map", "depth_c", "--format", "slambook", "--intrinsics", "50,50,31.5,23.5")
    check(client.digest("depth_c") == client.digest("depth_python"), "depth images make another map than voxelctl")
    check(len(acks) == len(POSES) and acks[0].readings["zero"] == 64 and acks[-1].epoch == stream.epoch, f"acknowledgements {acks}")

    folder = os.path.join(work, "points_set")
    os.makedirs(folder)
    client.create_map("points_c", voxel_size_m=0.1)
    client.create_map("points_python", voxel_size_m=0.1)
    random = numpy.random.default_rng(7)
    with client.stream_points("points_python") as stream:
        for i, pose in enumerate(POSES):
            points = random.uniform(-10, 10, (3000, 3)).astype(numpy.float32)
            points.tofile(os.path.join(folder, f"{i}.xyz32"))
            stream.send(points, pose, stamp_ns=i * 100000000)
    shutil.copy(os.path.join(work, "depth_set", "pose.txt"), os.path.join(folder, "poses.txt"))
    ctl("play", folder, "--map", "points_c", "--format", "xyz32")
    check(client.info("points_python")["voxels"] > 1000, "the point map is empty")
    check(client.digest("points_c") == client.digest("points_python"), "points make another map than voxelctl")
    # A matrix is the same pose as its quaternion.
    for pose in POSES:
        x, y, z, w = pose[3:]
        matrix = numpy.eye(4)
        matrix[:3, 3] = pose[:3]
        matrix[:3, :3] = [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
        back = numpy.array(voxeld.pose_of(matrix))
        check(min(abs(back - pose).max(), abs(back[3:] + numpy.array(pose[3:])).max()) < 1e-12, f"pose_of {pose}: {back}")


def same_answers_as_voxelctl(client):
    """A batch that travels in parts, each way; every row as voxelctl gives it."""
    random = numpy.random.default_rng(11)
    points = random.uniform(-3, 3, (150000, 3)).round(3)
    path, out = os.path.join(work, "in.csv"), os.path.join(work, "out.csv")
    numpy.savetxt(path, points, fmt="%.3f", delimiter=",", header="x,y,z", comments="")
    answer = client.query_points("depth_python", points, unknown_distance=True)
    ctl("query", "points", "depth_python", "-i", path, "-o", out, "--status", "--unknown-distance")
    rows = numpy.genfromtxt(out, delimiter=",", skip_header=1, usecols=(3, 4, 5, 6, 9))
    states = numpy.genfromtxt(out, delimiter=",", skip_header=1, usecols=7, dtype=str)
    named = numpy.array(["unknown", "free", "occupied"])[answer.state]
    check(len(rows) == len(points) and (states == named).all(), "states differ from voxelctl's")
    check(len(set(named)) == 3, f"only {set(named)} were asked for")
    check(numpy.allclose(rows[:, 0], answer.distance_m, atol=1e-6, equal_nan=True), "distances differ from voxelctl's")
    check(numpy.allclose(rows[:, 1:4], answer.gradient, atol=1e-6), "gradients differ from voxelctl's")
    check(numpy.allclose(rows[:, 4], answer.unknown_distance_m, atol=1e-6, equal_nan=True), "distances to the unknown differ")
    empty = client.query_points("depth_python", numpy.zeros((0, 3)))
    check(len(empty.state) == 0 and empty.epoch == len(POSES), f"an empty batch: {empty}")
    odd = client.query_points("depth_python", [[numpy.nan, 0, 0], [1e30, 0, 0], [1e300, 0, 0]])
    check((odd.state == voxeld.UNKNOWN).all() and (odd.status & voxeld.IS_OUTSIDE).all(), f"points that are nowhere: {odd}")
    # Far from the world's origin, and as finely.
    client.create_map("far", voxel_size_m=0.05, origin_m=(5e5, 4e6, 0))
    with client.stream_depth("far", 50, 50, 31.5, 23.5) as stream:
        for i in range(3):
            stream.send(numpy.full((48, 64), 2, dtype=numpy.float32), (5e5, 4e6, 0, 0, 0, 0, 1), stamp_ns=i)
    far = client.query_points("far", [[5e5 + 0.1, 4e6 + 0.2, 1.75]])
    check(abs(far.distance_m[0] - 0.25) < 0.03 and abs(far.gradient[0][2] + 1) < 0.05, f"far away: {far}")
    check(far.epoch == 3 and far.newest_stamp_ns == 2 and far.max_distance_m == far.map.max_distance_m > 0, f"far away: {far.map}")
    # A point that is nowhere takes no digits from the others.
    odd = client.query_points("far", [[5e5 + 0.1, 4e6 + 0.2, 1.75], [1e30, 0, 0], [numpy.nan, 0, 0]])
    check(odd.distance_m[0] == far.distance_m[0], f"far away beside nowhere: {odd}")


def weightings(client):
    """What a reading at 1.5 m weighs, by the map."""
    refused("BadInput", "weighting is one of default, inverse_square, constant; not 'even'", client.create_map, "x", voxel_size_m=1, weighting="even")
    header = voxeld._wire.Header()
    header.map_create.map = b"x"
    header.map_create.params.voxel_size_m = 1
    header.map_create.params.weighting = 3
    refused("INVALID_ARGUMENT", "params.weighting", client._call, "admin", header, "map_info_reply")
    weighting = [client.create_map(f"w{i}", 0.05, **given)["weighting"] for i, given in enumerate(({}, {"weighting": "constant"}))]
    for i in range(2):
        with client.stream_depth(f"w{i}", 50, 50, 31.5, 23.5) as stream:
            stream.send(numpy.full((48, 64), 1500, dtype=numpy.uint16), numpy.eye(4))
        weighting.append(json.loads(ctl("--json", "explain", f"w{i}", "0", "0", "1.5"))["weight"])
        client.delete_map(f"w{i}")
    check(weighting == ["inverse_square", "constant", 7, 1], f"weighting: {weighting}")


def options(client):
    """Each option of a stream reaches the daemon: the map comes out as it should."""
    v, u = numpy.mgrid[0:48, 0:64]
    image = numpy.where(u < 32, 1.0, 3.0).astype(numpy.float32)
    image[:, 32] = 2.0  # flying pixels, between the near half and the far one
    image[0, :] = 7.5
    voxels = {}
    for name, given in {"plain": {}, "bent": {"distortion": (0.1, 0.01)}, "jump": {"edge_jump": 0.1}, "uncarved": {"no_carving": True},
                        "near": {"max_range_m": 2.5}, "far": {"min_range_m": 1.5}, "none": {"no_return_value": 7.5}}.items():
        acks = []
        client.create_map("o_" + name, voxel_size_m=0.05)
        with client.stream_depth("o_" + name, 50, 50, 31.5, 23.5, on_ack=acks.append, **given) as stream:
            stream.send(image, numpy.eye(4), stamp_ns=0)
        voxels[name] = (acks[0].readings, client.query_points("o_" + name, [[-0.2, 0, 0.7], [0.01, 0, 2.0]]).state.tolist(), client.digest("o_" + name))
        client.delete_map("o_" + name)
    check(voxels["plain"][0]["used"] == 48 * 64 and voxels["plain"][1][0] == voxeld.FREE, f"plain: {voxels['plain']}")
    check(len({digest for _, _, digest in voxels.values()}) == len(voxels), f"options that change nothing: {voxels}")
    check(voxels["jump"][0]["zero"] >= 47, f"edge_jump: {voxels['jump'][0]}")
    check(voxels["uncarved"][1][0] == voxeld.UNKNOWN, f"no_carving: {voxels['uncarved']}")
    check(voxels["near"][0]["no_return"] == 47 * 31 + 64 and voxels["far"][0]["too_near"] == 47 * 32, f"ranges: {voxels['near'][0]} {voxels['far'][0]}")
    check(voxels["none"][0]["no_return"] == 64, f"no_return_value: {voxels['none'][0]}")


def refusals(client):
    refused("NOT_FOUND", "map", client.info, "nosuch")
    refused("NOT_FOUND", "map", client.stream_depth, "nosuch", 50, 50, 31.5, 23.5)
    refused("ALREADY_EXISTS", "map", client.create_map, "far", voxel_size_m=0.1)
    refused("INVALID_ARGUMENT", "voxel_size_m", client.create_map, "x", voxel_size_m=-1)
    refused("STALE_EPOCH", "epoch", client.query_points, "far", [[0, 0, 0]], min_epoch=10**9)
    refused("BadInput", "shape", client.query_points, "far", [[0, 0]])
    for name in (7, None, b"far", "far\ud800"):
        refused("BadInput", "the name of a map (is a str|holds what is no character)", client.query_points, name, [[0, 0, 0]])
        refused("BadInput", "the name of a map", client.create_map, name, voxel_size_m=1)
        refused("BadInput", "the name of a map", client.stream_depth, name, 50, 50, 31.5, 23.5)
    image = numpy.full((48, 64), 2, dtype=numpy.float32)
    stream = client.stream_depth("far", 50, 50, 31.5, 23.5)
    before = client.digest("far")
    refused("BadInput", "shape", stream.send, image[0], numpy.eye(4))
    refused("BadInput", "int64", stream.send, image.astype(numpy.int64), numpy.eye(4))
    refused("BadInput", "no rotation", stream.send, image, numpy.ones((4, 4)))
    refused("BadInput", "mask has the shape", stream.send, image, numpy.eye(4), mask=numpy.ones((3, 3)))
    stream.send(image, (0, 0, 0, 0, 0, 0, 2), stamp_ns=10)
    stream.send(image, (0, numpy.nan, 0, 0, 0, 0, 1), stamp_ns=10)
    refused("INVALID_ARGUMENT", "2 frames were refused", stream.flush)
    stream.flush()  # raised once
    check(len(stream.refused) == 2 and stream.n_integrated == 0, f"refusals {stream.refused}")
    check(client.digest("far") == before, "a refused frame changed the map")
    stream.send(image, (5e5, 4e6, 0, 0, 0, 0, 1), stamp_ns=11)
    stream.flush()
    check(stream.n_integrated == 1, "a good frame behind refused ones")
    stream.close()
    # Colours and labels, a mask and weights that leave nothing, a weight that is none.
    client.create_map("tinted", voxel_size_m=0.05, colour=True, label=True)
    acks = []
    with client.stream_depth("tinted", 50, 50, 31.5, 23.5, on_ack=acks.append) as stream:
        stream.send(image, numpy.eye(4), 0, colour=numpy.full((48, 64, 3), 9), label=numpy.full((48, 64), 4))
        stream.send(image, numpy.eye(4), 1, mask=numpy.zeros((48, 64)))
        stream.send(image, numpy.eye(4), 2, weight=numpy.zeros((48, 64)))
        stream.send(image, numpy.eye(4), 3, weight=numpy.full((48, 64), 0.5))
        stream.send(image, numpy.eye(4), 4, weight=numpy.full((48, 64), -0.5))
        refused("INVALID_ARGUMENT", "a weight is 0 .not used. to", stream.flush)
    check(acks[0].warnings == [] and acks[1].readings["zero"] == acks[2].readings["zero"] == 48 * 64, f"channels: {acks}")
    check(stream.warnings == {"EMPTY": 2}, f"warnings: {stream.warnings}")
    # Millimetres as floats, and colours that nobody keeps, are told.
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with client.stream_depth("far", 50, 50, 31.5, 23.5) as stream:
            for i in range(3):
                stream.send(1000 * image, (5e5, 4e6, 0, 0, 0, 0, 1), 100 + i, colour=numpy.zeros((48, 64, 3)))
    check(stream.warnings == {"ALL_BEYOND": 3, "UNUSED_CHANNEL": 3} and len(told) == 2, f"{stream.warnings}, {[str(w.message) for w in told]}")
    check(acks[3].readings["used"] == 48 * 64 and len(acks) == 4, f"weights: {acks}")
    check('"label":4' in ctl("--json", "explain", "tinted", "0", "0", "2"), "the label is not in the map")


def backpressure(client):
    """Many more frames than the daemon gives credit for: none is refused, none is lost."""
    client.create_map("many", voxel_size_m=0.1)
    image = numpy.full((120, 160), 1500, dtype=numpy.uint16)
    with client.stream_depth("many", 130, 130, 79.5, 59.5) as one, client.stream_depth("many", 130, 130, 79.5, 59.5) as two:
        for i in range(100):
            one.send(image, (0.01 * i, 0, 0, 0, 0, 0, 1), stamp_ns=i)
            two.send(image, (0, 0.01 * i, 0, 0, 0, 0, 1), stamp_ns=i)
            if i == 50:  # a question between frames
                client.query_points("many", [[0, 0, 1]])
    check(one.n_integrated == two.n_integrated == 100 and not one.refused, f"{one.n_integrated} and {two.n_integrated} frames of 100")
    check(client.info("many")["frames"] == 200, "frames of the map")


def examples(client):
    """README's lines work as they stand, and so does the example."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        section = file.read().split("### From Python", 1)[1].split("\n### ", 1)[0]
    lines = [line[4:] for line in section.splitlines() if line.startswith("    ") or not line]
    code = "\n".join(lines[next(i for i, line in enumerate(lines) if line.startswith("import")):])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=work, check=False)
    check(done.returncode == 0 and re.match(r"\[0\.(09|10).*\n\[0\.0[45].*\[nan\] 0\.2", done.stdout), f"README's lines: {done.stdout} {done.stderr}")
    check(os.path.exists(os.path.join(work, "py.ply")), "README's lines leave no mesh")
    example = [sys.executable, os.path.join(ROOT, "clients/python/examples/stream_depth.py")]
    done = subprocess.run([*example, "--mesh", "ex.ply"], capture_output=True, text=True, cwd=work, check=False)
    check(done.returncode == 0 and "is free, 0.1" in done.stdout and "ex.ply is written" in done.stdout, f"the example: {done.stdout} {done.stderr}")
    try:
        from PIL import Image
    except ImportError:
        print("SKIP: a folder of PNGs (python3-pil is not installed)")
        return
    folder = os.path.join(work, "png")
    os.mkdir(folder)
    for i, (image, pose) in enumerate(depth_images()):
        Image.fromarray(image).save(os.path.join(folder, f"{i:04d}.png"))
    shutil.copy(os.path.join(work, "depth_set", "pose.txt"), os.path.join(folder, "poses.txt"))
    options = ["--intrinsics", "50,50,31.5,23.5", "--map", "png", "--voxel-size", "0.05"]
    done = subprocess.run([*example, folder, *options], capture_output=True, text=True, cwd=work, check=False)
    check(done.returncode == 0, f"the example with a folder: {done.stderr}")
    check(client.digest("png") == client.digest("depth_python"), "a folder of PNGs makes another map")
    for wrong, words in (([folder], "needs --intrinsics"), ([folder, "--intrinsics", "50,50"], "is FX,FY,CX,CY, not '50,50'"),
                         ([*options, "--query", "near"], "is X,Y,Z, not 'near'"), (options, "of a folder's camera")):
        done = subprocess.run([*example, *wrong], capture_output=True, text=True, cwd=work, check=False)
        check(done.returncode == 2 and words in done.stderr, f"{wrong}: {done.returncode} {done.stderr}")
    check(client.digest("png") == client.digest("depth_python"), "wrong options changed a map")


def daemon_dies(client):
    image = numpy.full((48, 64), 2, dtype=numpy.float32)
    stream = client.stream_depth("far", 50, 50, 31.5, 23.5)
    common.daemon.send_signal(signal.SIGKILL)
    common.daemon.wait()
    try:
        for i in range(1000):
            stream.send(image, (5e5, 4e6, 0, 0, 0, 0, 1), stamp_ns=100 + i)
        check(False, "a thousand frames for a dead daemon")
    except voxeld.Lost:
        check(True, "")
    refused("UNAVAILABLE", "no daemon answers|went away before it answered", client.info, "far")  # it may be asked before its end is noticed
    refused("UNAVAILABLE", "no daemon answers", client.info, "far")
    start_daemon().close()
    check(client.maps() == [], "the new daemon has maps")
    client.create_map("again", voxel_size_m=0.05)
    with client.stream_depth("again", 50, 50, 31.5, 23.5) as stream:
        stream.send(image, numpy.eye(4))
    check(client.info("again")["frames"] == 1, "a stream after the daemon was started again")
    with voxeld.Client() as other:
        other.ping()
    refused("UNAVAILABLE", "this client was closed", other.maps)


def main(client):
    checksums()
    golden()
    same_map_as_voxelctl(client)
    same_answers_as_voxelctl(client)
    weightings(client)
    options(client)
    refusals(client)
    backpressure(client)
    examples(client)
    daemon_dies(client)


common.run(main, "python client")
