#!/usr/bin/env bash
# An installed voxeld works: programs start, the configuration passes, a C program builds against the client by pkg-config.
#   test_install.sh BUILD_DIR ROOT
set -euo pipefail
build=$1 root=$2
work=$(mktemp -d /tmp/voxeld-install.XXXXXX)
daemon=''
# shellcheck disable=SC2317 # the trap calls it
clean_up() {
    [ -z "$daemon" ] || kill -TERM "$daemon" 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT
prefix=$work/prefix
cmake --install "$build" --prefix "$prefix" >"$work/install.log" 2>&1 || { cat "$work/install.log"; exit 1; }

"$prefix/bin/voxeld" --config "$prefix/etc/voxeld/voxeld.yaml" --check-config
"$prefix/bin/voxelctl" --help >/dev/null

library=$(dirname "$(dirname "$(find "$prefix" -name voxeld-client.pc)")")
export PKG_CONFIG_PATH=$library/pkgconfig
read -r -a flags <<<"$(pkg-config --define-variable=prefix="$prefix" --cflags --libs voxeld-client)"
cc -std=c11 "$root/clients/c/examples/wall.c" "${flags[@]}" -lm -o "$work/wall"

"$prefix/bin/voxeld" --ipc-dir "$work" --backend cpu >"$work/voxeld.log" 2>&1 &
daemon=$!
until "$prefix/bin/voxelctl" --ipc-dir "$work" stats >/dev/null 2>&1; do
    kill -0 "$daemon" 2>/dev/null || { cat "$work/voxeld.log"; exit 1; }
done
LD_LIBRARY_PATH=$library "$work/wall" "$work"
# The Python client, where its modules are.
python=$prefix/share/voxeld/python
[ -f "$python/voxeld/__init__.py" ] && [ -f "$python/voxeld/voxeld.desc" ]
for program in python3 /usr/bin/python3; do
    "$program" -c 'import zmq, numpy, google.protobuf' 2>/dev/null || continue
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$python VOXELD_IPC_DIR=$work "$program" -c 'import voxeld; print(voxeld.Client().server)'
    break
done
kill -TERM "$daemon"
wait "$daemon"
daemon=''
echo "installed, configured, linked, run"
