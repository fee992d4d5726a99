#!/usr/bin/env bash
# voxelctl against a real daemon (cpu backend), through every verb.
#
#   test_voxelctl.sh verbs|recorded BIN_DIR SOURCE_ROOT
#
# verbs:    a rendered room: every command, its files, its JSON, its exit codes
# recorded: every recorded set plays whole (VOXELD_TEST_DATA, or ../shared/data beside the checkout)
set -euo pipefail

what=$1 bin=$2 root=$3
data=${VOXELD_TEST_DATA:-$root/../shared/data}
# shellcheck source=tests/system/voxelctl/common.sh
. "$root/tests/system/voxelctl/common.sh"

# Value of a key that occurs once in the JSON line on stdin.
json() { sed -n "s/.*\"$1\":\(\"[^\"]*\"\|[^,}]*\).*/\1/p" | tr -d '"'; }

png_size() { od -An -tu1 -j16 -N8 "$1" | awk '{ print ($1 * 16777216 + $2 * 65536 + $3 * 256 + $4) "x" ($5 * 16777216 + $6 * 65536 + $7 * 256 + $8) }'; }
# shellcheck disable=SC2317 # check calls it
is_png() { [ "$(head -c 4 "$1" | od -An -tx1 | tr -d ' ')" = 89504e47 ]; }

usage() {
    expect 2 'usage: voxelctl' ctl
    expect 0 'usage: voxelctl' ctl help
    expect 0 'exit codes' ctl --help
    expect 0 '^voxelctl [0-9]' ctl --version
    expect 0 '^\{"version":"[0-9.]+"\}$' ctl version --json
    local noun
    for noun in map play mesh query slice explain costmap view stats ping shutdown; do
        expect 0 "^usage: voxelctl $noun" ctl help "$noun"
        expect 0 'exit codes' ctl "$noun" --help
    done
    expect 2 "no command 'mop'" ctl mop
    expect 2 'no option --voxels' ctl map create a --voxels 1
    expect 2 'needs --voxel-size' ctl map create a
    expect 2 'outside' ctl map create a --voxel-size 0
    expect 2 "no verb 'make'" ctl map make a
    expect 2 'needs the name' ctl map info
    expect 2 'takes no name' ctl map list a
    expect 2 'needs a path and --map' ctl play x
    expect 2 'none of auto' ctl play x --map m --format ply
    expect 2 'commas' ctl play x --map m --intrinsics 1,2,3
    expect 2 'points or spheres' ctl query cubes m
    expect 2 'WIDTHxHEIGHT' ctl view m --png f --size 3
    expect 2 'both want stdout' ctl --json mesh m -o -
    # With --json an error is an object, wherever the option stands; and a full disk is no success.
    expect 2 '^\{"error":\{"code":"INVALID_ARGUMENT","field":"usage","message":"--voxel-size: 0 is outside' ctl map create a --voxel-size 0 --json
    expect 2 '^\{"error":.*no command' ctl --json mop
    expect 1 'cannot write to stdout' sh -c "'$bin/voxelctl' version --json >/dev/full"
    expect 1 'cannot write to stdout' sh -c "'$bin/voxelctl' version >/dev/full"
    expect 1 'cannot read' ctl query points m -i /
    expect 1 "too long for a socket's path" ctl --ipc-dir "$(printf '%0400d' 0)" ping
    expect 3 'no daemon answers.*' ctl stats
    expect 3 'start one with: voxeld --ipc-dir' ctl map list
    expect 3 '"error":\{"code":"UNAVAILABLE"' ctl --json map list
    expect 3 '/elsewhere' ctl --ipc-dir "$work/elsewhere" ping
}

maps() {
    expect 0 '^no maps' ctl map list
    expect 0 'voxels of 0.05 m, tsdf' ctl map create room --voxel-size 0.05
    expect 1 'ALREADY_EXISTS' ctl map create room --voxel-size 0.1
    expect 1 'is no map name' ctl map create 'a b' --voxel-size 0.1
    expect 0 '"voxels":0,' ctl --json map info room
    expect 0 'the map is empty' ctl map info room
    expect 1 'play something into it first' ctl slice room --z 1 --png "$work/no.png"
    expect 1 'play something into it first' ctl view room --png "$work/no.png"
    check "a picture of an empty map was left behind" [ ! -e "$work/no.png" ]
    expect 1 'voxelctl map create nosuch --voxel-size' ctl map info nosuch
    expect 0 '"origin_m":\[500000,4000000,-3.5\]' ctl --json map create far --voxel-size 0.2 --origin 5e5,4e6,-3.5 --esdf-max-distance 3
    expect 0 '"maps":\[\{"map":"far".*"map":"room"' ctl --json map list
    expect 0 'is gone' ctl map delete far
    expect 1 'NOT_FOUND' ctl map delete far
    expect 2 'outside' ctl map create d --voxel-size 0.1 --half-life 0
    expect 2 'takes no option --box' ctl map create d --voxel-size 0.1 --box 0,0,0,1,1,1
    expect 0 'voxels of' ctl map create d --voxel-size 0.1 --half-life 2.5 --spare-seen --forget-radius 40 --sweep-words 100
    expect 2 'needs --box' ctl map protect d
    expect 2 'needs --box' ctl map protect d --box 0,0,0,1,1,1 --ball 0,0,0,1
    expect 2 'needs --region' ctl map unprotect d
    expect 0 'region 1 is protected' ctl map protect d --box 0,0,0,1,2,3
    expect 0 '"map":"d","region":2' ctl --json map protect d --ball 4,5,6,7
    expect 1 'INVALID_ARGUMENT' ctl map protect d --box 1,1,1,0,0,0
    expect 0 'half-life 2.5 s .spares what is seen.' ctl map info d
    expect 0 'protected 2 .*ball of 7 m round .4.000, 5.000, 6.000.' ctl map info d
    expect 0 '"half_life_s":2.5,"decay_spares_seen":true,"forget_radius_m":40,"sweep_words":100,.*"regions":\[\{"id":1,"min_m":\[0,0,0\],"max_m":\[1,2,3\]\},\{"id":2' ctl --json map info d
    expect 0 'no longer protected' ctl map unprotect d --region 1
    expect 1 'NOT_FOUND' ctl map unprotect d --region 1
    check 'a hint that does not help' test -z "$(ctl map unprotect d --region 1 2>&1 | grep 'make it with')"
    expect 0 'truncation 3 voxels, weighting inverse_square' ctl map info d
    expect 2 'is inverse_square or constant, not' ctl map create even --voxel-size 0.1 --weighting even
    expect 0 '"weighting":"constant"' ctl --json map create even --voxel-size 0.1 --weighting constant
    expect 0 'truncation 3 voxels, weighting constant' ctl map info even
    expect 0 'is gone' ctl map delete even
    expect 2 'takes no option --weighting' ctl map export d --format nvdb -o "$work/no.nvdb" --weighting constant
    expect 0 '"memory":\{"topology_bytes":0,' ctl --json stats
    expect 0 'voxels of' ctl map create tinted --voxel-size 0.1 --colour --label
    expect 0 '"colour":true,"label":true' ctl --json map info tinted
    expect 0 'colours 0 B, labels 0 B' ctl map info tinted
    expect 0 '"colour":false,"label":false' ctl --json map info d
    expect 2 'takes no option --colour' ctl map export tinted --format nvdb -o "$work/no.nvdb" --colour
    expect 0 'is gone' ctl map delete tinted
    expect 0 'is gone' ctl map delete d
}

play() {
    "$bin/genworkload" --scene room --frames 6 --frames-per-orbit 60 --output "$work/room.vxwl" 2>/dev/null
    expect 1 'make it with: voxelctl map create nosuch' ctl play "$work/room.vxwl" --map nosuch
    expect 1 'does not exist' ctl play "$work/none.vxwl" --map room
    expect 0 'made surface' ctl play "$work/room.vxwl" --map room
    expect 0 '"frames":6,' ctl --json map info room
    first=$(ctl --json map digest room | json digest)
    check "'$first' is no digest" grep -Eqx '[0-9a-f]{64}' <<<"$first"
    check "digest is another as text" [ "$first" = "$(ctl map digest room)" ]
    ctl map create again --voxel-size 0.05 >/dev/null
    expect 0 '"complete":true,"frames":6,"integrated":6,"refused":0' ctl --json play "$work/room.vxwl" --map again --rate 200
    check "the same frames at another rate make another map" [ "$(ctl map digest again)" = "$first" ]
    expect 0 'is empty' ctl map clear again
    check "clear changes nothing" [ "$(ctl map digest again)" != "$first" ]
    expect 0 '"integrated":2,' ctl --json play "$work/room.vxwl" --map again --frames 2
    head -c -100 "$work/room.vxwl" >"$work/cut.vxwl"
    expect 4 'ends inside frame 5 of 6' ctl play "$work/cut.vxwl" --map again
    expect 4 '"refusals":\[\{"frame":5,"name":"cut.vxwl frame 5","code":"INVALID_ARGUMENT"' ctl --json play "$work/cut.vxwl" --map again
    head -c 100 "$work/room.vxwl" >"$work/nothing.vxwl"
    expect 5 'no frame went into the map' ctl play "$work/nothing.vxwl" --map again
    expect 0 'every reading was beyond the maximum range' ctl play "$work/room.vxwl" --map again --frames 1 --max-range 0.2
    # An interrupt ends a slow play; what was sent stays.
    ctl map create slow --voxel-size 0.1 >/dev/null
    "$bin/voxelctl" --json play "$work/room.vxwl" --map slow --rate 0.01 >"$work/out" 2>"$work/err" &
    local player=$! code=0
    until [ "$(ctl --json map info slow | json frames)" = 1 ]; do kill -0 "$player"; done
    kill -INT "$player"
    wait "$player" || code=$?
    check "an interrupted play ends with $code" [ "$code" -eq 130 ]
    check "an interrupted play says '$(cat "$work/err")'" grep -q interrupted "$work/err"
}

# Boxes, rays, configurations and paths.
shapes() {
    expect 0 '^x,y,z,distance_m,gx,gy,gz,state,unknown_distance_m$' ctl query points room -i "$work/in.csv" --unknown-distance
    expect 0 '^100,100,100,nan,0,0,0,unknown,0.000000$' ctl query points room -i "$work/in.csv" --unknown-distance
    expect 0 '"outside":false,"unknown_distance_m":0[,.}]' ctl --json query points room -i "$work/in.csv" --unknown-distance
    expect 2 'takes no option --unknown-distance' ctl query spheres room -i "$work/spheres.csv" --unknown-distance
    printf 'min_x,min_y,min_z,max_x,max_y,max_z\n100,100,100,100.1,100.1,100.1\n-0.2,-0.2,1,0.2,0.2,1.4\n' >"$work/boxes.csv"
    expect 0 '^100,100,100,100.1,100.1,100.1,0,0,8,0' ctl query boxes room -i "$work/boxes.csv"
    expect 0 '"n":2,"with_occupied":[0-9]*,"with_unknown":[12],.*"answers":\[\{"free":0,"occupied":0,"unknown":8,"outside":false\}' \
        ctl --json query box room -i "$work/boxes.csv"
    printf 'x,y,z,dx,dy,dz\n0,0,1.2,0,0,-1\n100,100,100,1,0,0\n' >"$work/rays.csv"
    expect 0 '^x,y,z,dx,dy,dz,range_m,nx,ny,nz,state,unknown_from_m$' ctl query rays room -i "$work/rays.csv"
    expect 0 '^100,100,100,1,0,0,nan,0.000000,0.000000,0.000000,unknown,0.000000$' ctl query rays room -i "$work/rays.csv"
    expect 0 '"n":2,"hits":1,' ctl --json query ray room -i "$work/rays.csv" --max-range 5
    expect 2 '--max-range' ctl query rays room -i "$work/rays.csv" --max-range 0
    printf 'x,y,z,radius\n0,0,0,0.05\n0.1,0,0,0.05\n' >"$work/robot.csv"
    printf 'x,y,z,qx,qy,qz,qw\n0,0,1.2,0,0,0,1\n100,0,0,0,0,0,1\n0,0,1.2,0,0,0,3\n' >"$work/poses.csv"
    expect 0 '^touches,sphere,contact,clearance_m,unknown,outside$' ctl query configurations room -i "$work/poses.csv" --robot "$work/robot.csv"
    expect 0 '^0,-1,nan,nan,0.000000,0$' ctl query configurations room -i "$work/poses.csv" --robot "$work/robot.csv"
    expect 0 '^1,0,0.000000,nan,0.000000,0$' ctl query configurations room -i "$work/poses.csv" --robot "$work/robot.csv" --unknown occupied
    expect 0 '^0,-1,nan,nan,0.000000,1$' ctl query configurations room -i "$work/poses.csv" --robot "$work/robot.csv"
    printf 'path,x,y,z,qx,qy,qz,qw\n7,0,0,1.2,0,0,0,1\n7,0,0,-0.5,0,0,0,1\n8,0,0,1.2,0,0,0,1\n8,0,0,1.2,0,0,1,0\n' >"$work/paths.csv"
    expect 0 '"n":2,"touching":1,.*"touches":true,"sphere":[01],"contact":0\.[1-9]' ctl --json query paths room -i "$work/paths.csv" --robot "$work/robot.csv" --unknown free
    expect 0 '2 answers \(1 touch something, 0 meet unknown space\)' \
        ctl query paths room -i "$work/paths.csv" --robot "$work/robot.csv" --unknown free -o "$work/paths-out.csv"
    printf '8,0,0,1.3,0,0,1,0\n' >>"$work/paths.csv"
    expect 1 'path 8 has 3 way-points' ctl query paths room -i "$work/paths.csv" --robot "$work/robot.csv"
    expect 2 'needs --robot' ctl query paths room -i "$work/paths.csv"
    expect 2 'takes no option --robot' ctl query boxes room -i "$work/boxes.csv" --robot "$work/robot.csv"
    expect 2 'report, free or occupied' ctl query paths room --robot "$work/robot.csv" --unknown maybe
    printf 'x,y,z,radius\n0,0,0,50\n' >"$work/large-robot.csv"
    expect 1 'INVALID_ARGUMENT' ctl query configurations room -i "$work/poses.csv" --robot "$work/large-robot.csv"
    expect 1 'STALE_EPOCH' ctl query boxes room -i "$work/boxes.csv" --min-epoch 1000000
}

results() {
    expect 0 'vertices' ctl mesh room -o "$work/room.ply"
    checks=$((checks + 1))
    "$bin/meshcheck" --scene room "$work/room.ply" | tr ' ' '\n' | awk -F= '$1 == "mean" && $2 < 0.01 { good = 1 } END { exit !good }' ||
        fail "mean error of the mesh: $("$bin/meshcheck" --scene room "$work/room.ply")"
    ctl mesh room -o - 2>/dev/null | cmp -s - "$work/room.ply" || fail "the mesh on stdout is another"
    expect 1 'cannot write' ctl mesh room -o "$work/none/m.ply"
    expect 1 'make it with' ctl mesh nosuch -o "$work/m.ply"

    printf 'x,y,z\n0,0,1.2\n100,100,100\nnan,0,0\n' >"$work/in.csv"
    expect 0 '^' ctl query points room -i "$work/in.csv" -o "$work/out.csv"
    check "header of the answers: $(head -n 1 "$work/out.csv")" [ "$(head -n 1 "$work/out.csv")" = x,y,z,distance_m,gx,gy,gz,state ]
    check "the far point: $(sed -n 3p "$work/out.csv")" [ "$(sed -n 3p "$work/out.csv")" = 100,100,100,nan,0,0,0,unknown ]
    check "rows: $(wc -l <"$work/out.csv")" [ "$(wc -l <"$work/out.csv")" -eq 4 ]
    ctl query points room <"$work/in.csv" | cmp -s - "$work/out.csv" || fail "stdin and stdout give other answers"
    # The mesh's own vertices lie on the surface: their distance is next to nothing.
    { echo x,y,z && tail -c +"$(($(grep -abo end_header "$work/room.ply" | cut -d: -f1) + 12))" "$work/room.ply" |
        od -An -v -tf4 -w24 | awk 'NR <= 3000 { print $1 "," $2 "," $3 }'; } >"$work/surface.csv"
    ctl query points room -i "$work/surface.csv" -o "$work/distances.csv" >/dev/null
    # shellcheck disable=SC2016 # awk expands it
    check "distances at the mesh's vertices" awk -F, 'NR > 1 { n++; d = $4 < 0 ? -$4 : $4; if ($4 == "nan" || d > 0.05) bad++ }
        END { if (n < 1000 || bad > n / 100) { print n, "points,", bad, "off"; exit 1 } }' "$work/distances.csv"
    awk 'BEGIN { print "x,y,z"; for (i = 0; i < 200000; i++) print i % 7 - 3 "," i % 5 - 2 "," i % 3 }' >"$work/many.csv"
    expect 0 '"n":200000,' ctl --json query points room -i "$work/many.csv" -o "$work/many-out.csv"
    check "rows of a large batch" [ "$(wc -l <"$work/many-out.csv")" -eq 200001 ]
    printf 'radius,x,y,z\n0.2,0,0,1.2\n0.3,100,0,0\n' >"$work/spheres.csv"
    expect 0 'x,y,z,distance_m,gx,gy,gz,state$' ctl query spheres room -i "$work/spheres.csv"
    expect 0 '100,0,0,nan,0,0,0,unknown,0,0.3,0,1' ctl query spheres room -i "$work/spheres.csv" --status
    printf 'x,y,z,radius\n0,0,1,50\n' >"$work/large.csv"
    expect 1 'INVALID_ARGUMENT' ctl query spheres room -i "$work/large.csv"
    expect 1 "there is no column 'radius'" ctl query spheres room -i "$work/in.csv"
    printf 'x,y,z\n1,2\n' >"$work/short.csv"
    expect 1 'line 2 has too few columns' ctl query points room -i "$work/short.csv"
    expect 1 'cannot read' ctl query points room -i "$work/none.csv"
    printf 'x,y,z\n' >"$work/empty.csv"
    expect 0 '"n":0,.*"answers":\[\]' ctl --json query points room -i "$work/empty.csv"
    expect 1 'STALE_EPOCH' ctl query points room -i "$work/in.csv" --min-epoch 1000000

    shapes

    expect 0 'samples of 0.05 m' ctl slice room --z 1 --png "$work/slice.png"
    check "slice.png is no PNG" is_png "$work/slice.png"
    expect 0 "the map's voxels lie at z" ctl slice room --z 50 --png "$work/slice.png"
    expect 0 '"columns":' ctl --json slice room --z 1 --png "$work/small.png" --max-pixels 40
    expect 0 'no sensor ever saw' ctl explain room 50 50 50
    expect 0 '"state":"(free|occupied|unknown)","why":"(seen_empty|free_cell|measured|never_seen)","voxel":\[.*"unknown_distance_m":' ctl --json explain room 0 0 1.2
    expect 2 'three coordinates' ctl explain room 1 2
    expect 1 'voxelctl map create nosuch' ctl explain nosuch 1 2 3
    expect 0 '[1-9][0-9]* free, [1-9][0-9]* blocked' ctl costmap room --min-z 0.9 --max-z 1.1 -o "$work/cost.pgm" --unknown-free
    check "cost.pgm is no PGM" [ "$(head -c 2 "$work/cost.pgm")" = P5 ]
    check "cost.pgm.yaml says nothing of its image" grep -q '^image: cost.pgm$' "$work/cost.pgm.yaml"
    expect 0 '"unknown":[1-9]' ctl --json costmap room --min-z 0.9 --max-z 1.1 -o "$work/cost.pgm" --inscribed 0.2
    expect 2 'above --max-z' ctl costmap room --min-z 2 --max-z 1 -o "$work/cost.pgm"
    expect 2 'two files' ctl costmap room --min-z 1 --max-z 1 -o /dev/null
    expect 2 'two files' ctl costmap room --min-z 1 --max-z 1 -o -
    expect 1 'inscribed_m' ctl costmap room --min-z 1 --max-z 1 -o "$work/cost.pgm" --inscribed 100
    expect 0 '[1-9][0-9]* % of it shows the map' ctl view room --png "$work/view.png" --size 160x120
    check "size of view.png: $(png_size "$work/view.png")" [ "$(png_size "$work/view.png")" = 160x120 ]
    expect 0 '"hit_fraction":' ctl --json view room --png "$work/view.png" --size 64x48 --eye 0,0,1.2 --target 1,0,1
    epoch=$(ctl --json map info room | sed 's/.*"epoch":\([0-9]*\).*/\1/')
    expect 0 "\"epoch\":$epoch,\"newest_epoch\":$epoch," ctl --json view room --png "$work/view.png" --depth "$work/depth.png" \
        --normals "$work/normals.png" --size 64x48
    expect 2 'do not make a camera' ctl view room --png "$work/view.png" --eye 0,0,1 --target 0,0,2
    expect 2 "quaternion's length" ctl view room --png "$work/view.png" --pose 0,0,1,0,0,0,2
    check "part files are left behind" [ -z "$(find "$work" -name '*.part-*')" ]
}

ending() {
    expect 0 '^map room: epoch' ctl stats
    expect 0 '"streams":\[\{"map":"(room|again)"' ctl --json stats
    expect 0 'answers in [0-9]+ us' ctl ping
    expect 0 'is 0\.[23][0-9]* m from the wall, gradient \(-?0\.00, -?0\.00, -1\.00\)' "$bin/client_example"
    expect 0 'ends' ctl shutdown
    local code=0
    wait "$daemon" || code=$?
    daemon=
    check "the daemon ended with $code" [ "$code" -eq 0 ]
    expect 3 'no daemon answers' ctl ping
}

# Every set plays whole with nothing but its path, and makes a map.
recorded() {
    if [ ! -d "$data" ]; then
        echo "SKIP: no recorded data in $data (set VOXELD_TEST_DATA)"
        exit 77
    fi
    start_daemon
    local set voxel frames name
    while read -r set voxel frames; do
        name=$(basename "$set" .pcd)
        [ -e "$data/$set" ] || { echo "SKIP: no $set"; continue; }
        expect 0 voxels ctl map create "$name" --voxel-size "$voxel"
        expect 0 "\"integrated\":$frames,\"refused\":0" ctl --json play "$data/$set" --map "$name" --frames "$frames"
        check "$name is empty" [ "$(ctl --json map info "$name" | json voxels)" -gt 1000 ]
        expect 0 'shows the map' ctl view "$name" --png "$work/view.png" --size 80x60 --samples 1
        expect 0 'is gone' ctl map delete "$name"
    done <<'SETS'
rgbd_7scenes_redkitchen_150 0.05 20
rgbd_slambook_xtion_5 0.05 5
rgbd_open3d_auglicl_5 0.05 5
rgbd_iclnuim_tumlayout_3 0.05 3
lidar_kitti00_6 0.4 3
lidar_ouster_os1_128_3 0.4 2
lidar_livox_avia_hku1_60 0.2 20
organised_pcd/five_people.pcd 0.05 1
organised_pcd/capture0001.pcd 0.05 1
organised_pcd/table_scene_mug_stereo_textured.pcd 0.05 1
SETS
    coloured
    expect 0 ends ctl shutdown
    wait "$daemon" || fail "the daemon ended with $?"
    daemon=
}

# The colours of a set reach the mesh, a picture, and the map of an exported file.
coloured() {
    local set=$data/rgbd_open3d_auglicl_5 first
    [ -e "$set" ] || { echo "SKIP: no $set"; return; }
    expect 0 voxels ctl map create tinted --voxel-size 0.03 --colour
    ctl --json play "$set" --map tinted >"$work/out"
    if grep -q '"frames_with_colour":0' "$work/out"; then # a build without libjpeg
        echo "SKIP: the colours of $set are not read"
        return
    fi
    check "colours of $(cat "$work/out")" grep -q '"frames_with_colour":5' "$work/out"
    expect 0 vertices ctl mesh tinted -o "$work/tinted.ply"
    check "the mesh has no colours" grep -aq '^property uchar red' "$work/tinted.ply"
    expect 0 vertices ctl mesh tinted -o "$work/part.ply" --region -100,-100,-100,100,100,100
    check "the mesh of a region has no colours" grep -aq '^property uchar red' "$work/part.ply"
    expect 0 'shows the map' ctl view tinted --png "$work/tinted.png" --size 80x60
    expect 0 'shows the map' ctl view tinted --png "$work/heights.png" --size 80x60 --heights
    check "the picture has colours by height" test "$(cksum <"$work/tinted.png")" != "$(cksum <"$work/heights.png")"
    first=$(ctl map digest tinted)
    expect 0 voxels ctl map export tinted --format nvdb -o "$work/tinted.nvdb"
    expect 0 voxels ctl map import again "$work/tinted.nvdb"
    check "a map of the file is another" [ "$(ctl map digest again)" = "$first" ]
    expect 0 voxels ctl map create bare --voxel-size 0.03
    expect 0 '"frames_with_colour":0' ctl --json play "$set" --map bare
    expect 0 vertices ctl mesh bare -o "$work/bare.ply"
    check "a map without colours has a mesh with some" [ "$(grep -ac 'uchar red' "$work/bare.ply")" -eq 0 ]
}

case $what in
    verbs)
        usage
        start_daemon
        maps
        play
        results
        ending
        ;;
    recorded) recorded ;;
    *)
        echo "test_voxelctl: verbs or recorded, not '$what'" >&2
        exit 2
        ;;
esac
echo "voxelctl $what: $checks checks, $failures failed"
exit $((failures > 0))
