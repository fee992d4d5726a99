#!/usr/bin/env bash
# The tree obeys the layout's rules, and the checker finds every planted breach of them.
#   test_tree.sh ROOT
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
check=$here/check_tree.sh
root=$1
bad=$(mktemp -d)
trap 'rm -rf "$bad"' EXIT
failures=0

plant() { # FILE TEXT
    mkdir -p "$bad/$(dirname "$1")"
    printf '%s\n' "$2" >"$bad/$1"
}

# A small tree that obeys every rule.
clean() {
    rm -rf "${bad:?}"/*
    plant kernels/base/vx_err.h '#include <stdint.h>'
    plant kernels/vxk.h '#include "base/vx_err.h"'
    plant kernels/cuda/launch.cu '#include <cuda_runtime.h>'
    plant core/include/vx/map.h '#include "vxk.h"'
    plant core/src/map.c '#include "vx/map.h"'
    plant core/src/util.h '/* */'
    plant core/src/table.c '#include "util.h"'
    plant proto/wire.h '#include "base/vx_err.h"'
    plant daemon/loop.h '#include <uv.h>'
    plant daemon/main.c '#include "vx/map.h"
#include "wire.h"
#include "voxeld/v1/voxeld.pb-c.h"'
    plant clients/c/client.h '#include "wire.h"'
    plant clients/c/client.c '#include "client.h"
#include "base/vx_err.h"'
    plant tests/bench/bench.c '#include "vx/map.h"
#include "client.h"'
}

expect_clean() { # WORDS
    if ! "$check" "$bad" >"$bad/out.log"; then
        echo "FAIL: $1"
        cat "$bad/out.log"
        failures=$((failures + 1))
    fi
}

expect_breach() { # PATTERN WORDS
    if "$check" "$bad" >"$bad/out.log"; then
        echo "FAIL: not found: $2"
        failures=$((failures + 1))
    elif [ "$(wc -l <"$bad/out.log")" -ne 1 ] || ! grep -q "$1" "$bad/out.log"; then
        echo "FAIL: $2: wanted one line with '$1', got"
        cat "$bad/out.log"
        failures=$((failures + 1))
    fi
    clean
}

clean
expect_clean "a good tree is called bad"
plant kernels/body/x.h '#include "vx/map.h"'
expect_breach '^kernels/body/x.h:1: kernels must not include core/' "kernels -> core"
plant kernels/body/x.h '#include <vx/map.h>'
expect_breach '^kernels/body/x.h:1: kernels must not include core/' "kernels -> core by angle brackets"
plant core/src/x.c '#include "loop.h"'
expect_breach '^core/src/x.c:1: core must not include daemon/' "core -> daemon"
plant core/src/x.c '#include "../../daemon/loop.h"'
expect_breach '^core/src/x.c:1: core must not include daemon/' "core -> daemon by a relative path"
plant core/src/x.c '  #  include "wire.h"'
expect_breach '^core/src/x.c:1: core must not include proto/' "core -> proto"
plant core/src/x.c '#include "voxeld/v1/voxeld.pb-c.h"'
expect_breach '^core/src/x.c:1: core must not include messages' "core -> generated messages"
plant clients/cli/x.c '#include "vx/map.h"'
expect_breach '^clients/cli/x.c:1: clients must not include core/' "clients -> core"
plant clients/cli/x.c '#include "loop.h"'
expect_breach '^clients/cli/x.c:1: clients must not include daemon/' "clients -> daemon"
plant clients/cli/x.c '#include "vxk.h"'
expect_breach '^clients/cli/x.c:1: clients must not include kernels/vxk.h' "clients -> kernels"
plant proto/x.c '#include "vx/map.h"'
expect_breach '^proto/x.c:1: proto must not include core/' "proto -> core"
plant daemon/x.c '#include "client.h"'
expect_breach '^daemon/x.c:1: daemon must not include clients/' "daemon -> clients"
plant core/src/x.c '#include <zmq.h>'
expect_breach '^core/src/x.c:1: core must not use <zmq.h>' "core uses sockets"
plant core/src/x.c '#include <cuda_runtime.h>'
expect_breach '^core/src/x.c:1: CUDA headers' "core uses CUDA"
plant kernels/body/x.h '#ifdef __CUDA''CC__'
expect_breach '^kernels/body/x.h:1: only kernels/dev.h' "a body asks which compiler this is"
plant daemon/x.c "$(yes '/* */' | head -n 800)"
expect_breach '^daemon/x.c: 800 lines' "a file of 800 lines"
plant deploy/x.sh 'cd /ho''me/someone/voxeld'
expect_breach "^deploy/x.sh:1: a path of a developer" "a path of a developer's machine"

if ! "$check" "$root"; then
    echo "FAIL: the tree breaks the rules above"
    failures=$((failures + 1))
fi
[ "$failures" -eq 0 ] && echo "tree: 16 planted breaches found, the tree is clean"
exit $((failures > 0))
