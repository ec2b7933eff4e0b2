#!/usr/bin/env bash
# Each benchmark says what it takes: with --help on standard output, with an unknown option on
# standard error. A number of rounds that is none, or out of range, is refused with the range.
# None of them runs anything. Usage: bench_help.sh PROGRAM...
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

with_rounds=0
for program; do
    name=$(basename "$program")
    ends 0 "$name --help" "$program" --help
    head -n 1 "$folder/said" | grep -q "^Usage: $name" || fail "$name --help begins otherwise"
    [ "$(wc -l < "$folder/said")" -ge 2 ] || fail "$name --help does not say what it measures"
    "$program" --help 2>&1 > /dev/null | grep -q . && fail "$name --help complains"
    ends 2 "$name --nonsense" "$program" --nonsense
    "$program" --nonsense 2> /dev/null | grep -q . && fail "$name --nonsense uses standard output"
    "$program" --help | grep -q -- '--rounds' || continue
    with_rounds=$((with_rounds + 1))
    for rounds in 0 3x -1 '' 99999999999999999999; do
        ends 2 "$name --rounds '$rounds'" "$program" --rounds "$rounds"
        "$program" --rounds "$rounds" 2>&1 |
            grep -qxE -- "$name: --rounds '$rounds': not a number from 1 to [0-9]+" ||
            fail "$name --rounds '$rounds' does not say the range"
    done
done
[ "$with_rounds" -ge 5 ] || fail "few benchmarks have --rounds: $with_rounds"
[ $# -gt 0 ] || fail "no programs were given"
[ $failed -eq 0 ]
