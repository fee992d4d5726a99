#!/usr/bin/env bash
# Builds voxeld, starts a private daemon, maps a recording, queries the map, and leaves pictures and a mesh.
#
#   deploy/quickstart.sh [DATASET] [options]
#
# DATASET: a folder or file that `voxelctl play` reads; without one, a room is rendered here (nothing is downloaded).
#   --voxel-size M        edge of a voxel; default 0.02 for depth cameras, 0.2 for LiDAR
#   --truncation-voxels V half width of the surface band (default 3)
#   --z Z                 height of the distance picture; default the middle of the map, for LiDAR 0 where the map spans it
#   --out DIR             where the results go; default out/ in the checkout
#   --backend B           auto (default), cpu, cuda or guard
#   --bin DIR             use the programs there; install and build nothing
# Any other option, such as --frames 50 or --format tum, goes to `voxelctl play` with the word after it.
#
# Writes mesh.ply, view.png, esdf.png.  CUDA is used where driver and nvcc are; it is never installed.
# Exit: 0 done; 1 a step failed (its last words are shown); 2 bad usage; 130 interrupted.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dataset='' voxel_size='' z=''
truncation=3 out=$root/out backend=auto bin=''
play=()

usage_error() {
    printf 'quickstart: %s; see deploy/quickstart.sh --help\n' "$1" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
        --voxel-size | --truncation-voxels | --z | --out | --backend | --bin)
            [ $# -ge 2 ] || usage_error "$1 wants a value"
            case $1 in
                --voxel-size) voxel_size=$2 ;;
                --truncation-voxels) truncation=$2 ;;
                --z) z=$2 ;;
                --out) out=$2 ;;
                --backend) backend=$2 ;;
                --bin) bin=$2 ;;
            esac
            shift
            ;;
        -h | --help)
            sed -n '2,18s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        --*)
            play+=("$1")
            if [ $# -ge 2 ] && [ "${2#--}" = "$2" ]; then
                play+=("$2")
                shift
            fi
            ;;
        *)
            [ -z "$dataset" ] || usage_error "two datasets named: '$dataset' and '$1'"
            [ -e "$1" ] || usage_error "there is no dataset '$1'"
            dataset=$1
            ;;
    esac
    shift
done
started=$SECONDS

fail() { # WORDS [LOG]
    printf 'quickstart: %s\n' "$1" >&2
    if [ -n "${2:-}" ] && [ -f "$2" ]; then
        tail -n 25 "$2" >&2
    fi
    exit 1
}

ipc='' daemon=''
clean_up() {
    local status=$?
    trap - EXIT INT TERM HUP
    if [ -n "$daemon" ]; then
        kill -TERM "$daemon" 2>/dev/null || true
        wait "$daemon" 2>/dev/null || true
    fi
    if [ -n "$ipc" ]; then
        rm -rf "$ipc"
    fi
    exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

mkdir -p "$out"
out=$(cd "$out" && pwd)
# A socket's path may have 107 characters: not below the checkout.
ipc=$(mktemp -d /tmp/voxeld-quickstart.XXXXXX)
keep=$ipc # where the rendered room and the logs go

# ---------------------------------------------------------------- build
build_programs() {
    local cuda=(-DVOXELD_CUDA=OFF) capability nvcc
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d '. ') || true
    nvcc=$(command -v nvcc || command -v /usr/local/cuda/bin/nvcc || command -v /opt/cuda/bin/nvcc) || true
    case $capability in
        '' | *[!0-9]*) ;;
        *) [ -z "$nvcc" ] || cuda=(-DVOXELD_CUDA=ON "-DVOXELD_CUDA_ARCHITECTURES=$capability") ;;
    esac
    mkdir -p "$keep"
    echo "== building in $keep"
    {
        cmake -S "$root" -B "$keep" -G Ninja -DCMAKE_BUILD_TYPE=Release -DVOXELD_WERROR=OFF "${cuda[@]}" &&
            cmake --build "$keep" -j "$(nproc)" --target voxeld voxelctl genworkload
    } >"$keep.log" 2>&1 || fail "the build failed; the whole log is $keep.log" "$keep.log"
}

if [ -z "$bin" ]; then
    "$root/deploy/setup.sh"
    keep=$root/build/quickstart
    mkdir -p "$root/build"
    build_programs
    bin=$keep/bin
fi

# -------------------------------------------------------------- dataset
# Sensor of a dataset by the files it is made of; it only chooses the default voxel size.
is_lidar() {
    if [ -f "$1" ]; then
        case $1 in
            *.vxwl) [ "$(od -An -tu4 -j8 -N4 "$1" | tr -d ' ')" = 1 ] ;;
            *.bin | *.pcd | *.xyz*) true ;;
            *) false ;;
        esac
        return
    fi
    [ -n "$(find "$1" -maxdepth 2 \( -name '*.bin' -o -name '*.pcd' -o -name '*.xyz*' -o -name '*.f32' \) -print -quit)" ]
}

if [ -z "$dataset" ]; then
    dataset=$keep/room.vxwl
    if [ ! -f "$dataset" ]; then
        echo "== rendering a room: 100 depth frames, 640 x 480, with sensor noise"
        "$bin/genworkload" --scene room --frames 100 --noise 0.0012 --output "$dataset.part" 2>"$keep/room.log" ||
            fail "the room could not be rendered" "$keep/room.log"
        mv "$dataset.part" "$dataset"
    fi
fi
if [ -z "$voxel_size" ]; then
    voxel_size=0.02
    if is_lidar "$dataset"; then
        voxel_size=0.2
    fi
fi
# Poses of a LiDAR begin about its own height as a rule; the middle of its map lies in the ground.
level=none
if is_lidar "$dataset"; then
    level=0
fi

# --------------------------------------------------------------- daemon
export VOXELD_IPC_DIR=$ipc
log=$keep/voxeld.log
"$bin/voxeld" --ipc-dir "$ipc" --backend "$backend" >"$log" 2>&1 &
daemon=$!
ctl() { "$bin/voxelctl" "$@"; }

for ((tries = 0; ; tries++)); do
    ctl stats >/dev/null 2>&1 && break
    kill -0 "$daemon" 2>/dev/null || fail "the daemon did not start" "$log"
    [ "$tries" -lt 100 ] || fail "the daemon does not answer" "$log"
    sleep 0.1
done

# ------------------------------------------------------- map and results
# Value of a key that occurs once in a JSON text on stdin; empty when it is not there.
json() { tr -d '\n' | sed -n "s/.*\"$1\": *\(\"[^\"]*\"\|\[[^]]*\]\|[^,}]*\).*/\1/p" | tr -d '"[]'; }

echo "== mapping $dataset with voxels of $voxel_size m"
ctl map create quickstart --voxel-size "$voxel_size" --truncation-voxels "$truncation" >/dev/null
status=0
ctl play "$dataset" --map quickstart ${play[@]+"${play[@]}"} | tee "$keep/play.log" || status=$?
case $status in
    0 | 4) ;; # 4: some frames were refused, and play has said why
    *) exit 1 ;;
esac
info=$(ctl --json map info quickstart)
low=$(json active_min_m <<<"$info") high=$(json active_max_m <<<"$info")
[ -n "$low$high" ] || fail "the map stayed empty; the lines of play above say what was skipped and why"
[ -n "$z" ] || z=$(awk -v lo="${low##*,}" -v hi="${high##*,}" -v level="$level" \
    'BEGIN { printf "%.3f", level != "none" && lo < level && level < hi ? level : (lo + hi) / 2 }')

echo "== asking the map"
ctl mesh quickstart -o "$out/mesh.ply" >/dev/null
ctl slice quickstart --z "$z" --png "$out/esdf.png" >/dev/null
ctl view quickstart --png "$out/view.png" >/dev/null

# A thousand points spread over the map's box, the same ones every time.
awk -v lo="$low" -v hi="$high" '
    function place(a, b, step, i) { return a + (b - a) * (i * step - int(i * step)) }
    BEGIN {
        split(lo, a, ",")
        split(hi, b, ",")
        print "x,y,z"
        for (i = 1; i <= 1000; i++)
            printf "%.6f,%.6f,%.6f\n", place(a[1], b[1], 0.8191725134, i), place(a[2], b[2], 0.6710436067, i),
                place(a[3], b[3], 0.5497004779, i)
    }' >"$ipc/points.csv"
answer=$(ctl --json query points quickstart -i "$ipc/points.csv" -o "$ipc/distances.csv")

row() { printf '%-24s %s\n' "$1" "$2"; }
echo
row frames "$(json frames <<<"$info")"
row "ms per frame" "$(awk '/^ms per frame/ { print $4 }' "$keep/play.log")"
row voxels "$(json voxels <<<"$info")"
row "bytes per voxel" "$(printf '%.2f' "$(json bytes_per_voxel <<<"$info")")"
row "query of 1000 points, ms" "$(printf '%.2f' "$(json latency_ms <<<"$answer")")"
echo
row mesh "$out/mesh.ply"
row picture "$out/view.png"
row "distances at z = $z m" "$out/esdf.png"
echo
echo "$((SECONDS - started)) s in all; the daemon ends now"
