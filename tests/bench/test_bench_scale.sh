#!/usr/bin/env bash
# A small cap is filled to the refusal, in both modes; figures are there.
#   test_bench_scale.sh BIN_DIR
set -euo pipefail
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$bin/genworkload" --scene room --frames 2 --noise 0.0012 --output "$work/room.vxwl" 2>/dev/null
for mode in tsdf occupancy; do
    out=$("$bin/bench_scale" --workload "$work/room.vxwl" --voxel 0.05 --mode "$mode" --pool-cap 41943040)
    echo "$out"
    grep -q '"full":true' <<<"$out"
    grep -q 'memory cap' <<<"$out"
done
# The field of two copies has twice the voxels of one's.
one=$("$bin/bench_scale" --workload "$work/room.vxwl" --voxel 0.05 --max-copies 1 --esdf)
two=$("$bin/bench_scale" --workload "$work/room.vxwl" --voxel 0.05 --max-copies 2 --esdf)
echo "$two"
within() { sed -n 's/.*"esdf_voxels_within":\([0-9]*\).*/\1/p'; }
[ "$(within <<<"$one")" -gt 100000 ]
awk -v one="$(within <<<"$one")" -v two="$(within <<<"$two")" 'BEGIN { exit !(two > 1.99 * one && two < 2.01 * one) }'
