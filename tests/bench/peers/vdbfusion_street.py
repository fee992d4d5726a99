"""VDBFusion: TSDF of LiDAR points, truncation 3 voxels, without its space carving (which is slower).
vdbfusion_street.py WORKLOAD VOXEL_M FRAMES"""
import functools
import sys

import vdbfusion
from vxwl import Workload, report

TRUNCATION_VOXELS = 3.0
work = Workload(sys.argv[1], int(sys.argv[3]))
voxel = float(sys.argv[2])
scans = [work.points(i) for i in range(work.n)]


def one_pass():
    """A new volume."""
    volume = vdbfusion.VDBVolume(voxel, TRUNCATION_VOXELS * voxel, False)
    return [functools.partial(volume.integrate, scans[i], work.poses[i]) for i in range(work.n)]


report("vdbfusion", [one_pass(), one_pass()])
