#!/usr/bin/env bash
# Runs one lint tool over the tree; 77 with a reason where the tool is absent.
#   test_lint.sh shellcheck|clang-format ROOT
set -euo pipefail
tool=$1
cd "$2"
# Prints the files below the source folders whose names match, NUL-separated.
sources() { find .ci clients core daemon deploy kernels tests -type f \( "$@" \) -not -path '*/build*/*' -print0; }

case $tool in
    shellcheck)
        command -v shellcheck >/dev/null || { echo "SKIP: shellcheck is not installed (deploy/setup.sh --dev)"; exit 77; }
        sources -name '*.sh' -o -path '.ci/run' | xargs -0 shellcheck
        ;;
    clang-format)
        program=$(command -v clang-format-14 || command -v clang-format) ||
            { echo "SKIP: clang-format 14 is not installed (deploy/setup.sh --dev)"; exit 77; }
        version=$("$program" --version)
        # Another version formats differently; it cannot judge.
        [[ $version == *"version 14."* ]] || { echo "SKIP: $version is not 14"; exit 77; }
        sources -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cpp' |
            xargs -0 "$program" --dry-run -Werror -ferror-limit=1 2>&1 | awk -F: '
                / error: / { if (!seen[$1]++) print $1 ":" $2 ": not as clang-format writes it (clang-format -i " $1 ")" }
                END { exit NR > 0 }'
        ;;
    *)
        echo "test_lint: unknown tool '$tool'" >&2
        exit 2
        ;;
esac
