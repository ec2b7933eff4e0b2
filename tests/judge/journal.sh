#!/usr/bin/env bash
# bulkhead judge --state: what is recorded comes back, and nothing that does not belong to it.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/judge/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

kernel right.comp <<< 'if (i < n) z[i] = a * x[i] + y[i] + float(floatBitsToUint(z[i]) & 3u) * 1e-7;'
kernel wrong.comp <<< 'if (i < n) z[i] = i == 7 ? uintBitsToFloat(0x7fc00000u + n - n) : a * x[i] + y[i];'
kernel binding.comp <<< 'if (i < n) z[i] = a * x[i] + y[i];'
endless endless.comp
files=(right.comp wrong.comp binding.comp endless.comp)
task task.json '.limits.deadline = "1s" | .groups = [1024]'
LIMIT=120 cli judge task.json "${files[@]}" --seed 42 --seed 18446744073709551615 --workers 1 --state state --json
expect_status 1
cp .stdout first.json
cp -r state kept
resume() { LIMIT=120 cli judge task.json "${files[@]}" --state state --resume --verbose --json; }
# again CHANGE: the journal as it was, with a sed script.
again() { sed "$1" kept/judge.jsonl > state/judge.jsonl; }

case_name="what is recorded comes back"
resume
expect_status 1
if cmp -s first.json .stdout; then passed=$((passed + 1)); else fail "$(diff first.json .stdout)"; fi
if grep -q ': compiled' .stderr && ! grep -q 'kernel reference' .stderr; then fail "one ran again"; else passed=$((passed + 1)); fi

case_name="why a candidate has failed is recorded, and resumed"
again '4s/"reason":[^,]*,/"reason":"BINDING_KIND",/; 4s/"subject":[^,]*,/"subject":{"kind":"BINDING","name":"Z"},/'
resume
says binding.comp CORRECT
again '5s/"reason":[^,]*,/"reason":"COMPILE_DEADLINE",/; 5s/"subject":null/"subject":{"kind":"KERNEL","name":"endless"}/'
resume
says endless.comp DEADLINE '.reason == "COMPILE_DEADLINE" and .subject == {kind: "KERNEL", name: "endless"}'
again 's/"reason":[^,]*,"subject":null,//' # as builds without them have left it
resume
says endless.comp DEADLINE '.reason == null and .subject == null'

# damaged LINE CHANGE: a journal that is changed so is refused.
damaged() {
    case_name="damaged: $2"
    again "$2"
    resume
    expect_status 3
    expect_stderr "state/judge.jsonl:$1: it is damaged"
}
damaged 1 '1s/{"bulkhead_judge":2/{"bulkhead_judge":[2]/'
damaged 1 '1s/"hidden_seeds":\["42"/"hidden_seeds":["x"/'
damaged 3 '3s/^{"file"/{"fine"/'
damaged 3 '3s/^{/[/'
damaged 3 '3s/"content":"./"content":"/'
damaged 3 '3s/"trial":[0-9]*/"trial":99/'
damaged 3 '3s/"trial":[0-9]*/"trial":null/'
damaged 3 '3s/"array":[0-9]*/"array":3/'
damaged 3 '3s/"wrong":1/"wrong":-1/'
damaged 3 '3s/"ulp":"/"ulp":"-/'
damaged 3 '3s/"got":"nan"/"got":7/'
damaged 2 '2s/"timing":\[\]/"timing":[{}]/'
damaged 2 '2s/"runs":/"runs":-/'
damaged 2 '2s/^{/\x00/' # only the last line may have zeros
damaged 5 '5s/"judgement":3/"judgement":7/'
damaged 5 '5s/"blame":2/"blame":3/'

case_name="another judging is refused"
again '1s/{"bulkhead_judge":2/{"bulkhead_judge":3/'
resume
expect_status 3
expect_stderr 'state/judge.jsonl was made by another version of bulkhead'
again '1s/"identity":"./"identity":"/'
refuses 'state is of another task' judge task.json right.comp --state state --resume
again '1s/"device":"[^"]*"/"device":"nvidia:1"/'
refuses 'state is of device nvidia:1, and this is ' judge task.json right.comp --state state --resume

case_name="a file under another name is another candidate"
again ''
cp right.comp other.comp
LIMIT=120 cli judge task.json other.comp --state state --resume --verbose --json
expect_stderr 'kernel other: compiled'

case_name="folders that are refused"
rm state/judge.jsonl
for more in '' --resume; do
    # shellcheck disable=SC2086 # none or one word
    cli judge task.json right.comp --state state $more
    expect_status 3
    expect_stderr 'state has lost its judge.jsonl'
done
mkdir -m 700 foreign
ln -s elsewhere foreign/judge.jsonl
cli judge task.json right.comp --state foreign
expect_status 3
expect_stderr 'foreign/judge.jsonl cannot be opened'
rm foreign/judge.jsonl
: > foreign/judge.jsonl
chmod 622 foreign/judge.jsonl
cli judge task.json right.comp --state foreign
expect_status 3
expect_stderr 'foreign/judge.jsonl can be written by others'
finish
