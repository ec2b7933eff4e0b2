#!/usr/bin/env bash
# What was built against 0.1 is not given this library: its structs had no sizes, so it cannot be
# served, and must be neither overwritten nor misread. It does not link, and does not start.
# Usage: host_0_1.sh SOURCE_DIR LIBRARY CC
set -euo pipefail
source=$1 library=$2 cc=$3
here=$source/tests/abi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() { echo "host_0_1: $*" >&2; exit 1; }

"$cc" -std=c17 -I "$here/include_0_1" -c "$here/host_0_1.c" -o "$work/host.o"
if "$cc" "$work/host.o" "$library" -o "$work/host" 2> "$work/link"; then
    die "a host of 0.1 links: $(LD_LIBRARY_PATH=$(dirname "$library") "$work/host" || true)"
fi
grep -q "undefined reference to .bh_stream_options_init'" "$work/link" ||
    die "it does not link for another reason: $(cat "$work/link")"

# Linked with 0.1 it asks for 0.1, and is not given what is installed now.
mkdir "$work/old" "$work/new"
soname=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
cp "$library" "$work/new/$soname"
echo 'void bh_stream_options_init(void *options) { (void)options; }' > "$work/old.c"
"$cc" -shared -fPIC -Wl,-soname,libbulkhead.so.0 "$work/old.c" -o "$work/old/libbulkhead.so.0"
"$cc" "$work/host.o" "$work/old/libbulkhead.so.0" -o "$work/host"
if LD_LIBRARY_PATH=$work/new "$work/host" 2> "$work/start"; then
    die "a host of 0.1 starts with the library of another version"
fi
grep -q 'libbulkhead\.so\.0: cannot open' "$work/start" || die "not for its SONAME: $(cat "$work/start")"
echo "refused"
