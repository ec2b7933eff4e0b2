#!/usr/bin/env bash
# bench-devices with a driver that has two devices, and with bad arguments.
# Usage: devices_pair.sh BENCH_DEVICES FAKE_PAIR
set -euo pipefail
bench=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Everybody can read it: workers of a root's host are nobody here.
chmod 755 "$folder"
install -m 755 "$2" "$folder/libvulkan_lvp.so.fake"
cat > "$folder/icd.json" << JSON
{"file_format_version": "1.0.0",
 "ICD": {"library_path": "$folder/libvulkan_lvp.so.fake", "api_version": "1.3.0"}}
JSON
export VK_DRIVER_FILES=$folder/icd.json
fail() {
    echo "FAILED: $*"
    cat "$folder/said"
    exit 1
}
ends() { # STATUS ARGUMENT...
    local status=0
    "$bench" "${@:2}" > "$folder/said" 2>&1 || status=$?
    [ $status -eq "$1" ] || fail "bench-devices ${*:2}: exit status $status, must be $1"
}
says() {
    grep -Eq -- "$1" "$folder/said" || fail "nothing says: $1"
}

ends 0 --quick --strict --streams 2
says '^lavapipe:0 +Twin 0$'
says '^lavapipe:1 +Twin 1$'
says '^one device +[0-9.]+  lavapipe:0 16$'
says '^any device +[0-9.]+  lavapipe:0 [1-9][0-9]*, lavapipe:1 [1-9][0-9]*$'
says '^ratio [0-9.]+ with 2 devices, .* no goal'
# All jobs, by the devices that ran them.
sum=$(sed -nE 's/^any .*lavapipe:0 ([0-9]+), lavapipe:1 ([0-9]+)$/\1 + \2/p' "$folder/said")
[ $((sum)) -eq 16 ] || fail "$sum jobs, not 16"
ends 0 --help
says '^Usage: bench-devices'
ends 2 --jobs 0
says "--jobs '0': not a number from 1 to"
ends 2 --nonsense
says '--nonsense is no option, or lacks its value'
