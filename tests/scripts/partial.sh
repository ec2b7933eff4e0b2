#!/usr/bin/env bash
# A build of some targets leaves no folder that Python would import as an empty package, and
# scripts/demo builds what README.md runs after it. Nothing is compiled: ninja says what it would do.
# Usage: partial.sh SOURCE
set -euo pipefail
source=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
die() {
    echo "$*" >&2
    exit 1
}

cmake -S "$source" --preset release -B "$folder" > "$folder/log" 2>&1 || {
    tail -n 20 "$folder/log" >&2
    die "cmake failed"
}
[ ! -e "$folder/python/bulkhead" ] || die "there is python/bulkhead before anything was built"
would_make() { # FILE TARGET...
    local file=$1
    shift
    ninja -C "$folder" -t commands "$@" > "$folder/log"
    grep -q -- "[ /]$file\( \|$\)" "$folder/log"
}
for file in __init__.py _native.abi3.so _status.py; do
    would_make "python/bulkhead/$file" bulkhead_python || die "bulkhead_python does not make $file"
    ! would_make "python/bulkhead/$file" bulkhead_python_native bulkhead-cli ||
        die "bulkhead_python_native makes $file alone"
done
for file in bin/example_saxpy bin/bulkhead-warden bin/bulkhead-worker python/bulkhead/__init__.py; do
    # shellcheck disable=SC2046 # words are wanted
    would_make "$file" $(sed -n 's/^targets=(\(.*\))$/\1/p' "$source/scripts/demo") ||
        die "scripts/demo does not build $file"
done
