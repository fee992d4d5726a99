#!/usr/bin/env bash
# Installs the packages that building and testing voxeld needs, those that are missing and no others.
#
#   deploy/setup.sh            compiler, CMake, Ninja and the libraries
#   deploy/setup.sh --dev      also the lint tools (clang-format, clang-tidy, shellcheck)
#   deploy/setup.sh --checkers also OpenVDB's programs, which tests hold our files against (14 MB to fetch, 126 MB on disk),
#                              and what the Python client needs; where apt does not have them, those tests are skipped
#   deploy/setup.sh --list     print what is missing and change nothing
#
# Debian 12, Ubuntu 22.04 and 24.04 (apt); as root, or as a user with sudo.  CUDA is never installed: nvcc is used where it is.
# Exit: 0 everything is there; 1 something is missing and could not be installed; 2 bad usage.
set -euo pipefail

packages=(build-essential cmake ninja-build pkg-config libuv1-dev libzmq3-dev libprotobuf-c-dev
    protobuf-c-compiler libyaml-dev libpng-dev libjpeg-dev check)
lint_packages=(clang-format clang-tidy shellcheck)
check_packages=(libnanovdb-dev libnanovdb-tools libopenvdb-tools python3-zmq python3-numpy python3-protobuf python3-pil)
checkers=no
list_only=no

die() {
    printf 'setup: %s\n' "$1" >&2
    exit "${2:-1}"
}

for argument in "$@"; do
    case $argument in
        --dev) packages+=("${lint_packages[@]}") ;;
        --checkers) checkers=yes ;;
        --list) list_only=yes ;;
        -h | --help)
            sed -n '2,11s/^# \{0,1\}//p' "$0"
            exit 0
            ;;
        *) die "unknown option '$argument'; see deploy/setup.sh --help" 2 ;;
    esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    die "this machine has no apt. Install by its own package manager what these Debian packages hold, then build with
CMake as README.md says: ${packages[*]}"
fi

# Prints those of the packages that are not installed, a line each.
missing_of() {
    local package state
    for package in "$@"; do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
        [ "$state" = installed ] || echo "$package"
    done
}

mapfile -t missing < <(missing_of "${packages[@]}")
extra=()
[ "$checkers" = no ] || mapfile -t extra < <(missing_of "${check_packages[@]}")

if [ "$list_only" = yes ]; then
    [ "$((${#missing[@]} + ${#extra[@]}))" -eq 0 ] || printf '%s\n' "${missing[@]}" "${extra[@]}"
    exit 0
fi
if [ "$((${#missing[@]} + ${#extra[@]}))" -eq 0 ]; then
    echo "setup: all packages are there"
    exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "these packages are missing, and neither root nor sudo is at hand to install them.
Ask an administrator to run: apt-get install --no-install-recommends ${missing[*]} ${extra[*]}"
    as_root=(sudo)
fi
as_root+=(env DEBIAN_FRONTEND=noninteractive)
install=("${as_root[@]}" apt-get install -y -q --no-install-recommends)

# The package lists of a fresh machine are empty or old: fetch them, then try; a failed fetch may still leave good lists.
"${as_root[@]}" apt-get update -q || echo "setup: apt-get update failed; trying with the lists that are there" >&2
if [ "${#missing[@]}" -gt 0 ]; then
    echo "setup: installing ${missing[*]}"
    "${install[@]}" "${missing[@]}" ||
        die "apt-get could not install them; the lines above say why. Mend that and run deploy/setup.sh again"
fi
for package in "${extra[@]}"; do # one by one: what apt does not have keeps none of the others away
    echo "setup: installing $package"
    "${install[@]}" "$package" || echo "setup: apt-get could not install it; tests that use it are skipped" >&2
done
