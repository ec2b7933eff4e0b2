#!/usr/bin/env bash
# Writes the C program that prints the layout of the public structs in INCLUDE (tests/abi/structs.awk).
# Usage: probe.sh CC OUT INCLUDE [MORE…]   MORE: folders with what INCLUDE does not have
set -euo pipefail
cc=$1 out=$2
shift 2
includes=()
for folder in "$@"; do includes+=(-I "$folder"); done
here=$(dirname "$0")
"$cc" -E -P "${includes[@]}" -x c "$here/headers.h" |
    awk -f "$here/structs.awk" > "$out.new"
mv "$out.new" "$out"
