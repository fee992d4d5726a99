#!/usr/bin/env bash
# Frame times of the cpu backend beside those of Open3D, VDBFusion and OctoMap, in one run on the same frames.
#
#   peers.sh BIN_DIR [ROUNDS] [CASES]
#
# ROUNDS (default 5): how often ours and the peer run alternately; the judged figure is the median of the rounds' ratios.
# CASES: a pattern of case names, e.g. 'room-*'.  All programs get two threads on the same two cores (PEERS_CPUS, default 0,1).
#
# Nothing is installed here.  A peer that is missing is skipped with the reason:
#   Open3D     a Python with module open3d: VOXELD_OPEN3D_PYTHON (default /usr/bin/python3; Debian: python3-open3d)
#   VDBFusion  a Python with module vdbfusion: VOXELD_VDBFUSION_PYTHON (no default; PyPI has wheels up to Python 3.10)
#   OctoMap    headers and library (Debian: liboctomap-dev) and a C++ compiler: CXX (default c++)
#
# Settings of the peers: Open3D tensor VoxelBlockGrid on CPU:0, blocks of 8^3, TSDF and weight in f32, room for 50,000 blocks
# from the start, no carving (it has none); ours with carving, and once more without.  LiDAR: like beside like, ours and
# VDBFusion without carving (its default), then both with (space_carving=True; few frames and one pass of it, as it is slow),
# and, not judged, ours with carving beside VDBFusion without.
# OctoMap insertPointCloud with its defaults, built with -O3 and OpenMP.  Truncation 3 voxels, ranges up to 8 m (room) and 60 m.
# One untimed pass before the timed one, in ours too.  One line a case; ends with 1 when a bar is missed.
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: peers.sh BIN_DIR [ROUNDS] [CASES]" >&2; exit 2; }
bin=$1 rounds=${2:-5} cases=${3:-*}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
run=(env OMP_NUM_THREADS=2)
if command -v taskset >/dev/null; then run+=(taskset -c "${PEERS_CPUS:-0,1}"); fi

number() { sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p"; }
median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

open3d=${VOXELD_OPEN3D_PYTHON:-/usr/bin/python3}
vdbfusion=${VOXELD_VDBFUSION_PYTHON:-}
octomap=$work/octomap_street
missing=()
if ! "$open3d" -c 'import open3d' 2>/dev/null; then
    missing+=("SKIP open3d: $open3d has no module open3d (Debian: python3-open3d; or VOXELD_OPEN3D_PYTHON)")
    open3d=
fi
if [ -z "$vdbfusion" ] || ! "$vdbfusion" -c 'import vdbfusion' 2>/dev/null; then
    missing+=("SKIP vdbfusion: VOXELD_VDBFUSION_PYTHON names no Python with module vdbfusion")
    vdbfusion=
fi
if ! "${CXX:-c++}" -O3 -DNDEBUG -fopenmp -o "$octomap" "$here/peers/octomap_street.cpp" -loctomap -loctomath 2>"$work/cxx"; then
    missing+=("SKIP octomap: $(head -n 1 "$work/cxx") (Debian: liboctomap-dev)")
    octomap=
fi
[ ${#missing[@]} -eq 0 ] || printf '%s\n' "${missing[@]}"

workload() { # SCENE FRAMES NOISE
    [ -f "$work/$1" ] || "$bin/genworkload" --scene "$1" --frames "$2" --noise "$3" --output "$work/$1" 2>/dev/null
}

# NAME SCENE BAR OURS(words) PEER(words): alternates, prints the medians and the median of the ratios peer / ours.
compare() {
    local name=$1 bar=$2 i ours peer
    local -a ours_words peer_words
    read -ra ours_words <<<"$3"
    read -ra peer_words <<<"$4"
    # shellcheck disable=SC2254 # the pattern is one
    case $name in $cases) ;; *) return 0 ;; esac
    : >"$work/rows"
    for ((i = 0; i < rounds; i++)); do
        ours=$("${run[@]}" "$bin/bench_integrate" "${ours_words[@]}" --backend cpu --threads 2)
        peer=$("${run[@]}" "${peer_words[@]}")
        echo "$(number median_ms <<<"$ours") $(number median_ms <<<"$peer") $(number mean_cpu_ms <<<"$ours")" \
            "$(number mean_cpu_ms <<<"$peer")" >>"$work/rows"
    done
    local wall cpu verdict
    wall=$(awk '{ print $2 / $1 }' "$work/rows" | median)
    cpu=$(awk '{ print $4 / $3 }' "$work/rows" | median)
    verdict=$(awk -v r="$wall" -v bar="$bar" 'BEGIN { if (bar == "-") print "not judged"; else print (r >= bar + 0) ? "ok" : "MISSED" }')
    [ "$verdict" != MISSED ] || failed=1
    echo "$name ours_ms=$(awk '{ print $1 }' "$work/rows" | median) peer_ms=$(awk '{ print $2 }' "$work/rows" | median)" \
        "faster=$wall cpu_ours_ms=$(awk '{ print $3 }' "$work/rows" | median) cpu_peer_ms=$(awk '{ print $4 }' "$work/rows" | median)" \
        "cpu_less=$cpu bar=$bar load=$(cut -d' ' -f1 /proc/loadavg): $verdict"
}

if [ -n "$open3d" ]; then
    workload room 60 0.0012
    for voxel in 0.05 0.02 0.01; do
        room="--workload $work/room --voxel $voxel --max-range 8"
        peer="$open3d $here/peers/open3d_room.py $work/room $voxel 60 8"
        compare "room-$voxel" 1 "$room" "$peer"
        compare "room-$voxel-no-carving" - "$room --no-carving" "$peer"
    done
fi
if [ -n "$vdbfusion$octomap" ]; then
    workload street 20 0.02
fi
for voxel in 0.2 0.1; do
    street="--workload $work/street --voxel $voxel --max-range 60"
    if [ -n "$vdbfusion" ]; then
        peer="$vdbfusion $here/peers/vdbfusion_street.py $work/street $voxel"
        compare "street-tsdf-$voxel-no-carving" 10 "$street --no-carving" "$peer 20 no-carving"
        compare "street-tsdf-$voxel-carving" 10 "$street --frames 4" "$peer 4 carving 1"
        compare "street-tsdf-$voxel-carving-beside-none" - "$street" "$peer 20 no-carving"
    fi
    if [ -n "$octomap" ]; then
        compare "street-occupancy-$voxel" 20 "$street --frames 8 --mode occupancy" "$octomap $work/street $voxel 8 60"
    fi
done
exit "$failed"
