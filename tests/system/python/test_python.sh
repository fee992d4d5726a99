#!/usr/bin/env bash
# The Python client against a real daemon; skipped where its modules are not installed.
#
#   test_python.sh BUILD_DIR SOURCE_ROOT NAME        (NAME.py beside this script)
set -euo pipefail

build=$1 root=$2 name=$3
for python in python3 /usr/bin/python3; do
    if "$python" -c 'import zmq, numpy, google.protobuf' 2>/dev/null; then
        exec env PYTHONPATH="$build/python" PYTHONDONTWRITEBYTECODE=1 "$python" -W ignore::RuntimeWarning "$root/tests/system/python/$name.py" "$build" "$root"
    fi
done
echo "SKIP: Python's modules zmq, numpy and protobuf are not installed (deploy/setup.sh --checkers)"
exit 77
