#!/usr/bin/env bash
# bench_streams for two seconds: it starts its daemon, streams, asks, finds the answers right, cleans up.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: test_bench_streams.sh BIN_DIR" >&2; exit 2; }
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$bin/genworkload" --scene room --frames 4 --noise 0.0012 --output "$work/room.vxwl" 2>/dev/null
out=$("$bin/bench_streams" --workload "$work/room.vxwl" --backend cpu --voxel 0.1 --streams 2 --rate 5 \
    --query-rate 50 --seconds 2 2>"$work/err") || { cat "$work/err" >&2; exit 1; }
echo "$out"
case $out in
*'"refused":0,'*'"points_known":0,'*) echo "no point has a distance" >&2; exit 1 ;;
*'"bench":"streams"'*'"refused":0,'*) ;;
*) echo "not the line that was wanted" >&2; exit 1 ;;
esac
"$bin/bench_streams" --streams 0 >/dev/null 2>&1 && { echo "--streams 0 was taken" >&2; exit 1; }
exit 0
