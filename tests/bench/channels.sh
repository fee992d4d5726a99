#!/usr/bin/env bash
# What colour and labels cost: bytes a voxel and time a frame of the room, without, with each, with both.
#
#   channels.sh BIN_DIR [BACKEND] [VOXEL_M] [FRAMES]
#
# BACKEND: cpu (default), cuda.  The four are timed in turn, three times, in one run; the last column is the median's ratio to the
# map without.  Ends with 1 when the geometry of a map with channels is not that of the map without.
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: channels.sh BIN_DIR [cpu|cuda] [VOXEL_M] [FRAMES]" >&2; exit 2; }
bin=$1 backend=${2:-cpu} voxel=${3:-0.02} frames=${4:-60}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

json() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"; }
# Middle of three numbers, one a line.
middle() { sort -g | sed -n 2p; }

"$bin/genworkload" --scene room --frames "$frames" --frames-per-orbit 300 --noise 0.0012 --output "$work/room.vxwl" 2>/dev/null
kinds=("" "--colour" "--label" "--colour --label")
for _ in 1 2 3; do
    for k in 0 1 2 3; do
        # shellcheck disable=SC2086 # two options in one word
        "$bin/bench_integrate" --workload "$work/room.vxwl" --voxel "$voxel" --backend "$backend" ${kinds[k]} >>"$work/$k"
    done
done
plain=$(json median_ms <"$work/0" | middle)
voxels=$(json voxels <"$work/0" | middle)
failed=0
printf '%-18s %10s %14s %8s\n' map 'ms a frame' 'bytes a voxel' ratio
for k in 0 1 2 3; do
    ms=$(json median_ms <"$work/$k" | middle)
    bytes=$(json bytes_per_voxel <"$work/$k" | middle)
    printf '%-18s %10.3f %14.2f %8.2f\n' "${kinds[k]:-without}" "$ms" "$bytes" "$(awk -v a="$ms" -v b="$plain" 'BEGIN { print a / b }')"
    [ "$(json voxels <"$work/$k" | middle)" = "$voxels" ] || failed=1
done
exit $failed
