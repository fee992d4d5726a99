#!/usr/bin/env bash
# Installs missing packages, builds and runs every test.
#
#   tests/run.sh             Release with all tests, then AddressSanitizer + UndefinedBehaviorSanitizer, then ThreadSanitizer,
#                            then the CUDA backend emulated on the CPU
#   tests/run.sh --quick     the Release build only
#   tests/run.sh --no-setup  do not look for packages
#   tests/run.sh --help
#
# Builds go to build/test-release, -asan, -tsan and -emulated; CUDA code is compiled where nvcc is.
# Tests on recorded sensor data read VOXELD_TEST_DATA, or ../shared/data beside the checkout; without it they are skipped.
# The last line is "N passed, N failed, N skipped" over all builds.  Exit: 0 all passed or skipped; 1 a test or build failed.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
quick=no
setup=yes
for argument in "$@"; do
    case $argument in
        --quick) quick=yes ;;
        --no-setup) setup=no ;;
        -h | --help)
            sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        *)
            echo "tests/run.sh: unknown option '$argument'; see tests/run.sh --help" >&2
            exit 2
            ;;
    esac
done

passed=0 failed=0 skipped=0
finish() {
    [ "$failed" -eq 0 ] && status=0 || status=1
    echo "$passed passed, $failed failed, $skipped skipped"
    exit "$status"
}

cores=$(nproc)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The GPU's own architecture where one is present; one architecture otherwise, to see that the kernels compile.
cuda_architecture() {
    local capability
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d '. ') || true
    case $capability in
        '' | *[!0-9]*) echo 90 ;;
        *) echo "$capability" ;;
    esac
}

targets=() # all
build() { # NAME CMAKE_OPTIONS...
    local name=$1 folder=$root/build/test-$1
    shift
    echo "== build $name"
    if cmake -S "$root" -B "$folder" -G Ninja -DVOXELD_TESTS=ON "$@" >"$scratch/build.log" 2>&1 &&
        cmake --build "$folder" -j "$cores" "${targets[@]}" >>"$scratch/build.log" 2>&1; then
        return 0
    fi
    echo "FAILED: build $name"
    tail -n 60 "$scratch/build.log"
    failed=$((failed + 1))
    return 1
}

# Adds the tests of one ctest run up; prints what skipped tests gave as reason, the last line of their output.
count() { # CONSOLE_LOG DETAIL_LOG
    local kind name reason
    while read -r kind name reason; do
        case $kind in
            pass) passed=$((passed + 1)) ;;
            skip)
                skipped=$((skipped + 1))
                echo "skipped: $name: ${reason:-no reason given}"
                ;;
            *)
                failed=$((failed + 1))
                echo "FAILED: $name"
                ;;
        esac
    done < <(awk '
        FNR == 1 { file++ }
        file == 1 && /^[0-9]+\/[0-9]+ Test: / { name = $3; inside = 0 }
        file == 1 && /^<end of output>$/ { inside = 0 }
        file == 1 && inside && /[^ \t-]/ { reason[name] = $0 }
        file == 1 && /^Output:$/ { inside = 1 }
        file == 2 && match($0, /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: /) {
            rest = substr($0, RLENGTH + 1)
            name = rest
            sub(/ .*/, "", name)
            if (rest ~ /\*\*\*Skipped/)
                print "skip", name, reason[name]
            else
                print (rest ~ /   Passed +[0-9.]+ sec$/ ? "pass" : "fail"), name
        }
    ' "$2" "$1")
}

run() { # NAME CTEST_OPTIONS...
    local name=$1 folder=$root/build/test-$1 before=$((passed + failed + skipped))
    shift
    echo "== run $name"
    rm -rf "$folder/Testing"
    "${launcher[@]}" ctest --test-dir "$folder" -j "$cores" --output-on-failure "$@" >"$scratch/ctest.log" 2>&1 ||
        grep -v -E '^ *(Start|[0-9]+/[0-9]+ Test +#[0-9]+: .*(Passed|Skipped))' "$scratch/ctest.log" || true
    count "$scratch/ctest.log" "$folder/Testing/Temporary/LastTest.log"
    # Every test that ctest lists must have been counted: a test that left no trace is a failure.
    local wanted counted
    wanted=$(ctest --test-dir "$folder" -N "$@" | awk '/^Total Tests:/ { print $3 }')
    counted=$((passed + failed + skipped - before))
    if [ "${wanted:-0}" -eq 0 ] || [ "$counted" -ne "$wanted" ]; then
        echo "FAILED: $name: $wanted tests, but $counted results"
        failed=$((failed + 1))
    fi
}

# How a sanitized program starts here: their fixed shadow memory clashes with a large address randomisation.
sanitizer_launcher() { # FLAG
    echo 'int main(void) { return 0; }' >"$scratch/probe.c"
    cc "-fsanitize=$1" "$scratch/probe.c" -o "$scratch/probe" 2>/dev/null || return 1
    local ok=yes
    for _ in 1 2 3 4 5 6 7 8; do
        "$scratch/probe" >/dev/null 2>&1 || ok=no
    done
    launcher=()
    [ "$ok" = yes ] && return 0
    launcher=(setarch "$(uname -m)" -R)
    "${launcher[@]}" "$scratch/probe" >/dev/null 2>&1
}

[ "$setup" = no ] || "$root/deploy/setup.sh" --checkers
launcher=()

build release -DCMAKE_BUILD_TYPE=Release "-DVOXELD_CUDA_ARCHITECTURES=$(cuda_architecture)" && run release
if [ "$quick" = no ]; then
    export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1}
    export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
    export TSAN_OPTIONS=${TSAN_OPTIONS:-"halt_on_error=1 suppressions='$root/tests/support/tsan.supp'"}
    if sanitizer_launcher address; then
        build asan -DCMAKE_BUILD_TYPE=RelWithDebInfo -DVOXELD_ASAN=ON -DVOXELD_UBSAN=ON && run asan -LE 'tree|bench'
    else
        skipped=$((skipped + 1))
        echo "skipped: asan: programs built with AddressSanitizer do not start on this machine"
    fi
    if sanitizer_launcher thread; then
        build tsan -DCMAKE_BUILD_TYPE=RelWithDebInfo -DVOXELD_TSAN=ON && run tsan -L 'unit|backend|system' -LE 'tree|bench|oracle'
    else
        skipped=$((skipped + 1))
        echo "skipped: tsan: programs built with ThreadSanitizer do not start on this machine"
    fi
    # What skips without a GPU above, on a device that the CPU plays (tests/support/cuda_emulated).
    launcher=() targets=(--target emulated_tests)
    build emulated -DCMAKE_BUILD_TYPE=Release -DVOXELD_CUDA=EMULATED && run emulated -L emulated
fi
finish
