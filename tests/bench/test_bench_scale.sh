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
