#!/usr/bin/env bash
# Scans of a sensor that drives and turns while it scans: with --deskew the map is as sharp as one of a sensor that stood
# still, measured against the scene, and voxelctl play makes the same map as bench_integrate.
#
#   test_deskew.sh BIN_DIR
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: test_deskew.sh BIN_DIR" >&2; exit 2; }
bin=$1
work=$(mktemp -d /tmp/voxeld-deskew.XXXXXX)
daemon=''
# shellcheck disable=SC2317 # the trap calls it
clean_up() {
    if [ -n "$daemon" ]; then
        kill -TERM "$daemon" 2>/dev/null || true
        wait "$daemon" 2>/dev/null || true
    fi
    rm -rf "$work"
}
trap clean_up EXIT
failures=0

fail() {
    echo "FAIL: $1"
    failures=$((failures + 1))
}
word() { tr ' ' '\n' | sed -n "s/^$1=//p"; }

# A map of the scans in $work/$2: sets mean, complete and digest.
measure() { # NAME FOLDER OPTION...
    local facts check
    facts=$("$bin/bench_integrate" --workload "$work/$2" --voxel 0.2 --repeat 0 --mesh "$work/mesh.ply" "${@:3}")
    check=$("$bin/meshcheck" --scene street --workload "$work/street.vxwl" --radius 0.3 "$work/mesh.ply")
    mean=$(word mean <<<"$check") complete=$(word completeness <<<"$check")
    digest=$(sed -n 's/.*"digest":"\([0-9a-f]\{64\}\)".*/\1/p' <<<"$facts")
    echo "$1: $check"
    case ",$mean,$complete,$digest," in *,,*) fail "$1: no figures" ;; esac
}

# Fails when the awk expression over a, b is false.
expect() { # WORDS EXPRESSION A B
    awk -v a="$3" -v b="$4" "BEGIN { exit !($2) }" || fail "$1: $3, $4"
}

"$bin/genscans" --output "$work/moving" --scans 16
"$bin/genscans" --output "$work/still" --scans 16 --still
"$bin/genworkload" --scene street --frames 16 --output "$work/street.vxwl" 2>/dev/null

measure "stood still" still --deskew off
still_mean=$mean still_complete=$complete
measure "de-skewed" moving --deskew on
expect "de-skewed is not as sharp as still" 'a < 1.1 * b && a < 0.03' "$mean" "$still_mean"
expect "de-skewed is less complete" 'a > b - 0.01' "$complete" "$still_complete"
sharp=$digest sharp_mean=$mean
measure "as they came" moving --deskew off
expect "without it the map is as good" 'a > 5 * b' "$mean" "$sharp_mean"
blurred=$digest blurred_mean=$mean
# a pose for each scan only: what lies between is guessed
mkdir "$work/coarse"
cp "$work/moving/"*.pcd "$work/moving/times.txt" "$work/coarse"
awk 'NR % 10 == 1' "$work/moving/poses.txt" >"$work/coarse/poses.txt"
measure "de-skewed, 10 poses a second" coarse
expect "a pose a scan is of no use" 'a < b / 5' "$mean" "$blurred_mean"

export VOXELD_IPC_DIR=$work
"$bin/voxeld" --ipc-dir "$work" --backend cpu >"$work/voxeld.log" 2>&1 &
daemon=$!
until "$bin/voxelctl" ping >/dev/null 2>&1; do
    kill -0 "$daemon" 2>/dev/null || { cat "$work/voxeld.log"; exit 1; }
done

# Plays the moving scans: NAME DIGEST N_DESKEWED OPTION...
played() {
    local served
    "$bin/voxelctl" map create "$1" --voxel-size 0.2 >/dev/null
    "$bin/voxelctl" --json play "$work/moving" --map "$1" "${@:4}" >"$work/play.json" || fail "$1: play failed"
    served=$("$bin/voxelctl" --json map digest "$1" | sed -n 's/.*"digest": *"\([0-9a-f]*\)".*/\1/p')
    [ "$served" = "$2" ] || fail "$1: daemon $served, direct $2"
    grep -q "\"frames_deskewed\": *$3," "$work/play.json" || fail "$1: not $3 frames de-skewed"
}
played sharp "$sharp" 16
played blurred "$blurred" 0 --deskew off
! "$bin/voxelctl" play "$work/moving" --map sharp --deskew maybe >/dev/null 2>&1 || fail "--deskew maybe"
head -n 100 "$work/moving/poses.txt" >"$work/short.txt" # the last scans have no poses round them
"$bin/voxelctl" map create short --voxel-size 0.2 >/dev/null
"$bin/voxelctl" play "$work/moving" --map short --poses "$work/short.txt" --frames 10 >"$work/play.log" || fail "short: play"
grep -q 'warning: 1 scans with times for their points were not de-skewed: 000009.pcd: its last point' "$work/play.log" ||
    fail "short: no warning"

kill -TERM "$daemon"
status=0
wait "$daemon" || status=$?
daemon=''
[ "$status" -eq 0 ] || fail "voxeld ended with $status"
echo "$failures failures"
exit $((failures > 0))
