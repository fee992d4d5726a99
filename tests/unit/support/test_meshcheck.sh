#!/usr/bin/env bash
# meshcheck says what is true of meshes whose error is known, and refuses broken files.
#   test_meshcheck.sh BIN_DIR
set -euo pipefail
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# Vertices on the room's floor (world z = 0.0319, between the table's legs), then moved up by RISE.
ply() { # RISE N_DECLARED
    printf 'ply\nformat ascii 1.0\nelement vertex %s\nproperty float x\nproperty float y\nproperty float z\nend_header\n' "$2"
    awk -v rise="$1" 'BEGIN { for (i = 0; i < 25; i++)
        printf "%.6f %.6f %.6f\n", 0.1371 + 0.02 * (i % 5), -0.0837 + 0.02 * int(i / 5), 0.0319 + rise }'
}

expect() { # WORDS FILE PATTERN...
    local words=$1 file=$2 answer pattern
    shift 2
    answer=$("$bin/meshcheck" --scene room "$file" 2>&1) || { echo "FAIL: $words: $answer"; failures=$((failures + 1)); return; }
    for pattern in "$@"; do
        [[ " $answer " == *" $pattern "* ]] || { echo "FAIL: $words: no $pattern in $answer"; failures=$((failures + 1)); }
    done
}

ply 0 25 >"$work/exact.ply"
expect "vertices on the surface" "$work/exact.ply" vertices=25 nonfinite=0 mean=0.00000 max=0.00000
ply 0.01 25 >"$work/up.ply"
expect "vertices 1 cm too high" "$work/up.ply" mean=0.01000 median=0.01000 p99=0.01000 bias=+0.01000
ply -0.01 25 >"$work/down.ply"
expect "vertices 1 cm too low" "$work/down.ply" mean=0.01000 bias=-0.01000
{ ply 0 26 && echo "nan 0 0"; } >"$work/nan.ply"
expect "a vertex that is not a number" "$work/nan.ply" vertices=26 nonfinite=1 max=inf

ply 0 26 >"$work/short.ply"
if "$bin/meshcheck" --scene room "$work/short.ply" >/dev/null 2>&1; then
    echo "FAIL: a file that is cut short is accepted"
    failures=$((failures + 1))
fi
[ "$failures" -eq 0 ] && echo "meshcheck: 5 meshes judged right"
exit $((failures > 0))
