"""Open3D's VoxelBlockGrid on the CPU: TSDF and weight (f32), blocks of 8^3, truncation 3 voxels, no carving.
open3d_room.py WORKLOAD VOXEL_M FRAMES MAX_RANGE_M"""
import functools
import sys

import open3d
import open3d.core as core
from vxwl import Workload, report

TRUNCATION_VOXELS = 3.0
work = Workload(sys.argv[1], int(sys.argv[3]))
voxel, max_range = float(sys.argv[2]), float(sys.argv[4])
fx, fy, cx, cy = work.numbers
intrinsic = core.Tensor([[fx, 0, cx], [0, fy, cy], [0, 0, 1]], core.float64)
depths = [open3d.t.geometry.Image(core.Tensor(image)) for image in work.images]
extrinsics = [core.Tensor(pose).inv().contiguous() for pose in work.poses]


def integrate(grid, i):
    """One frame: the blocks near its surface, then their voxels.  Images hold metres."""
    blocks = grid.compute_unique_block_coordinates(depths[i], intrinsic, extrinsics[i], 1.0, max_range, TRUNCATION_VOXELS)
    grid.integrate(blocks, depths[i], intrinsic, extrinsics[i], 1.0, max_range, TRUNCATION_VOXELS)


def one_pass():
    """A new grid with room for all blocks, so that its hash map never grows while the clock runs."""
    grid = open3d.t.geometry.VoxelBlockGrid(
        ("tsdf", "weight"), (core.float32, core.float32), ((1), (1)), voxel, 8, 50000, core.Device("CPU:0")
    )
    return [functools.partial(integrate, grid, i) for i in range(work.n)]


report("open3d " + open3d.__version__, [one_pass(), one_pass()])
