#!/usr/bin/env bash
# Runs the test programs of a bundle (deploy/bundle.sh puts this file there): one line each, then a summary.
#
#   run-tests.sh [--labels REGEX] [NAME...]   default: all tests
#
# Tests on recorded sensor data read VOXELD_TEST_DATA.  Exit: 0 all passed or skipped; 1 a test failed; 2 bad usage.
set -uo pipefail

dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
labels=.
names=()
while [ $# -gt 0 ]; do
    case $1 in
        --labels)
            labels=${2:?--labels wants a regular expression}
            shift
            ;;
        -h | --help)
            sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        -*)
            echo "run-tests: unknown option '$1'" >&2
            exit 2
            ;;
        *) names+=("$1") ;;
    esac
    shift
done
[ -f "$dir/tests.list" ] || { echo "run-tests: this folder is no bundle; make one with deploy/bundle.sh" >&2; exit 2; }

wanted() { # NAME LABELS
    local name
    [[ $2 =~ $labels ]] || return 1
    [ "${#names[@]}" -gt 0 ] || return 0
    for name in "${names[@]}"; do
        [ "$name" = "$1" ] && return 0
    done
    return 1
}

passed=0 failed=0 skipped=0
output=$(mktemp)
trap 'rm -f "$output"' EXIT
while IFS='|' read -r name limit tags environment command <&3; do
    wanted "$name" "$tags" || continue
    read -r -a settings <<<"$environment"
    read -r -a words <<<"$command"
    settings=(CK_FORK=no ${settings[@]+"${settings[@]//@DIR@/$dir}"})
    words=("${words[@]//@DIR@/$dir}")
    start=$SECONDS
    env "${settings[@]}" timeout -k 5 "$limit" "${words[@]}" >"$output" 2>&1 </dev/null
    case $? in
        0)
            passed=$((passed + 1))
            echo "pass $name ($tags), $((SECONDS - start)) s: $(tail -n 1 "$output")"
            ;;
        77)
            skipped=$((skipped + 1))
            echo "skip $name ($tags): $(tail -n 1 "$output")"
            ;;
        *)
            failed=$((failed + 1))
            echo "FAIL $name ($tags), $((SECONDS - start)) s"
            tail -n 25 "$output"
            ;;
    esac
done 3<"$dir/tests.list"
[ $((passed + failed + skipped)) -gt 0 ] || { echo "run-tests: no test matches" >&2; exit 2; }
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
