#!/usr/bin/env bash
# deploy/quickstart.sh, with programs that are built already: what it leaves, from another folder, with spaces in paths; and
# that nothing stays behind when it is interrupted.
#   test_quickstart.sh BIN_DIR ROOT
set -euo pipefail
bin=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
    echo "FAIL: $1"
    failures=$((failures + 1))
}

# True when FILE begins with the bytes MAGIC.
begins() { [ "$(head -c "${#2}" "$1" 2>/dev/null | tr -d '\0')" = "$2" ]; }

mkdir "$work/some where"
cd "$work/some where"
"$bin/genworkload" --scene street --frames 2 --output "a street.vxwl" 2>/dev/null
"$root/deploy/quickstart.sh" "a street.vxwl" --bin "$bin" --out "the results" --backend cpu --frames 1 >log 2>&1 ||
    { cat log; fail "quickstart failed"; }
begins "the results/mesh.ply" ply || fail "no mesh"
for picture in view.png esdf.png; do
    begins "the results/$picture" "$(printf '\211PNG')" || fail "no $picture"
done
grep -q 'voxels of 0.2 m' log || fail "a LiDAR is not mapped with 20 cm voxels"
grep -qE '^frames +1$' log || fail "--frames 1 did not reach play"
for row in 'ms per frame' voxels 'bytes per voxel' 'query of 1000 points, ms'; do
    grep -qE "^$row +[0-9.]+$" log || fail "no row '$row'"
done
grep -q "the results/mesh.ply" log || fail "the mesh's place is not said"

# The room is large enough to be interrupted while frames flow.
mkfifo ready
setsid "$root/deploy/quickstart.sh" --bin "$bin" --out r2 --backend cpu --rate 2 >ready 2>&1 &
quickstart=$!
socket_folder=''
while IFS= read -r line; do
    echo "$line" >>log2
    case $line in
        '== mapping'*)
            socket_folder=$(dirname "${line#== mapping }")
            kill -TERM -- "-$quickstart"
            ;;
    esac
done <ready
status=0
wait "$quickstart" || status=$?
[ "$status" -eq 143 ] || { cat log2; fail "an interrupted quickstart ended with $status"; }
if [ -z "$socket_folder" ] || [ -e "$socket_folder" ]; then
    fail "'$socket_folder' stayed behind"
fi
if pgrep -f -- "--ipc-dir $socket_folder" >/dev/null; then
    fail "the daemon stayed behind"
fi

status=0
"$root/deploy/quickstart.sh" "no such dataset" --bin "$bin" >log3 2>&1 || status=$?
if [ "$status" -ne 2 ] || ! grep -q "there is no dataset 'no such dataset'" log3; then
    fail "a missing dataset is not refused"
fi
echo "quickstart: $failures failures"
exit $((failures > 0))
