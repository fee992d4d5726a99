#!/usr/bin/env bash
# voxelctl mesh and view, asked for everything that can go wrong: a worded refusal, the right exit code, and no file
# that is half of one.
#
#   test_mesh_view.sh BIN_DIR SOURCE_ROOT
set -euo pipefail

bin=$1
# shellcheck source=tests/system/voxelctl/common.sh
. "$2/tests/system/voxelctl/common.sh"

# Nothing but what is named may lie in the folder of outputs.
only() {
    local left
    checks=$((checks + 1))
    left=$(cd "$work/out" && find . -mindepth 1 -printf '%P\n' | sort | tr '\n' ' ')
    [ "$left" = "${*:+$* }" ] || fail "files '$left' instead of '$*'"
}

# shellcheck disable=SC2317 # expect calls it
limited() { # as if the disk were full after 8 KiB
    (ulimit -f 8 && ctl "$@")
}

mkdir -p "$work/out" "$work/one"
start_daemon
out=$work/out

# ---------------------------------------------------------------- maps with little in them
ctl map create empty --voxel-size 0.05 >/dev/null
ctl map create one --voxel-size 0.05 >/dev/null
ctl map create room --voxel-size 0.05 >/dev/null
printf '\0\0\200\77\0\0\0\0\0\0\0\0' >"$work/one/0.bin" # one point at 1 0 0
printf '1 0 0 0 0 1 0 0 0 0 1 0\n' >"$work/one/poses.txt"
expect 0 'made surface +1 ' ctl play "$work/one" --format xyz32 --poses "$work/one/poses.txt" --map one
"$bin/genworkload" --scene room --frames 3 --output "$work/room.vxwl" >/dev/null
expect 0 'made surface' ctl play "$work/room.vxwl" --map room

expect 0 'no surface yet' ctl mesh empty -o "$out/e.ply"
expect 0 'no surface yet' ctl mesh empty -o "$out/e.glb"
expect 0 ' vertices' ctl mesh one -o "$out/one.glb"
expect 0 ' vertices' ctl mesh one -o "$out/one.ply"
expect 1 'play something into it first' ctl view empty --png "$out/no.png" --depth "$out/no_depth.png"
expect 0 'of it shows the map|nothing of the map is in it' ctl view one --png "$out/one.png" --depth "$out/d.png" --normals "$out/n.png" --size 64x48
only d.png e.glb e.ply n.png one.glb one.ply one.png
rm -f "$out"/*

# ---------------------------------------------------------------- wrong questions
expect 1 'make it with' ctl mesh nosuch -o "$out/m.glb"
expect 1 'make it with' ctl mesh nosuch -o "$out/m.glb" --region 0,0,0,1,1,1
expect 1 'make it with' ctl view nosuch --depth "$out/d.png"
for weight in 0 256 1e3 nan -1 ''; do
    expect 2 'min-weight' ctl mesh room -o "$out/m.ply" --min-weight "$weight"
done
for region in nan,0,0,1,1,1 inf,0,0,1,1,1 1,2,3 0,0,0,1,1,-1 ''; do
    expect 2 'region' ctl mesh room -o "$out/m.ply" --region="$region"
done
expect 2 'none of ply, ply-ascii, glb' ctl mesh room -o "$out/m.obj" --format obj
expect 2 'needs the name of a map' ctl mesh room
expect 2 'needs the name of a map' ctl view room
expect 2 'both want stdout' ctl --json view room --depth -
expect 2 'only one file' ctl view room --depth - --normals -
expect 2 'depth-scale' ctl view room --depth "$out/d.png" --depth-scale nan
expect 2 'size' ctl view room --depth "$out/d.png" --size 0x480
expect 2 'pose' ctl view room --depth "$out/d.png" --pose 0,0,0,nan,0,0,1
only

# ---------------------------------------------------------------- files that cannot be
for file in "$work/none/m" "$out" /dev/full; do
    for format in ply ply-ascii glb; do
        expect 1 'cannot (write|be written)' ctl mesh room -o "$file" --format $format
    done
    for which in png depth normals; do
        expect 1 'cannot (write|be written)' ctl view room --$which "$file" --size 64x48
    done
done
only
echo old >"$out/m.ply"
for format in ply ply-ascii glb; do
    expect 1 'cannot (write|be written)' limited mesh room -o "$out/m.ply" --format $format
done
expect 1 'cannot (write|be written)' limited view room --png "$out/v.png" --size 640x480 --samples 1
expect 1 'UNAVAILABLE' limited --json mesh room -o "$out/m.ply"
only m.ply
checks=$((checks + 1))
[ "$(cat "$out/m.ply")" = old ] || fail "a mesh that found no room has changed the file that was there"
rm -f "$out"/*

# ---------------------------------------------------------------- and what is right
expect 0 '"format":"glb"' ctl --json mesh room -o "$out/M.GLB"
expect 0 '"format":"ply-ascii"' ctl --json mesh room -o "$out/m.txt" --format ply-ascii
expect 0 '"format":"ply"' ctl --json mesh room -o "$out/m"
expect 0 '"triangles":0,' ctl --json mesh room -o "$out/far.glb" --region 1e6,0,0,2e6,1,1
expect 0 'no surface in the region' ctl mesh room -o "$out/far.glb" --region 1e6,0,0,2e6,1,1
expect 0 '"triangles":[1-9]' ctl --json mesh room -o "$out/part.glb" --region=-1,-1,0,1,1,1
ctl mesh room -o - --format glb 2>/dev/null | cmp -s - "$out/M.GLB" || fail "the .glb on stdout is another"
ctl mesh room -o "$out/all.ply" --region=-100,-100,-100,100,100,100 >/dev/null
count() { grep -a "^element $2" "$1" | cut -d' ' -f3; }
checks=$((checks + 2))
[ "$(count "$out/all.ply" face)" = "$(count "$out/m" face)" ] || fail "a region that holds all has other faces"
[ "$(count "$out/all.ply" vertex)" = "$(count "$out/m" vertex)" ] || fail "its chunks are not welded"
expect 0 '"intrinsics":\[[0-9.]+,[0-9.]+,79.5,59.5\]' ctl --json view room --depth "$out/d.png" --size 160x120 --eye 0,0,1.2 --target 1,0,1
checks=$((checks + 1))
[ "$(od -An -tu1 -j24 -N2 "$out/d.png" | tr -s ' ')" = ' 16 0' ] || fail "depths are not 16-bit grey"
expect 0 'farther away than 1 m' ctl view room --depth "$out/d.png" --depth-scale 65534 --size 64x48
kill "$daemon"
wait "$daemon" || fail "the daemon ended with $?"
daemon=
expect 3 'daemon' ctl mesh room -o "$out/gone.ply"

finish 'voxelctl mesh and view'
