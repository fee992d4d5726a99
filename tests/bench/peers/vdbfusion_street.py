"""VDBFusion: TSDF of LiDAR points, truncation 3 voxels; with or without its space carving (its default is without).
vdbfusion_street.py WORKLOAD VOXEL_M FRAMES carving|no-carving [PASSES, the last of them timed]"""
import functools
import sys

import vdbfusion
from vxwl import Workload, report

TRUNCATION_VOXELS = 3.0
work = Workload(sys.argv[1], int(sys.argv[3]))
voxel = float(sys.argv[2])
carving = {"carving": True, "no-carving": False}[sys.argv[4]]
passes = int(sys.argv[5]) if len(sys.argv) > 5 else 2
scans = [work.points(i) for i in range(work.n)]


def one_pass():
    """A new volume."""
    volume = vdbfusion.VDBVolume(voxel, TRUNCATION_VOXELS * voxel, carving)
    return [functools.partial(volume.integrate, scans[i], work.poses[i]) for i in range(work.n)]


report("vdbfusion", [one_pass() for _ in range(passes)])
