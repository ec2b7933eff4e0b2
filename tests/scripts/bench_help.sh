#!/usr/bin/env bash
# Each benchmark says what it takes: with --help on standard output, with an unknown option on
# standard error. Neither runs anything. Usage: bench_help.sh PROGRAM...
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

for program; do
    name=$(basename "$program")
    ends 0 "$name --help" "$program" --help
    head -n 1 "$folder/said" | grep -q "^Usage: $name" || fail "$name --help begins otherwise"
    [ "$(wc -l < "$folder/said")" -ge 2 ] || fail "$name --help does not say what it measures"
    "$program" --help 2>&1 > /dev/null | grep -q . && fail "$name --help complains"
    ends 2 "$name --nonsense" "$program" --nonsense
    "$program" --nonsense 2> /dev/null | grep -q . && fail "$name --nonsense uses standard output"
done
[ $# -gt 0 ] || fail "no programs were given"
[ $failed -eq 0 ]
