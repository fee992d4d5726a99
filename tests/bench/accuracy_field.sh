#!/usr/bin/env bash
# Truth of the distance field in the analytic room, against the bars of bench_field_accuracy.
#
#   accuracy_field.sh BIN_DIR [BACKEND]
#
# 100 noise-free frames, 2 cm, R 0.5 m.  Ends with 1 when a bar is missed.
set -euo pipefail

[ $# -ge 1 ] || { echo "usage: accuracy_field.sh BIN_DIR [BACKEND]" >&2; exit 2; }
bin=$1 backend=${2:-cpu}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$bin/genworkload" --scene room --frames 100 --output "$work/room.vxwl" 2>/dev/null
"$bin/bench_field_accuracy" --workload "$work/room.vxwl" --scene room --backend "$backend"
