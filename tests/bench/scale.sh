#!/usr/bin/env bash
# Long runs on one device: steady times, memory, the refusal at the end of the pool.  Prints one JSON line a run.
#
#   scale.sh BIN_DIR [BACKEND] [CAP_BYTES]
#
# BACKEND cuda (default) or cpu.  CAP_BYTES of the pool for the runs to the refusal: default 48 GiB on cuda, 1 GiB on cpu, whose
# workloads and voxels are smaller too.  A few minutes on a large GPU.  Judged (ends with 1): p99 at most twice the median over
# 3000 frames; nothing asked of the driver and no higher peak in 20 replays; peak with nine far copies at most 1.15 x the map;
# with 48 GiB 5 G active TSDF voxels, 5 G voxels of a distance field, 10 G known occupancy voxels; bench_scale judges the refusal itself.
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: scale.sh BIN_DIR [BACKEND] [CAP_BYTES]" >&2; exit 2; }
bin=$1 backend=${2:-cuda}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
if [ "$backend" = cuda ]; then
    cap=${3:-51539607552} frames=300 passes=10 fine=0.003 middle=0.01 street_frames=200 street=0.05 field_copies=20
else
    cap=${3:-1073741824} frames=30 passes=4 fine=0.02 middle=0.02 street_frames=10 street=0.2 field_copies=2
fi

value() { sed -n "s/.*\"$1\":\([-0-9.]*\).*/\1/p"; }
# WORDS VALUE at-most|at-least BAR
judge() {
    if awk -v v="$2" -v how="$3" -v bar="$4" 'BEGIN { exit !(v != "" && (how == "at-most" ? v + 0 <= bar : v + 0 >= bar)) }'; then
        echo "ok: $1 $2 ($3 $4)"
    else
        echo "MISSED: $1 $2 ($3 $4)"
        failed=1
    fi
}

"$bin/genworkload" --scene room --frames "$frames" --noise 0.0012 --output "$work/room.vxwl" 2>/dev/null
"$bin/genworkload" --scene street --frames "$street_frames" --noise 0.02 --output "$work/street.vxwl" 2>/dev/null

out=$("$bin/bench_integrate" --workload "$work/room.vxwl" --voxel "$middle" --backend "$backend" --repeat "$passes")
echo "$out"
judge "p99 over median of $((frames * passes)) frames" "$(value p99_over_median <<<"$out")" at-most 2

out=$("$bin/bench_integrate" --workload "$work/room.vxwl" --voxel "$middle" --backend "$backend" --repeat 20)
echo "$out"
judge "driver allocations in 20 replays" "$(value allocs_later <<<"$out")" at-most 0
judge "growth of the peak in 20 replays" "$(value peak_growth_later_bytes <<<"$out")" at-most 0

for copies in 0 9; do
    out=$("$bin/bench_integrate" --workload "$work/room.vxwl" --voxel "$fine" --backend "$backend" --repeat 0 --far-copies "$copies")
    echo "$out"
done
judge "peak over the map, nine far copies" "$(value peak_over_map <<<"$out")" at-most 1.15

out=$("$bin/bench_scale" --workload "$work/room.vxwl" --voxel "$fine" --max-range 8 --backend "$backend" --pool-cap "$cap") || failed=1
echo "$out"
[ "$cap" != 51539607552 ] || judge "active TSDF voxels" "$(value active_voxels <<<"$out")" at-least 5e9
out=$("$bin/bench_scale" --workload "$work/room.vxwl" --voxel "$fine" --max-range 8 --backend "$backend" --pool-cap "$cap" \
    --esdf --max-copies "$field_copies" --no-digest) || failed=1
echo "$out"
[ "$cap" != 51539607552 ] || judge "voxels of the distance field" "$(value esdf_voxels_within <<<"$out")" at-least 5e9
out=$("$bin/bench_scale" --workload "$work/street.vxwl" --voxel "$street" --max-range 60 --mode occupancy --backend "$backend" \
    --pool-cap "$cap") || failed=1
echo "$out"
[ "$cap" != 51539607552 ] || judge "known occupancy voxels" "$(value known_voxels <<<"$out")" at-least 1e10
exit "$failed"
