#!/usr/bin/env bash
# Checks a source tree against the rules of the layout; prints each breach and ends with 1 when there is one.
#   check_tree.sh ROOT
# Rules: include direction kernels <- core <- daemon, proto in daemon and clients only, clients without core (base/, the error
# table, serves all); libraries of one layer do not turn up in another; only kernels/dev.h and kernels/cuda ask which
# compiler this is; source files stay under 800 lines; no paths of a developer's machine.
set -euo pipefail

if [ $# -ne 1 ] || [ ! -d "$1" ]; then
    echo "usage: check_tree.sh ROOT" >&2
    exit 2
fi
cd "$1"
folders=()
for folder in .ci config clients core daemon deploy kernels proto tests; do
    [ -d "$folder" ] && folders+=("$folder")
done
[ "${#folders[@]}" -gt 0 ] || { echo "check_tree: nothing of the layout lies in $1" >&2; exit 2; }

list=$(mktemp)
trap 'rm -f "$list"' EXIT
find "${folders[@]}" -type f -not -path '*/build*/*' | LC_ALL=C sort >"$list"
for file in CMakeLists.txt README.md; do
    [ -f "$file" ] && echo "$file" >>"$list"
done

LC_ALL=C awk -v listing="$list" '
function breach(where, words) { print where ": " words; breaches++ }

# The files that `#include "name"` in `file` may mean: beside it, else every header whose path ends with the name.
function resolve(file, name,    dir, path, i, n, found) {
    dir = file
    sub(/[^\/]*$/, "", dir)
    path = dir name
    while (sub(/[^\/]+\/\.\.\//, "", path)) { }
    if (path in exists)
        return path
    n = split(endings[base_of(name)], found, "\n")
    path = ""
    for (i = 1; i <= n; i++)
        if (found[i] == name || substr(found[i], length(found[i]) - length(name)) == "/" name)
            path = path (path == "" ? "" : "\n") found[i]
    return path
}
function base_of(path) { sub(/.*\//, "", path); return path }
function top_of(path) { sub(/\/.*/, "", path); return path }

function may_include(from, path,    to) {
    to = top_of(path)
    if (from == "tests" || from == to || path ~ /^kernels\/base\//)
        return 1
    return index(allowed[from], " " to " ") > 0
}

function check_quoted(file, line, name,    from, hits, n, i, words) {
    from = top_of(file)
    if (name ~ /\.pb-c\.h$/) {
        if (from != "proto" && from != "tests" && index(allowed[from], " proto ") == 0)
            breach(file ":" line, from " must not include messages (" name ")")
        return
    }
    n = split(resolve(file, name), hits, "\n")
    words = ""
    for (i = 1; i <= n; i++) {
        if (top_of(hits[i]) == from)
            return
        if (!may_include(from, hits[i]))
            words = from " must not include " hits[i]
    }
    if (words != "")
        breach(file ":" line, words)
}

function check_system(file, line, name,    from) {
    from = top_of(file)
    if ((from == "kernels" || from == "core") && name ~ /^(zmq|uv|yaml|protobuf-c\/|png|lmdb)/)
        breach(file ":" line, from " must not use <" name ">")
    if (from == "clients" && name ~ /^uv/)
        breach(file ":" line, "clients must not use <" name ">")
    if (name ~ /^(cuda|cub\/|thrust\/|nvtx)/ && file !~ /^(kernels\/cuda\/|kernels\/dev\.h$|tests\/)/)
        breach(file ":" line, "CUDA headers belong in kernels/cuda (<" name ">)")
}

BEGIN {
    allowed["kernels"] = " "
    allowed["core"] = " kernels "
    allowed["proto"] = " "
    allowed["daemon"] = " proto core kernels "
    allowed["clients"] = " proto "
    homes = "(^|[^A-Za-z0-9_.$}])/(home|Users|work|mnt|media)/[A-Za-z0-9_]|(^|[^A-Za-z0-9_.$}])/" "root/"
    while ((getline file < listing) > 0) {
        files[++n_files] = file
        exists[file] = 1
        if (file ~ /^tests\/support\/cuda_emulated\/include\//)
            continue # stand in for headers of the system
        endings[base_of(file)] = endings[base_of(file)] (base_of(file) in endings && endings[base_of(file)] != "" ? "\n" : "") file
    }
    for (k = 1; k <= n_files; k++) {
        file = files[k]
        if (file !~ /(\.(c|h|cu|cuh|cpp|def|inc|sh|cmake|proto|md|yaml|yml|in|py|txt)|\/run|\/run-[a-z-]*)$/ || file ~ /^tests\/golden\//)
            continue
        source = file ~ /\.(c|h|cu|cuh|cpp|def|inc)$/
        n_lines = 0
        while ((getline text < file) > 0) {
            n_lines++
            if (source && match(text, /^[ \t]*#[ \t]*include[ \t]*/)) {
                name = substr(text, RLENGTH + 1)
                if (name ~ /^"[^"]+"/) {
                    sub(/^"/, "", name); sub(/".*/, "", name)
                    check_quoted(file, n_lines, name)
                } else if (name ~ /^<[^>]+>/) {
                    sub(/^</, "", name); sub(/>.*/, "", name)
                    check_system(file, n_lines, name)
                    check_quoted(file, n_lines, name)
                }
            }
            if (source && text ~ /__CUDACC__|__CUDA_ARCH__|__NVCC__/ && file !~ /^(kernels\/(dev\.h$|cuda\/)|tests\/support\/cuda_emulated\/)/)
                breach(file ":" n_lines, "only kernels/dev.h and kernels/cuda ask which compiler this is")
            if (text ~ homes)
                breach(file ":" n_lines, "a path of a developer'\''s machine")
        }
        close(file)
        if (file ~ /\.(c|h|cu|cuh|cpp|sh|py)$/ && n_lines >= 800)
            breach(file, n_lines " lines; files stay under 800")
    }
    if (n_files == 0) { print "check_tree: no files"; exit 2 }
    exit breaches > 0
}' </dev/null
