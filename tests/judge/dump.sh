#!/usr/bin/env bash
# bulkhead judge --dump: what a candidate that is not right read and wrote, and what was expected.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/judge/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

kernel right.comp <<< 'if (i < n) z[i] = a * x[i] + y[i];'
kernel less.comp <<< 'if (i < n) z[i] = a * x[i] + 0.999 * y[i];'
kernel hidden.comp <<< 'if (i < n) z[i] = a * x[i] + (i == 2u ? 0.5 : 1.0) * y[i];'
kernel broken.comp <<< 'if (i < n) z[i] = a * x[i] + y[i]'
endless endless.comp
mkdir -p a
cp less.comp a/b.comp
cp less.comp a_b.comp
cp less.comp '.<b>&"x".comp'
task task.json '.reference = {kernel: "right.comp"} | .seeds = []'
task short.json '.limits.deadline = "'"$slowness"'s" | .groups = [65535]'

case_name="each candidate that is not right has a folder"
LIMIT=120 cli judge task.json right.comp less.comp hidden.comp broken.comp a/b.comp ./a_b.comp '.<b>&"x".comp' \
    --seed 42 --dump dump --json
expect_status 1
expect_empty .stderr
says right.comp CORRECT '.dump == null'
says broken.comp COMPILE_FAILED '.dump == null'
says less.comp WRONG '.dump == "dump/less.comp" and .hidden and .size == {n: 1}'
says hidden.comp WRONG '.dump == "dump/hidden.comp" and .size == {n: 1000}'
says a/b.comp WRONG '.dump == "dump/a_b.comp"'
says ./a_b.comp WRONG '.dump == "dump/a_b.comp-2"'
says '.<b>&"x".comp' WRONG '.dump == "dump/__b___x_.comp"'
found=$(cd dump && find . -type f | LC_ALL=C sort | paste -sd' ')
expected=$(for name in __b___x_.comp a_b.comp a_b.comp-2 hidden.comp less.comp; do
    printf '%s\n' "./$name/"{inputs/X,inputs/Y,expected/Z,actual/Z}.npy
done | LC_ALL=C sort | paste -sd' ')
if [ "$found" = "$expected" ]; then passed=$((passed + 1)); else fail "there is $found"; fi

# same KERNEL N FILE FOLDER: what the kernel computes from the inputs in the folder is FILE.
same() {
    "$BULKHEAD" run "$1" --groups "$((($2 + 63) / 64))" --push a=2.5,n="$2" --in "X=$4/inputs/X.npy" \
        --in "Y=$4/inputs/Y.npy" --out "Z=z.npy:f32[$2]" > .run 2>&1
    if cmp -s z.npy "$4/$3/Z.npy"; then passed=$((passed + 1)); else fail "$4/$3 is not what $1 computes"; fi
}
case_name="the arrays are those of the run"
same right.comp 1 expected dump/less.comp
same less.comp 1 actual dump/less.comp
same right.comp 1000 expected dump/hidden.comp
same hidden.comp 1000 actual dump/hidden.comp
if cmp -s dump/less.comp/actual/Z.npy dump/less.comp/expected/Z.npy; then
    fail "what is wrong is what was expected"
fi

case_name="a folder that has something is refused before anything runs"
refuses '--dump dump is not empty: give another folder' judge task.json right.comp --dump dump
refuses '--dump task.json: Not a directory' judge task.json right.comp --dump task.json
refuses '--dump no/where: No such file or directory' judge task.json right.comp --dump no/where
refuses "--dump the folder's name is empty" judge task.json right.comp --dump ''

case_name="one that hangs has inputs alone, and the table says where"
mkdir empty
LIMIT=120 cli judge short.json endless.comp --seed 1 --dump empty
expect_status 1
expect_stdout 'arrays of 1 candidate are in empty'
if [ -f empty/endless.comp/inputs/X.npy ] && [ -f empty/endless.comp/expected/Z.npy ] &&
    [ ! -e empty/endless.comp/actual ]; then passed=$((passed + 1)); else fail "$(find empty)"; fi

case_name="of a verdict that was recorded, too"
LIMIT=120 cli judge task.json less.comp --state state --seed 42
LIMIT=120 cli judge task.json less.comp --state state --resume --dump again
expect_status 1
for part in inputs/X inputs/Y expected/Z actual/Z; do
    if cmp -s dump/less.comp/$part.npy again/less.comp/$part.npy; then passed=$((passed + 1)); else fail "$part differs"; fi
done
finish
