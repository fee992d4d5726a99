#!/usr/bin/env bash
# What only a GPU can say of fusion, in one call (about 6 minutes): digests against the cpu backend, a frame's time at every size
# that has a bar, far copies, time of each kernel, compute-sanitizer.
#
#   gpu_fusion.sh BIN_DIR OUT_DIR
#
# BIN_DIR: a build or bundle with CUDA.  OUT_DIR gets figures.txt (one JSON line a run), kernels.txt where ncu and sanitizer.txt
# where compute-sanitizer is installed.  Prints a table of ms a frame, bars beside.  Goes on after a failure or a missed bar;
# ends with 1 when there was one.
set -uo pipefail

[ $# -eq 2 ] || { echo "usage: gpu_fusion.sh BIN_DIR OUT_DIR" >&2; exit 2; }
bin=$1 out=$2
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

value() { sed -n "s/.*\"$1\":\"\{0,1\}\([-0-9a-f.]*\).*/\1/p"; }
complain() { echo "$*"; failed=1; }

"$bin/genworkload" --scene room --frames 300 --noise 0.0012 --output "$work/room.vxwl" 2>/dev/null || exit 1
"$bin/genworkload" --scene street --frames 300 --noise 0.02 --output "$work/street.vxwl" 2>/dev/null || exit 1

# Digests: the same frames on both, with the tuned kernels and without.
for case in "room 0.02 tsdf" "room 0.02 occupancy" "street 0.1 tsdf" "street 0.1 occupancy"; do
    read -r scene voxel mode <<<"$case"
    digests=()
    for how in "cpu 1" "cuda 1" "cuda 0"; do
        read -r backend tuned <<<"$how"
        digests+=("$(VOXELD_CUDA_TUNED=$tuned "$bin/bench_integrate" --workload "$work/$scene.vxwl" --voxel "$voxel" --mode "$mode" \
            --frames 40 --repeat 0 --backend "$backend" --threads 16 2>&1 | value digest)")
    done
    if [ -n "${digests[0]}" ] && [ "${digests[0]}" = "${digests[1]}" ] && [ "${digests[0]}" = "${digests[2]}" ]; then
        echo "same digest: $case"
    else
        complain "DIGESTS DIFFER: $case: ${digests[*]}"
    fi
done

# scene, voxel, mode, frames, bar in ms, options
timed() {
    local scene=$1 voxel=$2 mode=$3 frames=$4 bar=$5 line median
    shift 5
    line=$(timeout 120 "$bin/bench_integrate" --workload "$work/$scene.vxwl" --voxel "$voxel" --mode "$mode" --frames "$frames" \
        --backend cuda "$@" 2>"$work/err") || { complain "FAILED: $scene $voxel $mode: $(tail -n 1 "$work/err")"; return; }
    echo "$line" >>"$out/figures.txt"
    median=$(value median_ms <<<"$line")
    printf '%-8s %-6s %-10s %-16s median %8s p99 %8s bar %s\n' "$scene" "$voxel" "$mode" "$*" "$median" \
        "$(value p99_ms <<<"$line")" "$bar"
    awk -v m="$median" -v b="$bar" 'BEGIN { exit !(m + 0 > 0 && m + 0 <= b) }' || complain "  above its bar"
}
timed room 0.02 tsdf 300 0.16
timed room 0.01 tsdf 300 0.20
timed room 0.005 tsdf 300 0.36
timed room 0.004 tsdf 300 0.50
timed room 0.003 tsdf 300 0.85
timed room 0.02 tsdf 300 0.18 --far-copies 9
timed street 0.4 tsdf 300 0.20
timed street 0.2 tsdf 300 0.22
timed street 0.1 tsdf 300 0.24
timed street 0.05 tsdf 300 0.36
timed street 0.03 tsdf 300 0.80
timed street 0.02 tsdf 300 1.6
timed street 0.2 occupancy 200 0.25
timed street 0.1 occupancy 200 0.40
timed street 0.05 occupancy 200 0.90
timed street 0.03 occupancy 200 3.0

if command -v ncu >/dev/null; then
    for case in "room 0.02" "room 0.003" "street 0.1" "street 0.05"; do
        read -r scene voxel <<<"$case"
        echo "# $case: kernel, microseconds, warp instructions" >>"$out/kernels.txt"
        timeout 90 ncu --clock-control none --csv --launch-skip 300 --launch-count 60 \
            --metrics gpu__time_duration.sum,smsp__inst_executed.sum "$bin/bench_integrate" --workload "$work/$scene.vxwl" \
            --voxel "$voxel" --frames 30 --backend cuda 2>/dev/null | grep '^"' >>"$out/kernels.txt"
    done
fi
if command -v compute-sanitizer >/dev/null; then
    "$bin/genworkload" --scene room --frames 3 --noise 0.0012 --output "$work/small.vxwl" 2>/dev/null
    "$bin/genworkload" --scene street --frames 2 --noise 0.02 --output "$work/lidar.vxwl" 2>/dev/null
    for tool in memcheck racecheck initcheck synccheck; do
        for case in "small 0.04 tsdf" "lidar 0.4 tsdf" "lidar 0.4 occupancy"; do
            read -r scene voxel mode <<<"$case"
            timeout 100 compute-sanitizer --tool $tool --error-exitcode 9 "$bin/bench_integrate" --workload "$work/$scene.vxwl" \
                --voxel "$voxel" --mode "$mode" --backend cuda --repeat 1 >>"$out/sanitizer.txt" 2>&1 ||
                complain "FAILED: $tool on $case"
        done
    done
fi
exit "$failed"
