#!/usr/bin/env bash
# deploy/setup.sh installs what is missing and nothing else, and says what to do where it cannot.  Stubs stand in for apt.
#   test_setup.sh ROOT
set -euo pipefail
setup=$1/deploy/setup.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

stub() { # NAME BODY
    printf '#!/bin/bash\n%s\n' "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}

# A machine as the stubs tell it: nothing else is on the path but what the script itself needs.
machine() { # UID INSTALLED_PATTERN
    rm -rf "${work:?}/bin" "$work/log"
    mkdir "$work/bin"
    local tool
    for tool in bash env sed; do
        ln -s "$(command -v "$tool")" "$work/bin/$tool"
    done
    stub id "echo $1"
    stub dpkg-query "[[ \${*: -1} =~ ^($2)\$ ]] && echo -n installed"
    stub apt-get "echo \"\$*\" >>'$work/log'"
}

# shellcheck disable=SC2317 # check calls it
run_setup() { PATH=$work/bin "$work/bin/bash" "$setup" "$@" >"$work/out" 2>&1; }

check() { # WORDS CONDITION...
    local words=$1
    shift
    if ! "$@"; then
        echo "FAIL: $words"
        cat "$work/out"
        [ ! -f "$work/log" ] || cat "$work/log"
        failures=$((failures + 1))
    fi
}

# shellcheck disable=SC2317 # check calls it
not() { ! "$@"; }

machine 0 '.*'
check "nothing is missing" run_setup
check "nothing is missing, so apt-get is left alone" not test -e "$work/log"

machine 0 '(build-essential|cmake|ninja-build|pkg-config|lib(uv1|zmq3|protobuf-c|yaml|jpeg)-dev|protobuf-c-compiler)'
check "as root" run_setup
check "only what is missing is installed" grep -qx 'install -y -q --no-install-recommends libpng-dev check' "$work/log"
check "never CUDA" not grep -qi -e cuda -e nvidia "$work/log"

machine 0 '.*'
# shellcheck disable=SC2016 # the stub expands it
stub dpkg-query '[[ ${*: -1} == shellcheck ]] || echo -n installed'
check "with --dev" run_setup --dev
check "--dev adds lint tools" grep -q 'recommends shellcheck$' "$work/log"

machine 0 '.*'
# shellcheck disable=SC2016 # the stub expands it
stub dpkg-query '[[ ${*: -1} == libnanovdb-tools ]] || echo -n installed'
# shellcheck disable=SC2016 # the stub expands it
stub apt-get '[[ $1 != install ]]'
check "checkers that apt does not have are no failure" run_setup --checkers
check "that is said" grep -q 'tests that use it are skipped' "$work/out"

machine 1000 'nothing'
check "a user without sudo is refused" not run_setup
check "and told what to ask for" grep -q 'apt-get install --no-install-recommends build-essential' "$work/out"

machine 1000 'nothing'
stub sudo "echo sudo >>'$work/log'; exec \"\$@\""
check "a user with sudo" run_setup
check "sudo is used" grep -qx sudo "$work/log"

machine 0 'nothing'
stub apt-get 'exit 100'
check "apt-get fails" not run_setup
check "its failure is said" grep -q 'apt-get could not install' "$work/out"

machine 0 'nothing'
rm "$work/bin/apt-get"
check "no apt" not run_setup
check "no apt is said" grep -q 'has no apt' "$work/out"

[ "$failures" -eq 0 ] && echo "setup.sh: 8 machines"
exit $((failures > 0))
