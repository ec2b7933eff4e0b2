#!/usr/bin/env bash
# Writes what a later version could have: headers in which each struct that may grow has one more
# field, abi_probe, and a layout.def that knows it. Usage: grow.sh SOURCE_DIR OUT
set -euo pipefail
source=$1 out=$2
rm -rf "$out/include"
mkdir -p "$out/include/bulkhead" "$out/supervisor/context"
structs=$(sed -n 's/^BHI_LAYOUT(\([a-z_]*\),.*/\1/p' "$source/supervisor/context/layout.def" | sort -u)
edits=()
for name in $structs; do
    edits+=(-e "s/^} $name;/    uint64_t abi_probe;\n} $name;/")
done
for header in "$source"/include/bulkhead/*.h; do
    {
        # What initialises a struct by position does not know the new field.
        echo '#pragma GCC diagnostic ignored "-Wmissing-field-initializers"'
        sed "${edits[@]}" "$header"
    } > "$out/include/bulkhead/$(basename "$header")"
done
{
    cat "$source/supervisor/context/layout.def"
    for name in $structs; do echo "BHI_LAYOUT($name, abi_probe)"; done
} > "$out/supervisor/context/layout.def"
grown=$(cat "$out"/include/bulkhead/*.h | grep -c 'uint64_t abi_probe;')
[ "$grown" = "$(wc -w <<< "$structs")" ] || { echo "grow.sh: $grown structs have grown, not all: $structs" >&2; exit 1; }
touch "$out/stamp"
