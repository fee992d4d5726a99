#!/usr/bin/env bash
# Makes a folder that runs on another x86-64 Linux machine: binaries, the libraries they need, tests and benchmarks.
#
#   deploy/bundle.sh DIR [--cuda-arch N]   N: compute capability without the dot, for example 90; needs nvcc
#
# DIR/run-tests.sh runs the test programs there and prints one line each; DIR/bin holds everything else.  The other machine
# needs a glibc at least as new as this one's and, for the CUDA backend, an NVIDIA driver.  DIR must be new or empty.
# Exit: 0 done; 1 a step failed; 2 bad usage.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=''
cuda=(-DVOXELD_CUDA=OFF)
name=cpu
while [ $# -gt 0 ]; do
    case $1 in
        --cuda-arch)
            [[ ${2:-} =~ ^[0-9]+$ ]] || { echo "bundle: --cuda-arch wants a number such as 90" >&2; exit 2; }
            cuda=(-DVOXELD_CUDA=ON "-DVOXELD_CUDA_ARCHITECTURES=$2") name=cuda-$2
            shift
            ;;
        -h | --help)
            sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
            exit 0
            ;;
        -*) echo "bundle: unknown option '$1'; see deploy/bundle.sh --help" >&2; exit 2 ;;
        *) target=$1 ;;
    esac
    shift
done
[ -n "$target" ] || { echo "usage: deploy/bundle.sh DIR [--cuda-arch N]" >&2; exit 2; }
mkdir -p "$target"
target=$(cd "$target" && pwd)
[ -z "$(ls -A "$target")" ] || { echo "bundle: $target is not empty; name a new folder" >&2; exit 2; }

build=$root/build/bundle-$name
echo "== building in $build"
mkdir -p "$build"
rm -rf "${build:?}/bin" # programs of an earlier tree must not travel
{
    cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DVOXELD_BUNDLE=ON "${cuda[@]}" &&
        cmake --build "$build" -j "$(nproc)"
} >"$build/build.log" 2>&1 || { tail -n 25 "$build/build.log" >&2; echo "bundle: the build failed" >&2; exit 1; }

mkdir "$target/bin" "$target/lib"
find "$build/bin" -maxdepth 1 -type f -perm -u+x -exec cp {} "$target/bin/" \;
# glibc and the driver belong to the machine; everything else travels.
for program in "$target"/bin/*; do
    ldd "$build/bin/${program##*/}" | awk '$3 ~ /^\// { print $3 }'
done | sort -u | while IFS= read -r library; do
    case ${library##*/} in
        ld-linux* | libc.so* | libm.so* | libmvec.so* | libpthread.so* | libdl.so* | librt.so* | libresolv.so* | libcuda.so* | libnvidia*) ;;
        *) cp -L "$library" "$target/lib/" ;;
    esac
done
strip --strip-unneeded "$target"/bin/* "$target"/lib/*

# Tests name files of the tree and of the build; both are laid out again below DIR.
mkdir "$target/tree"
(cd "$root" && find README.md config tests clients/python/examples -type f \
    \( -path README.md -o -path 'config/*' -o -path 'tests/golden/*' -o -name '*.sh' -o -name '*.py' \) -exec cp --parents {} "$target/tree/" \;)
cp -r "$build/python" "$target/python"
# Rules of the source tree say nothing about a bundle.
grep -v '^[^|]*|[^|]*|[^|]*tree|' "$build/tests.list" | sed -e "s|$build|@DIR@|g" -e "s|$root|@DIR@/tree|g" >"$target/tests.list"
cp "$root/deploy/run-tests.sh" "$target/"

size=$(du -sm "$target" | cut -f 1)
if [ "$size" -gt 64 ]; then
    echo "bundle: $target holds $size MiB; the limit is 64" >&2
    exit 1
fi
echo "bundle: $target, $size MiB; run $target/run-tests.sh on the other machine"
