#!/usr/bin/env bash
# What only a GPU can say of the distance field and the queries, in one call (about 8 minutes).
#
#   gpu_queries.sh BIN_DIR OUT_DIR
#
# BIN_DIR: a build or bundle with CUDA and the tests.  OUT_DIR gets figures.txt (one JSON line a benchmark), tests.txt
# and, where compute-sanitizer is installed, sanitizer.txt.  Goes on after a failure; ends with 1 when there was one.
set -uo pipefail

[ $# -eq 2 ] || { echo "usage: gpu_queries.sh BIN_DIR OUT_DIR" >&2; exit 2; }
bin=$1 out=$2
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

"$bin/genworkload" --scene room --frames 300 --noise 0.0012 --output "$work/room.vxwl" 2>/dev/null || exit 1
"$bin/genworkload" --scene street --frames 200 --noise 0.02 --output "$work/street.vxwl" 2>/dev/null || exit 1

# run FILE COMMAND...: output to the file; a failure is named and counted.
run() {
    local file=$1
    shift
    if ! timeout 300 "$@" >>"$out/$file" 2>"$work/err"; then
        echo "FAILED: $*" | tee -a "$out/$file"
        tail -n 5 "$work/err" | tee -a "$out/$file"
        failed=1
    fi
}

for test in oracle_planning_cuda oracle_query_cuda oracle_esdf_cuda oracle_edges_cuda; do
    run tests.txt env CK_FORK=no "$bin/$test" cuda
    run tests.txt env CK_FORK=no VOXELD_CUDA_TUNED=0 "$bin/$test" cuda
done
for voxel in 0.02 0.01; do
    run figures.txt "$bin/bench_field" --workload "$work/room.vxwl" --voxel $voxel --backend cuda --repeat 50
done
for voxel in 0.2 0.1 0.05; do
    run figures.txt "$bin/bench_field" --workload "$work/street.vxwl" --voxel $voxel --backend cuda --repeat 50
done
run figures.txt "$bin/bench_beside" --workload "$work/room.vxwl" --voxel 0.02 --backend cuda --seconds 10
run figures.txt "$bin/bench_streams" --workload "$work/room.vxwl" --voxel 0.02 --backend cuda --seconds 60
run figures.txt "$bin/bench_streams" --workload "$work/room.vxwl" --voxel 0.02 --backend cuda --seconds 20 --query-rate 0
if command -v compute-sanitizer >/dev/null; then
    "$bin/genworkload" --scene room --frames 3 --output "$work/small.vxwl" 2>/dev/null
    for tool in memcheck racecheck initcheck; do
        run sanitizer.txt compute-sanitizer --tool $tool --error-exitcode 9 "$bin/bench_field" \
            --workload "$work/small.vxwl" --voxel 0.04 --backend cuda --repeat 1 --batches 2
    done
fi
cat "$out/figures.txt"
exit $failed
