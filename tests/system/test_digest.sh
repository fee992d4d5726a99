#!/usr/bin/env bash
# The same frames make the same map, byte for byte: on every backend and thread count, through the daemon or without it.
#
#   test_digest.sh generated|real|cuda|daemon BIN_DIR ROOT
#
# generated: cpu with 1 and 2 threads, each instruction set (cpu-NAME) and guard, on rendered workloads; pinned by tests/golden/digests.txt
# real:      the same on recorded data (VOXELD_TEST_DATA, or ../shared/data beside the checkout)
# cuda:      the GPU against cpu, on both; with the variants written for CUDA and without (cuda-plain)
# daemon:    play into a running voxeld against bench_integrate
# VOXELD_UPDATE_GOLDEN=1 rewrites the golden file.  Exit: 77 when what the case needs is not here.
set -euo pipefail

[ $# -eq 3 ] || { echo "usage: test_digest.sh generated|real|cuda|daemon BIN_DIR ROOT" >&2; exit 2; }
mode=$1 bin=$2 root=$3
golden=$root/tests/golden/digests.txt
data=${VOXELD_TEST_DATA:-$root/../shared/data}
work=$(mktemp -d /tmp/voxeld-digest.XXXXXX)
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
failures=0 checks=0

fail() {
    echo "FAIL: $1"
    failures=$((failures + 1))
}

# Digest of a workload: PATH VOXEL_M MODE FRAMES BACKEND THREADS [OPTION...].  Fails when bench_integrate does.
digest_of() {
    local line switches=()
    case $5 in
        cuda-plain) switches=(VOXELD_CUDA_TUNED=0) ;;
        cpu-*) switches=("VOXELD_CPU_SET=${5#cpu-}") ;;
    esac
    line=$(env "${switches[@]}" "$bin/bench_integrate" --workload "$1" --voxel "$2" --mode "$3" --frames "$4" \
        --backend "${5%%-*}" --threads "$6" --repeat 0 "${@:7}" 2>"$work/bench.log") || return 1
    sed -n 's/.*"digest":"\([0-9a-f]\{64\}\)".*/\1/p' <<<"$line"
}

# One case; the words after the first four are BACKEND:THREADS, the first of them the reference.
compare() { # NAME PATH VOXEL_M MODE FRAMES BACKEND:THREADS...
    local name=$1 path=$2 voxel=$3 map=$4 frames=$5 reference='' digest setting
    shift 5
    for setting in "$@"; do
        if ! digest=$(digest_of "$path" "$voxel" "$map" "$frames" "${setting%:*}" "${setting#*:}") || [ -z "$digest" ]; then
            fail "$name $setting: $(tail -n 1 "$work/bench.log")"
            continue
        fi
        checks=$((checks + 1))
        [ -n "$reference" ] || reference=$digest
        [ "$digest" = "$reference" ] || fail "$name: $setting made $digest, ${1} made $reference"
    done
    echo "$name $reference"
    echo "$name $reference" >>"$work/digests.txt"
}

# Clean workloads need no libm function of the noise, so that their bytes are the same on every machine.
render() {
    "$bin/genworkload" --scene room --frames 6 --frames-per-orbit 60 --output "$work/room.vxwl" 2>/dev/null
    "$bin/genworkload" --scene street --frames 4 --output "$work/street.vxwl" 2>/dev/null
    "$bin/genworkload" --scene room --frames 3 --noise 0.0012 --output "$work/noisy.vxwl" 2>/dev/null
}

need_data() {
    if [ ! -d "$data/rgbd_7scenes_redkitchen_150" ] || [ ! -d "$data/lidar_kitti00_6" ]; then
        echo "SKIP: no recorded data in $data (set VOXELD_TEST_DATA)"
        exit 77
    fi
}

generated() { # BACKEND:THREADS...
    compare room-5cm "$work/room.vxwl" 0.05 tsdf 6 "$@"
    compare street-20cm "$work/street.vxwl" 0.2 tsdf 4 "$@"
    compare room-noisy-2cm "$work/noisy.vxwl" 0.02 tsdf 3 "$@"
    compare street-occupancy-20cm "$work/street.vxwl" 0.2 occupancy 4 "$@"
}

recorded() { # BACKEND:THREADS...
    compare redkitchen-5cm "$data/rgbd_7scenes_redkitchen_150" 0.05 tsdf 30 "$@"
    compare kitti00-20cm "$data/lidar_kitti00_6" 0.2 tsdf 6 "$@"
}

check_golden() {
    if [ -n "${VOXELD_UPDATE_GOLDEN:-}" ]; then
        LC_ALL=C sort "$work/digests.txt" >"$golden"
        echo "wrote $golden"
        return
    fi
    [ -f "$golden" ] || { fail "$golden is missing"; return; }
    local name digest
    while read -r name digest; do
        grep -qx "$name $digest" "$golden" || fail "$name is not what $golden pins: $digest"
        checks=$((checks + 1))
    done <"$work/digests.txt"
}

through_daemon() { # NAME PATH VOXEL_M MODE FRAMES [OPTION...], which bench_integrate and play both know
    local direct served
    if ! direct=$(digest_of "$2" "$3" "$4" "$5" cpu 2 "${@:6}") || [ -z "$direct" ]; then
        fail "$1: $(tail -n 1 "$work/bench.log")"
        return
    fi
    "$bin/voxelctl" map create "$1" --voxel-size "$3" --mode "$4" >/dev/null
    "$bin/voxelctl" play "$2" --map "$1" --frames "$5" "${@:6}" >"$work/play.log" 2>&1 || fail "$1: $(tail -n 1 "$work/play.log")"
    served=$("$bin/voxelctl" --json map digest "$1" | sed -n 's/.*"digest": *"\([0-9a-f]*\)".*/\1/p')
    checks=$((checks + 1))
    echo "$1 $direct"
    [ "$direct" = "$served" ] || fail "$1: daemon $served, direct $direct"
    ! grep -q " $direct\$" "$work/served.txt" 2>/dev/null || fail "$1: an option changed nothing"
    echo "$1 $direct" >>"$work/served.txt"
}

case $mode in
    generated)
        render
        sets=()
        for set in baseline avx2 avx512; do
            if digest_of "$work/room.vxwl" 0.05 tsdf 1 "cpu-$set" 1 >/dev/null; then
                sets+=("cpu-$set:2")
            else
                echo "SKIP: $set: $(tail -n 1 "$work/bench.log")"
            fi
        done
        generated cpu:1 cpu:2 "${sets[@]}" guard:2
        check_golden
        ;;
    real)
        need_data
        recorded cpu:1 cpu:2 guard:2
        ;;
    cuda)
        render
        if ! digest_of "$work/room.vxwl" 0.05 tsdf 1 cuda 0 >/dev/null; then
            echo "SKIP: no CUDA device: $(tail -n 1 "$work/bench.log")"
            exit 77
        fi
        generated cpu:0 cuda:0 cuda-plain:0
        [ ! -d "$data" ] || recorded cpu:0 cuda:0 cuda-plain:0
        ;;
    daemon)
        render
        export VOXELD_IPC_DIR=$work
        "$bin/voxeld" --ipc-dir "$work" --backend cpu >"$work/voxeld.log" 2>&1 &
        daemon=$!
        until "$bin/voxelctl" stats >/dev/null 2>&1; do
            kill -0 "$daemon" 2>/dev/null || { cat "$work/voxeld.log"; exit 1; }
        done
        through_daemon room "$work/room.vxwl" 0.05 tsdf 6
        through_daemon street "$work/street.vxwl" 0.2 tsdf 4
        if [ -d "$data" ]; then
            through_daemon redkitchen "$data/rgbd_7scenes_redkitchen_150" 0.05 tsdf 5
            # any bytes will do for weights
            { printf 'P5\n640 480\n255\n' && head -c 307200 "$work/room.vxwl"; } >"$work/mask.pgm"
            through_daemon weighted "$data/rgbd_7scenes_redkitchen_150" 0.05 tsdf 5 --weights "$work/mask.pgm" --weight-white 110
            through_daemon kitti00 "$data/lidar_kitti00_6" 0.2 tsdf 2
        fi
        kill -TERM "$daemon"
        status=0
        wait "$daemon" || status=$?
        daemon=''
        [ "$status" -eq 0 ] || fail "voxeld ended with $status"
        ;;
    *)
        echo "test_digest.sh: unknown case '$mode'" >&2
        exit 2
        ;;
esac
[ "$checks" -gt 0 ] || fail "nothing was compared"
echo "$checks digests compared, $failures failures"
exit $((failures > 0))
