#!/usr/bin/env bash
# Accuracy and completeness of the mesh, and bytes per voxel, of the analytic scenes, against the bars below.
#
#   accuracy.sh BIN_DIR [quick|full|constant] [BACKEND]
#
# quick (what ctest runs): room 5 cm, by both weightings, and street 20 cm.  full: every bar; constant: those of the room by constant
# weights.  BACKEND: cpu (default), cuda, guard.
# One line per case; ends with 1 when a bar is missed.
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: accuracy.sh BIN_DIR [quick|full|constant] [BACKEND]" >&2; exit 2; }
bin=$1 size=${2:-quick} backend=${3:-cpu}
# quick judges the mesh only; the others also report the time.
repeat=1 weighting=inverse_square
[ "$size" != quick ] || repeat=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# Value of "key": in one JSON line, or of key=value in the words of meshcheck.
json() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"; }
word() { tr ' ' '\n' | sed -n "s/^$1=//p"; }

# SCENE FRAMES NOISE VOXEL_M RADIUS_M MAX_MEAN_M MIN_COMPLETENESS MAX_BYTES_PER_VOXEL (- = not judged); readings weigh by $weighting
measure() {
    local scene=$1 frames=$2 noise=$3 voxel=$4 radius=$5 max_mean=$6 min_complete=$7 max_bytes=$8
    local workload=$work/$scene-$frames.vxwl facts check mean complete bytes verdict
    [ -f "$workload" ] ||
        "$bin/genworkload" --scene "$scene" --frames "$frames" --noise "$noise" --output "$workload" 2>/dev/null
    facts=$("$bin/bench_integrate" --workload "$workload" --voxel "$voxel" --weighting "$weighting" --backend "$backend" --repeat "$repeat" --mesh "$work/mesh.ply")
    check=$("$bin/meshcheck" --scene "$scene" --workload "$workload" --radius "$radius" "$work/mesh.ply")
    mean=$(word mean <<<"$check") complete=$(word completeness <<<"$check") bytes=$(json bytes_per_voxel <<<"$facts")
    # A figure that is not there is not below any bar.
    if verdict=$(awk -v mean="$mean" -v max="$max_mean" -v complete="$complete" -v least="$min_complete" \
        -v bytes="$bytes" -v most="$max_bytes" -v stray="$(word nonfinite <<<"$check")" 'BEGIN {
            if (mean == "" || complete == "" || bytes == "" || stray != 0) { print "no figures"; exit 1 }
            bad = ""
            if (mean + 0 > max + 0) bad = bad " mean over " max
            if (complete + 0 < least + 0) bad = bad " completeness under " least
            if (most != "-" && bytes + 0 > most + 0) bad = bad " bytes per voxel over " most
            print bad == "" ? "ok" : "MISSED:" bad
            exit bad != ""
        }'); then :; else failed=$((failed + 1)); fi
    echo "$scene frames=$frames voxel_m=$voxel weighting=$weighting backend=$backend median_ms=$(json median_ms <<<"$facts") \
bytes_per_voxel=$bytes $check: $verdict"
}

rooms() {
    measure room 100 0.0012 0.05 0.075 0.0045 0.999 -
    measure room 100 0.0012 0.02 0.03 0.0012 0.999 -
    measure room 100 0.0012 0.01 0.015 0.0043 0.999 5.5
}

case $size in
    quick)
        measure room 100 0.0012 0.05 0.075 0.0045 0.999 -
        measure street 20 0.02 0.2 0.3 0.025 0.98 -
        weighting=constant
        measure room 100 0.0012 0.05 0.075 0.0045 0.999 -
        ;;
    constant)
        weighting=constant
        rooms
        ;;
    full)
        rooms
        measure street 50 0.02 0.2 0.3 0.025 0.98 -
        measure street 50 0.02 0.1 0.15 0.011 0.98 -
        ;;
    *)
        echo "accuracy.sh: quick, full or constant, not '$size'" >&2
        exit 2
        ;;
esac
exit $((failed > 0))
