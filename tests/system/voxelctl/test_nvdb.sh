#!/usr/bin/env bash
# Maps as NanoVDB files, through voxelctl and a real daemon.
#
#   test_nvdb.sh verbs|tools BIN_DIR SOURCE_ROOT [BACKEND]
#
# verbs: export and import give the same map; what is refused leaves nothing behind
# tools: OpenVDB's own programs read what we write, and we what they write (Debian: libnanovdb-tools, libopenvdb-tools)
set -euo pipefail

what=$1 bin=$2 root=$3 backend=${4:-cpu}
data=${VOXELD_TEST_DATA:-$root/../shared/data}

if [ "$what" = tools ]; then
    for tool in nanovdb_validate nanovdb_convert vdb_tool; do
        command -v "$tool" >/dev/null || { echo "SKIP: no $tool (Debian: libnanovdb-tools, libopenvdb-tools)"; exit 77; }
    done
fi

# shellcheck source=tests/system/voxelctl/common.sh
. "$root/tests/system/voxelctl/common.sh"

# shellcheck disable=SC2317 # expect calls them
ctl_from() { ctl "${@:2}" <"$1"; } # FILE ARGUMENTS...: the file on stdin
# shellcheck disable=SC2317
ctl_piped() { tail -c +1 "$1" | timeout 20 "$bin/voxelctl" "${@:2}"; } # the same through a pipe

same() { # WORDS A B
    checks=$((checks + 1))
    if [ "$2" != "$3" ] || [ -z "$2" ]; then
        fail "$1: '$2' and '$3' differ"
    fi
}

works() { # COMMAND...
    checks=$((checks + 1))
    "$@" >"$work/stdout" 2>"$work/stderr" </dev/null || fail "$*: $(head -c 400 "$work/stderr")"
}

# Vertices and triangles of a mesh: what follows the header.
mesh_sum() { sed '1,/^end_header$/d' "$1" | sha256sum; }

json() { sed -n "s/.*\"$1\":\(\"[^\"]*\"\|[^,}]*\).*/\1/p" | tr -d '"'; }

no_map() { expect 1 NOT_FOUND ctl map info "$1"; }

start() {
    start_daemon
    "$bin/genworkload" --scene room --frames 6 --output "$work/room.vxwl" >/dev/null 2>&1
    ctl map create room --voxel-size 0.02 --origin 1000,-2000,3 --weighting constant >/dev/null
    ctl play "$work/room.vxwl" --map room >/dev/null
    ctl map create odds --voxel-size 0.05 --mode occupancy >/dev/null
    ctl play "$work/room.vxwl" --map odds >/dev/null
}

verbs() {
    for map in room odds; do
        expect 0 "$map.nvdb: nvdb, [0-9,]+ voxels" ctl map export $map --format nvdb -o "$work/$map.nvdb"
        expect 0 "map $map-2: from" ctl map import $map-2 "$work/$map.nvdb"
        same "digests of $map" "$(ctl map digest $map)" "$(ctl map digest $map-2)"
        expect 0 '"voxels"' ctl --json map export $map-2 --format nvdb -o "$work/again.nvdb"
        # all but the name and what it moves: the leaves and the values behind them
        same "second file of $map" "$(tail -c 100000 "$work/$map.nvdb" | sha256sum)" \
            "$(tail -c 100000 "$work/again.nvdb" | sha256sum)"
    done
    same "origin" "$(ctl --json map info room-2 | sed -n 's/.*"origin_m":\(\[[^]]*\]\).*/\1/p')" "[1000,-2000,3]"
    same "weighting" "$(ctl --json map info room-2 | json weighting)" constant
    expect 0 'from' ctl map import square "$work/room.nvdb" --weighting inverse_square
    same "another weighting" "$(ctl --json map info square | json weighting)" inverse_square
    same "digest with another weighting" "$(ctl map digest room)" "$(ctl map digest square)"
    # the same bytes through a pipe, and a mesh from the copy
    ctl map export room --format nvdb -o - >"$work/piped.nvdb" 2>/dev/null
    same "piped file" "$(sha256sum <"$work/piped.nvdb")" "$(sha256sum <"$work/room.nvdb")"
    ctl map export room --format nvdb -o /dev/stdout 2>/dev/null | cat >"$work/piped.nvdb"
    same "file piped by name" "$(sha256sum <"$work/piped.nvdb")" "$(sha256sum <"$work/room.nvdb")"
    ctl map export room --format nvdb -o /dev/stdout >"$work/piped.nvdb" 2>/dev/null
    same "file sent to stdout" "$(sha256sum <"$work/piped.nvdb")" "$(sha256sum <"$work/room.nvdb")"
    expect 0 'from' ctl_from "$work/room.nvdb" map import piped -
    same "digest of stdin" "$(ctl map digest room)" "$(ctl map digest piped)"
    ctl mesh room -o "$work/a.ply" >/dev/null
    ctl mesh room-2 -o "$work/b.ply" >/dev/null
    same "meshes" "$(mesh_sum "$work/a.ply")" "$(mesh_sum "$work/b.ply")"
    # the copy lives on: the same frames give the same map
    ctl play "$work/room.vxwl" --map room >/dev/null
    ctl play "$work/room.vxwl" --map room-2 >/dev/null
    same "digests after more frames" "$(ctl map digest room)" "$(ctl map digest room-2)"
    ctl play "$work/room.vxwl" --map square >/dev/null
    checks=$((checks + 1))
    [ "$(ctl map digest room)" != "$(ctl map digest square)" ] || fail "frames weigh as before in a map that was imported with another weighting"
    # floats
    expect 0 'nvdb-float' ctl map export odds --format nvdb-float --layer occupancy -o "$work/odds.f.nvdb"
    expect 1 'mode occupancy' ctl map import f "$work/odds.f.nvdb"
    no_map f
    expect 0 'occupancy' ctl map import f "$work/odds.f.nvdb" --mode occupancy
    same "voxels" "$(ctl --json map info f | json voxels)" "$(ctl --json map info odds | json voxels)"
    # refusals leave nothing behind
    expect 1 'ALREADY_EXISTS map' ctl map import room "$work/room.nvdb"
    expect 1 'INVALID_ARGUMENT layer' ctl map export room --format nvdb --layer occupancy -o "$work/none.nvdb"
    checks=$((checks + 1))
    if compgen -G "$work/none.nvdb*" >/dev/null; then
        fail "a file of a refused export"
    fi
    expect 1 'NOT_FOUND' ctl map export nomap --format nvdb -o "$work/none.nvdb"
    expect 1 'magic' ctl map import bad "$work/room.vxwl"
    expect 1 'NOT_FOUND' ctl map import bad "$work/nothere"
    expect 1 'limit_bytes' ctl map import bad "$work/room.nvdb" --limit 100000
    expect 1 'truncation' ctl map import bad "$work/room.nvdb" --truncation-voxels 5
    expect 1 'NOT_FOUND grid' ctl map import bad "$work/room.nvdb" --grid lab
    head -c 1000000 "$work/room.nvdb" >"$work/cut.nvdb"
    expect 1 'DATA_LOSS' ctl map import bad "$work/cut.nvdb"
    cp "$work/room.nvdb" "$work/flip.nvdb"
    printf 'x' | dd of="$work/flip.nvdb" bs=1 seek=900000 conv=notrunc 2>/dev/null
    expect 1 'DATA_LOSS checksum' ctl map import bad "$work/flip.nvdb"
    : >"$work/empty.nvdb"
    expect 1 'empty' ctl map import bad "$work/empty.nvdb"
    expect 1 'store it in a file' ctl_piped "$work/room.nvdb" map import bad -
    expect 1 'store it in a file' ctl_piped "$work/room.nvdb" map import bad /dev/stdin
    mkfifo "$work/pipe" # that nobody writes to
    expect 1 'store it in a file' timeout 20 "$bin/voxelctl" map import bad "$work/pipe"
    expect 1 'is a folder' ctl map import bad "$work"
    no_map bad
    expect 2 'format' ctl map export room -o "$work/x"
    expect 2 '-o FILE' ctl map export room --format nvdb
    expect 2 'nvdb or nvdb-float' ctl map export room --format vdb -o "$work/x"
    expect 2 'needs a file' ctl map import x
    expect 2 'no option --voxel-size' ctl map import x y --voxel-size 1
    expect 2 'one word too many' ctl map import x y z
    for file in oi_full oi_blind f_nock; do
        [ -e "$data/nvdb/$file.nvdb" ] || { echo "note: no $data/nvdb/$file.nvdb (set VOXELD_TEST_DATA)"; continue; }
        expect 0 '30,254 voxels of 1 m' ctl map import $file "$data/nvdb/$file.nvdb"
    done
}

tools() {
    for map in room odds; do
        ctl map export $map --format nvdb-float -o "$work/$map.nvdb" >/dev/null
        expect 0 ': passed' nanovdb_validate -v "$work/$map.nvdb"
        checks=$((checks + 1))
        ! grep -q ': failed' "$work/stdout" "$work/stderr" || fail "nanovdb_validate failed on $map"
        expect 0 "$map +float" nanovdb_print "$work/$map.nvdb"
        works nanovdb_convert -f "$work/$map.nvdb" "$work/$map.vdb"
        works nanovdb_convert -f "$work/$map.vdb" "$work/$map.back.nvdb"
        expect 0 'map' ctl map import $map-back "$work/$map.back.nvdb" --mode "$([ $map = odds ] && echo occupancy || echo tsdf)"
        same "voxels of $map through OpenVDB" "$(ctl --json map info $map-back | json voxels)" \
            "$(ctl --json map info $map | json voxels)"
    done
    # occupancy comes back with the very values: as if it had been exported and imported by us alone
    ctl map import odds-own "$work/odds.nvdb" --mode occupancy >/dev/null
    same "log-odds through OpenVDB" "$(ctl map digest odds-own)" "$(ctl map digest odds-back)"
    # a level set that OpenVDB made
    vdb_tool -sphere dim=64 -o "$work/sphere.vdb" >/dev/null 2>&1
    for checksum in none partial full; do
        for stats in none bbox all; do
            nanovdb_convert -f -c $checksum -s $stats "$work/sphere.vdb" "$work/sphere.nvdb" >/dev/null
            expect 0 '63,534 voxels' ctl map import "sphere-$checksum-$stats" "$work/sphere.nvdb"
        done
    done
    expect 0 '[1-9][0-9,]* triangles' ctl mesh sphere-full-all -o "$work/sphere.ply"
    printf 'x' | dd of="$work/sphere.nvdb" bs=1 seek=2700000 conv=notrunc 2>/dev/null
    expect 1 'DATA_LOSS checksum' ctl map import bad "$work/sphere.nvdb"
    nanovdb_convert -f -z "$work/sphere.vdb" "$work/zip.nvdb" >/dev/null
    expect 1 'UNIMPLEMENTED codec' ctl map import bad "$work/zip.nvdb"
    nanovdb_convert -f --fp8 "$work/sphere.vdb" "$work/fp8.nvdb" >/dev/null
    expect 1 'UNIMPLEMENTED type' ctl map import bad "$work/fp8.nvdb"
    vdb_tool -sphere name=a dim=32 -sphere name=b dim=48 -o "$work/two.vdb" >/dev/null 2>&1
    nanovdb_convert -f "$work/two.vdb" "$work/two.nvdb" >/dev/null
    expect 1 "several grids, name one: 'a', 'b'" ctl map import two "$work/two.nvdb"
    expect 0 'voxels' ctl map import two "$work/two.nvdb" --grid b
    no_map bad
}

start
case $what in
    verbs) verbs ;;
    tools) tools ;;
    *)
        echo "test_nvdb: verbs or tools, not '$what'" >&2
        exit 2
        ;;
esac
end_daemon
finish "nvdb $what"
