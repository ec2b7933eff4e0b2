#!/usr/bin/env bash
# bulkhead judge: a judging that is killed goes on with --resume.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/judge/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

kernel right.comp <<< 'if (i < n) z[i] = a * x[i] + y[i];'
kernel less.comp <<< 'if (i < n) z[i] = a * x[i] + 0.999 * y[i];'
kernel broken.comp <<< 'if (i < n) z[i] = a * x[i] + y[i]'
endless endless.comp
kernel last.comp <<< 'if (i < n) z[i] = fma(a, x[i], y[i]);'
files=(right.comp less.comp broken.comp endless.comp last.comp)
task long.json '.limits.deadline = "1000s" | .groups = [1024]'

case_name="killed at the fourth of five"
"$BULKHEAD" judge long.json "${files[@]}" --state state --seed 42 --workers 1 --verbose > .stdout 2> .stderr &
judge=$!
for ((tries = 0; tries < 1200 * slowness; tries++)); do
    if grep -q 'kernel endless: compiled' .stderr || ! kill -0 "$judge" 2> /dev/null; then break; fi
    sleep 0.1
done
kill -KILL "$judge"
wait "$judge" 2> /dev/null
status=$?
expect_status 137
verdicts() { jq -c 'select(.verdict) | [.file, .verdict]' state/judge.jsonl | paste -sd' '; }
if [ "$(verdicts)" = '["right.comp","CORRECT"] ["less.comp","WRONG"] ["broken.comp","COMPILE_FAILED"]' ]; then
    passed=$((passed + 1))
else
    fail "recorded: $(verdicts)"
fi
# As a kill in the middle of a record leaves it.
printf '{"file":"endless.comp","content":"12' >> state/judge.jsonl

case_name="refusals change nothing"
refuses 'state has a judging of 3 candidates: resume it, or give another folder' \
    judge long.json right.comp --state state
refuses '--resume excludes --seed' judge long.json right.comp --state state --resume --seed 42
refuses '--resume needs --state' judge long.json right.comp --resume
task other.json '.limits.deadline = "2000s" | .groups = [1024]'
refuses 'state is of another task' judge other.json right.comp --state state --resume
refuses 'empty has no judging: there is nothing to resume' judge long.json right.comp --state empty --resume
rmdir empty

case_name="goes on"
kernel endless.comp <<< 'if (i < n) z[i] = 2.0 * a * x[i] + y[i];'
LIMIT=120 cli judge long.json "${files[@]}" --state state --resume --workers 2 --verbose --json
expect_status 1
says right.comp CORRECT '.runs == 14 and .deterministic'
says less.comp WRONG '.wrong.output == "Z" and .size == {n: 1} and .seed == "1" and (.message | contains(" are wrong (n=1, seed 1)"))'
says broken.comp COMPILE_FAILED '(.message | contains("broken.comp:10: error"))'
says endless.comp WRONG
says last.comp CORRECT
expect_json '.hidden_seeds == ["42"] and .correct == 2'
for name in right less broken; do
    if grep -q "kernel $name: compiled" .stderr; then fail "$name ran again"; else passed=$((passed + 1)); fi
done
expect_stderr 'kernel last: compiled'

case_name="all is known: nothing runs, and a file that has changed does"
LIMIT=120 cli judge long.json "${files[@]}" --state state --resume --verbose --json
says last.comp CORRECT '.runs == 14'
if grep -q 'kernel last: compiled' .stderr; then fail "it ran again"; else passed=$((passed + 1)); fi
kernel last.comp <<< 'if (i < n) z[i] = 0.5 * fma(a, x[i], y[i]);'
LIMIT=120 cli judge long.json "${files[@]}" --state state --resume --json
says last.comp WRONG

case_name="times, too, are recorded, and not taken again"
task quick.json '.sizes = [{n: 1000}]'
LIMIT=120 cli judge quick.json right.comp --state timed
expect_status 0
LIMIT=120 cli judge quick.json right.comp --state timed --resume --time --repeat 5 --json
says right.comp CORRECT '(.timing | length) == 1'
# recorded CHANGE: the folder, with the last times changed by jq: what a busy machine measures is unknown.
recorded() {
    jq -c "if .timing | length > 0 then .timing[0] += $1 else . end" timed/judge.jsonl > changed
    cp changed timed/judge.jsonl
}
recorded '{ratio: 2, low: 1.9, high: 2.1}'
LIMIT=120 cli judge quick.json right.comp --state timed --resume --time --verbose --json
says right.comp CORRECT '.timing[0].low == 1.9'
LIMIT=120 cli judge quick.json right.comp --state timed --resume --time --slower-than 1.5 --verbose --json
says right.comp SLOWER '.message == "it takes 2.000 times as long as the reference, at least 1.900 (n=1000)"'
if grep -q 'kernel right: compiled' .stderr; then fail "it ran again"; else passed=$((passed + 1)); fi
if [ "$(wc -l < timed/judge.jsonl)" -eq 3 ]; then passed=$((passed + 1)); else fail "not two records"; fi

refuses 'timed has a judging of 1 candidate: resume it' judge quick.json right.comp --state timed

case_name="a ratio that is not known is measured again"
recorded '{ratio: 0, low: 0, high: 0}'
LIMIT=120 cli judge quick.json right.comp --state timed --resume --json
says right.comp CORRECT '.timing[0].ratio == null'
LIMIT=120 cli judge quick.json right.comp --state timed --resume --time --repeat 6 --json
says right.comp CORRECT '.timing[0].runs == 6'
if [ "$(wc -l < timed/judge.jsonl)" -eq 4 ]; then passed=$((passed + 1)); else fail "not three records"; fi
finish
