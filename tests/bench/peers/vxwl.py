"""Frames of a workload file (the format is in tests/support/genworkload.c), and the report of a timed peer."""
import json
import struct
import sys
import time

import numpy


class Workload:
    """kind: 0 depth camera, 1 LiDAR; numbers: fx fy cx cy, or lowest and highest elevation in rad."""

    def __init__(self, path, n_frames):
        with open(path, "rb") as file:
            head = file.read(40)
            if head[:8] != b"VXWL0001":
                sys.exit(f"{path}: not a workload")
            self.kind, self.n, self.width, self.height = struct.unpack_from("<4I", head, 8)
            self.numbers = struct.unpack_from("<4f", head, 24)
            self.n = min(self.n, n_frames)
            size = 12 + self.width * self.height
            data = numpy.frombuffer(file.read(self.n * size * 4), dtype="<f4").reshape(self.n, size)
        self.poses = [numpy.vstack([row[:12].reshape(3, 4), [0, 0, 0, 1]]).astype(numpy.float64) for row in data]
        self.images = [row[12:].reshape(self.height, self.width).copy() for row in data]

    def points(self, i):
        """The returns of LiDAR frame i in world coordinates."""
        azimuth = -numpy.pi + 2 * numpy.pi * numpy.arange(self.width) / self.width
        elevation = numpy.linspace(self.numbers[1], self.numbers[0], self.height)[:, None]
        rays = numpy.stack(
            numpy.broadcast_arrays(
                numpy.cos(elevation) * numpy.cos(azimuth), numpy.cos(elevation) * numpy.sin(azimuth), numpy.sin(elevation)
            ),
            axis=-1,
        )
        local = (rays * self.images[i][..., None])[self.images[i] > 0]
        return local @ self.poses[i][:3, :3].T + self.poses[i][:3, 3]


def report(peer, passes):
    """passes: lists of functions, one a frame; the last pass is reported.  Prints one JSON line."""
    for one in passes:
        wall, cpu = [], []
        for frame in one:
            start, start_cpu = time.perf_counter(), time.process_time()
            frame()
            wall.append((time.perf_counter() - start) * 1e3)
            cpu.append((time.process_time() - start_cpu) * 1e3)
    facts = {"bench": "peer", "peer": peer, "frames": len(wall)}
    facts["median_ms"] = round(float(numpy.median(wall)), 4)
    facts["mean_ms"] = round(float(numpy.mean(wall)), 4)
    facts["mean_cpu_ms"] = round(float(numpy.mean(cpu)), 4)
    print(json.dumps(facts, separators=(",", ":")))
