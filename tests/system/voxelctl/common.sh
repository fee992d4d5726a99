# What tests of voxelctl by shell share; sourced with `bin` set to the folder of the programs, and maybe `backend` (cpu).
# It makes $work (private, removed at the end), an ipc folder in it, and counts checks and failures.
# shellcheck shell=bash
# shellcheck disable=SC2154 # bin is the script's

work=$(mktemp -d /tmp/voxelctl-test.XXXXXX)
export VOXELD_IPC_DIR=$work/ipc
checks=0 failures=0 daemon=

# shellcheck disable=SC2317 # the trap calls it
stop() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
    rm -rf "$work"
}
trap stop EXIT

ctl() { "$bin/voxelctl" "$@"; }

fail() {
    echo "FAIL: $*"
    failures=$((failures + 1))
}

# expect CODE PATTERN COMMAND...: exit code, and an extended regular expression on stdout and stderr together.
expect() {
    local code=$1 pattern=$2 got=0
    shift 2
    "$@" >"$work/stdout" 2>"$work/stderr" </dev/null || got=$?
    checks=$((checks + 1))
    if [ "$got" -ne "$code" ]; then
        fail "$*: exit code $got instead of $code: $(head -c 400 "$work/stderr")"
    elif ! grep -aEq -- "$pattern" "$work/stdout" "$work/stderr"; then
        fail "$*: no '$pattern' in: $(cat "$work/stdout" "$work/stderr" | head -c 600)"
    fi
}

check() { # WORDS COMMAND...
    local words=$1
    shift
    checks=$((checks + 1))
    "$@" || fail "$words"
}

start_daemon() {
    mkdir -p "$VOXELD_IPC_DIR"
    chmod 750 "$VOXELD_IPC_DIR"
    "$bin/voxeld" --backend "${backend:-cpu}" >>"$work/voxeld.log" 2>&1 &
    daemon=$!
    until ctl ping >/dev/null 2>&1; do
        kill -0 "$daemon" 2>/dev/null || { echo "the daemon did not start:"; cat "$work/voxeld.log"; exit 1; }
    done
}

end_daemon() {
    local code=0
    expect 0 'ends' ctl shutdown
    wait "$daemon" || code=$?
    daemon=
    check "the daemon ended with $code" [ "$code" -eq 0 ]
}

finish() { # NAME
    echo "$1: $checks checks, $failures failed"
    exit $((failures > 0))
}
