#!/usr/bin/env bash
# Runs bench_topology on tiny shapes: every operation validates and prints a whole line; wrong usage is refused.
#
#   test_bench_topology.sh BIN_DIR [BACKEND]
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: test_bench_topology.sh BIN_DIR [BACKEND]" >&2; exit 2; }
bench=$1/bench_topology
backend=${2:-cpu}
work=$(mktemp -d /tmp/voxeld-topology.XXXXXX)
trap 'rm -rf "$work"' EXIT
ops='voxels_to_grid dilate6 dilate18 dilate26 dilate_box erode6 erode18 erode26 erode_box merge intersect difference prune
coarsen refine restrict prolong inject vbm_build vbm_decode stencil7 stencil18 stencil19 stencil27'
line='^\{"bench":"topology","op":"[a-z0-9_]+","shape":"[a-z0-9]+","dim":[0-9]+,.*"validated":true,"voxels_in":[1-9][0-9]*,'
line+='"leaves_in":[0-9]+,"chunks_in":[0-9]+,"voxels_out":[0-9]+,.*"repeat":2,"ms":[0-9.]+,"ms_min":[0-9.]+,"ms_p90":[0-9.]+,'
line+='"gb_s":[0-9.]+,"floor_ratio":[0-9.]+,"bytes":[0-9]+,"floor_ms":[0-9.]+,"scratch_bytes":[0-9]+,"peak_bytes":[0-9]+\}$'
failed=0

# check NAME COUNT OPTIONS...: the run ends with 0 and prints COUNT whole lines.
check() {
    local name=$1 want=$2 n
    shift 2
    if ! "$bench" --backend "$backend" --repeat 2 "$@" >"$work/out" 2>"$work/err"; then
        echo "FAILED $name: $(tail -n 1 "$work/err")"
        failed=$((failed + 1))
        return
    fi
    n=$(grep -cE "$line" "$work/out" || true)
    if [ "$n" -ne "$want" ]; then
        echo "FAILED $name: $n whole lines of $want"
        failed=$((failed + 1))
    fi
}

all=$(wc -w <<<"$ops")
check shell3 "$all" --shape shell3 --dim 48 --op all
check shell7 "$all" --shape shell7 --dim 40 --op all --radius 3
check rand25 "$all" --shape rand25 --dim 40 --op all
check scatter "$all" --shape scatter --dim 64 --op all
check tiles "$all" --shape tiles --dim 256 --op all --order scattered --radius 8
check batch 6 --shape rand25 --dim 20 --op all --batch 5
check batch-cold 6 --shape shell3 --dim 32 --op all --batch 256 --cold
check list 3 --shape shell3 --dim 32 --op merge,vbm_build,stencil19

# refused LAST_OPTIONS...: exit 2, nothing on stdout.
refused() {
    local code=0
    "$bench" "$@" >"$work/out" 2>"$work/err" || code=$?
    if [ "$code" -ne 2 ] || [ -s "$work/out" ]; then
        echo "FAILED: $* ended with $code"
        failed=$((failed + 1))
    fi
}
refused --shape cube --op all
refused --shape shell3 --op fold
refused --shape shell3 --op merge,
refused --shape shell3 --op merge,stencil
refused --shape shell3
refused --shape shell3 --op merge --batch 2
refused --shape shell3 --op all --batch 257
refused --shape shell3 --op all --dim 5
refused --shape shell3 --op all --radius 9

if [ "$failed" -gt 0 ]; then
    sed 's/^/    /' "$work/err" | tail -n 3
    exit 1
fi
echo "all $all operations validated on five shapes, $backend"
