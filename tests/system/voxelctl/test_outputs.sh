#!/usr/bin/env bash
# voxelctl where users go wrong: options that mean nothing, rows that do not fit, two outputs that are one, links,
# pipes, a signal while a file is written, a daemon that dies.  Nothing may pass in silence, and no file be half.
#
#   test_outputs.sh BIN_DIR SOURCE_ROOT
set -euo pipefail

bin=$(realpath "$1")
# shellcheck source=tests/system/voxelctl/common.sh
. "$2/tests/system/voxelctl/common.sh"
out=$work/out

# ---------------------------------------------------------------- options that mean nothing beside the others
options() {
    local kind
    for kind in boxes rays configurations paths; do
        expect 2 "query $kind takes no option --status" ctl query $kind m --status
        expect 2 "query $kind takes no option --unknown-distance" ctl query $kind m --unknown-distance
    done
    for kind in points spheres boxes configurations paths; do
        expect 2 "query $kind takes no option --max-range" ctl query $kind m --max-range 3
    done
    for kind in points spheres boxes rays; do
        expect 2 "query $kind takes no option --unknown" ctl query $kind m --unknown free
        expect 2 "query $kind takes no option --robot" ctl query $kind m --robot r.csv
    done
    expect 2 'query spheres takes no option --unknown-distance' ctl query spheres m --unknown-distance
    expect 2 '"field":"usage","message":"query rays takes no option --status' ctl --json query rays m --status
    expect 2 'depth-scale belongs to --depth' ctl view m --png a --depth-scale 5
    expect 2 'samples belongs to --png' ctl view m --depth a --samples 2
    expect 2 'heights belongs to --png' ctl view m --normals a --heights
    expect 2 'up belongs to --eye' ctl view m --png a --up 0,1,0
    expect 2 'at most 134217728' ctl view m --png a --size 8192x8192
    expect 2 '16 .. 8192' ctl view m --png a --size 15x8192
    expect 2 '16 .. 8192' ctl view m --png a --size 16x8193
}

# Options of play that the set has no use for; and what becomes of colours.
sets() {
    mkdir "$work/points" "$work/7"
    printf '\0\0\200\77\0\0\0\0\0\0\0\0' >"$work/points/0.xyz32"
    printf '0 0 0 0 0 0 1\n' >"$work/points/poses.txt"
    expect 1 'points .xyz32. has no use for intrinsics' ctl play "$work/points" --map room --intrinsics 1,1,1,1
    expect 1 'points .xyz32. has no use for depth_scale' ctl play "$work/points" --map room --depth-scale 5000
    expect 1 'another pose list has no use' ctl play "$work/room.vxwl" --map room --poses "$work/points/poses.txt"
    expect 1 'another depth scale has no use' ctl play "$work/room.vxwl" --map room --depth-scale 5000
    ctl map create tinted --voxel-size 0.1 --colour >/dev/null
    expect 0 'colour +of 0 frames: the map keeps colours, and the set brings none' ctl play "$work/room.vxwl" --map tinted
    local i
    for i in 0 1 2; do # depth images and colours by voxelctl itself
        expect 0 'shows the map' ctl view room --depth "$work/7/frame-$i.depth.png" --size 64x48
        [ $i = 0 ] || ctl view room --png "$work/7/frame-$i.color.png" --size 64x48 >/dev/null
        printf '1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n' >"$work/7/frame-$i.pose.txt"
    done
    echo broken >"$work/7/frame-2.color.png"
    expect 0 'colour +of 1 frames' ctl play "$work/7" --map tinted
    expect 0 '1 frames have no colour image, the first of them frame-0.depth.png' ctl play "$work/7" --map tinted
    expect 0 '"frames_with_colour":1,"frames_without_colour":1,"colours_not_used":1,"colours_not_used_why":"frame-2.color.png' \
        ctl --json play "$work/7" --map tinted
    expect 0 'is gone' ctl map delete tinted
}

# ---------------------------------------------------------------- rows
rows() {
    printf 'x,y,z\n1,2,3\n1,2,3,4\n' >"$work/in.csv"
    expect 1 'line 3 has too many columns: 4, the header names 3' ctl query points room -i "$work/in.csv"
    printf 'id,x,y,z\n"a,b",1,2,3\nc,1,2\n' >"$work/in.csv"
    expect 1 'line 3 has too few columns: 3, the header names 4' ctl query points room -i "$work/in.csv"
    printf 'id,x,y,z\n"a,b",0,0,1.2\n' >"$work/in.csv"
    expect 0 '^0,0,1.2,' ctl query points room -i "$work/in.csv"
    printf 'x,y,z,radius\n0,0,0,0.05\n' >"$work/robot.csv"
    local number
    for number in nan inf -nan; do
        printf 'path,x,y,z,qx,qy,qz,qw\n1,0,0,1,0,0,0,1\n%s,0,0,1,0,0,0,1\n' "$number" >"$work/in.csv"
        expect 1 "line 3: column 1, '$number', is no finite number" ctl query paths room -i "$work/in.csv" --robot "$work/robot.csv"
    done
    printf 'path,x,y,z,qx,qy,qz,qw\n1,0,0,1,0,0,0,1\n2,0,0,1,0,0,0,1\n1,0,0,1,0,0,0,1\n' >"$work/in.csv"
    expect 1 'path 1 goes on behind' ctl query paths room -i "$work/in.csv" --robot "$work/robot.csv"
    printf 'path,x,y,z,qx,qy,qz,qw\n1,0,0,1,0,0,0,1\n' >"$work/in.csv"
    printf 'x,y,z,radius\n0,0,0,nan\n' >"$work/robot.csv"
    expect 1 "robot.csv line 2: column 4, 'nan', is no finite number" ctl query paths room -i "$work/in.csv" --robot "$work/robot.csv"
}

# ---------------------------------------------------------------- several outputs
# shellcheck disable=SC2317 # expect calls it
limited() { # as if the disk were full after 16 KiB
    (ulimit -f 16 && ctl "$@")
}

only() { # nothing but these files lies in $out
    local left
    left=$(cd "$out" && find . -mindepth 1 -printf '%P\n' | sort | tr '\n' ' ')
    check "files '$left' instead of '$*'" [ "$left" = "${*:+$* }" ]
}

several() {
    mkdir -p "$out/sub"
    ln -s sub/../a "$out/link"
    ln -s nowhere.pgm "$out/c.pgm.yaml"
    expect 2 'png and --depth would be one file' ctl view room --png "$out/a" --depth "$out/a"
    expect 2 'depth and --normals would be one file' ctl view room --normals "$out/sub/../a" --depth "$out/a"
    expect 2 'png and --normals would be one file' ctl view room --png "$out/link" --normals "$out/a"
    (cd "$out" && expect 2 'would be one file' ctl view room --png a --normals ./a && echo "$failures" >"$work/count")
    failures=$(cat "$work/count")
    expect 2 'would be one file' ctl view room --png - --normals /dev/stdout
    ln -sf c.pgm "$out/c.pgm.yaml"
    expect 2 'are one file' ctl costmap room --min-z 1 --max-z 1 -o "$out/c.pgm"
    rm "$out/c.pgm.yaml" "$out/link"
    only sub
    # The second has no room: the first is as it was.
    echo old >"$out/a.png"
    expect 1 'cannot (write|be written)' ctl view room --png "$out/a.png" --depth /dev/full --size 64x48
    expect 1 'cannot (write|be written)' limited view room --png "$out/a.png" --normals "$out/n.png" --size 640x480 --samples 1
    expect 1 'cannot (write|be written)' ctl view room --png "$out/a.png" --normals "$out/none/n.png" --size 64x48
    check 'the first of two outputs was replaced' [ "$(cat "$out/a.png")" = old ]
    echo old >"$out/c.pgm"
    mkdir "$out/c.pgm.yaml"
    expect 1 'cannot write' ctl costmap room --min-z 1 --max-z 1 -o "$out/c.pgm"
    check 'the image was replaced without its description' [ "$(cat "$out/c.pgm")" = old ]
    only a.png c.pgm c.pgm.yaml sub
    rmdir "$out/c.pgm.yaml"
    expect 0 'of it shows the map' ctl view room --png "$out/a.png" --depth "$out/d.png" --normals "$out/n.png" --size 64x48
    expect 0 'cells of' ctl costmap room --min-z 1 --max-z 1 -o "$out/c.pgm"
    only a.png c.pgm c.pgm.yaml d.png n.png sub
    rm -r "$out"
    mkdir "$out"
}

# ---------------------------------------------------------------- links
links() {
    mkdir "$out/sub"
    ln -s sub/new.csv "$out/relative"
    ln -s "$out/sub/other.csv" "$out/absolute"
    ln -s relative "$out/twice"
    ln -s loop "$out/loop"
    printf 'x,y,z\n0,0,1.2\n' >"$work/in.csv"
    expect 0 '1 answers' ctl query points room -i "$work/in.csv" -o "$out/twice"
    check 'a dangling link was replaced' test -L "$out/twice" -a -L "$out/relative" -a -f "$out/sub/new.csv"
    expect 0 '1 answers' ctl query points room -i "$work/in.csv" -o "$out/absolute"
    check 'a dangling link was replaced' test -L "$out/absolute" -a -f "$out/sub/other.csv"
    expect 1 'its links lead nowhere' ctl query points room -i "$work/in.csv" -o "$out/loop"
    ln -s "$out/none/x" "$out/broken"
    expect 1 'cannot write' ctl query points room -i "$work/in.csv" -o "$out/broken"
    rm -r "$out"
    mkdir "$out"
}

# ---------------------------------------------------------------- pictures of odd shapes
shapes() {
    local size
    for size in 16x8192 8192x16 17x33 16x16 8191x17; do
        expect 0 '[1-9][0-9]* % of it shows the map|0\.[0-9]*[1-9][0-9]* % of it' ctl view room --png "$out/v.png" --size $size --samples 1
        check "the picture of $size has another size" [ "$(od -An -tu1 -j18 -N2 "$out/v.png" | awk '{ print $1 * 256 + $2 }')" = "${size%x*}" ]
    done
    expect 0 'nothing of the map is in it' ctl view room --png "$out/v.png" --size 64x48 --eye 50,50,50 --target 60,60,60
}

# ---------------------------------------------------------------- pipes and signals
# The child of a shell that runs it in the background ignores SIGINT; SIGTERM goes the same way.
signalled() { # WORDS PATTERN: $child gets a signal and ends with 130
    local code=0
    kill -TERM "$child"
    wait "$child" || code=$?
    check "$1: exit code $code" [ "$code" -eq 130 ]
    check "$1: no '$2' in $(cat "$work/stderr")" grep -q "$2" "$work/stderr"
}

pipes() {
    printf 'x,y,z\n0,0,1.2\n' >"$work/in.csv"
    mkfifo "$out/pipe"
    "$bin/voxelctl" query points room -i "$work/in.csv" -o "$out/pipe" >"$work/stdout" 2>"$work/stderr" &
    child=$!
    until grep -q 'a pipe that nobody reads yet' "$work/stderr"; do kill -0 "$child"; done
    signalled 'a pipe without a reader' 'interrupted while nobody read'
    cat "$out/pipe" >"$work/piped" &
    local reader=$!
    expect 0 '1 answers' ctl query points room -i "$work/in.csv" -o "$out/pipe"
    wait "$reader"
    check 'what went through the pipe' grep -q '^0,0,1.2,' "$work/piped"
    # A reader that goes away: the rows do not fit into the pipe, so the writer notices.
    awk 'BEGIN { print "x,y,z"; for (i = 0; i < 20000; i++) print "0,0,1.2" }' >"$work/many.csv"
    head -c 1 "$out/pipe" >/dev/null &
    reader=$!
    expect 1 'the program that read it has ended' ctl query points room -i "$work/many.csv" -o "$out/pipe"
    wait "$reader"
    rm "$out/pipe"
}

# Bytes of the file in $out that a program has open.
bytes_under_way() {
    local file size=0
    for file in "/proc/$1/fd"/*; do
        case $(readlink "$file" || true) in "$out"/*) size=$(stat -L -c %s "$file" || echo 0) ;; esac
    done
    echo "$size"
}

# A signal while the rows are written: the writer stands still behind a full pipe, or writes to a file.
interrupted_writing() {
    mkfifo "$out/pipe"
    "$bin/voxelctl" query points room -i "$work/many.csv" -o "$out/pipe" >"$work/stdout" 2>"$work/stderr" &
    child=$!
    exec 7<"$out/pipe"
    read -r -u 7 _ # the first row is there: it writes
    signalled 'a signal while a pipe is full' 'is not whole'
    exec 7<&-
    rm "$out/pipe"
    # The file has no name before it is whole.
    awk 'BEGIN { print "x,y,z"; for (i = 0; i < 2000000; i++) print "0,0,1.2" }' >"$work/many.csv"
    echo old >"$out/rows.csv"
    "$bin/voxelctl" query points room -i "$work/many.csv" -o "$out/rows.csv" >"$work/stdout" 2>"$work/stderr" &
    child=$!
    until [ "$(bytes_under_way "$child")" -gt 100000 ]; do kill -0 "$child"; done
    signalled 'a signal while rows are written' 'is as it was'
    check 'the old file is gone' [ "$(cat "$out/rows.csv")" = old ]
    only rows.csv
    rm "$out/rows.csv" "$work/many.csv"
}

# ---------------------------------------------------------------- the daemon dies
dies() {
    printf 'x,y,z\n0,0,1.2\n' >"$work/in.csv"
    mkfifo "$out/pipe"
    # A map file on its way through a full pipe: the daemon is in the midst of it.
    ctl map create fine --voxel-size 0.01 >/dev/null
    ctl play "$work/room.vxwl" --map fine --frames 2 >/dev/null
    "$bin/voxelctl" map export fine --format nvdb -o "$out/pipe" >"$work/stdout" 2>"$work/stderr" &
    child=$!
    exec 7<"$out/pipe"
    head -c 1 <&7 >/dev/null
    kill -KILL "$daemon"
    wait "$daemon" 2>/dev/null || true
    daemon=
    cat <&7 >/dev/null
    exec 7<&-
    local code=0
    wait "$child" || code=$?
    check "a daemon that died in a call: exit code $code" [ "$code" -eq 3 ]
    check "words of a daemon that died: $(cat "$work/stderr")" grep -q 'the daemon went away' "$work/stderr"
    expect 3 'no daemon answers' ctl query points room -i "$work/in.csv"
}

options
start_daemon
ctl map create room --voxel-size 0.05 >/dev/null
"$bin/genworkload" --scene room --frames 4 --frames-per-orbit 60 --output "$work/room.vxwl" 2>/dev/null
expect 0 'made surface' ctl play "$work/room.vxwl" --map room
mkdir -p "$out"
sets
rows
several
links
shapes
rm -f "$out"/*
pipes
interrupted_writing
check "clients that end as they should are called doomed: $(grep -m 1 session_doomed "$work/voxeld.log")" \
    [ "$(grep -c session_doomed "$work/voxeld.log")" -eq 0 ]
dies
finish 'voxelctl outputs'
