#!/usr/bin/env bash
# What a batch says while it runs: one live line on a terminal, which is taken away for whatever else
# is said, and plain lines where it is none.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/jobs.sh
. "$(dirname "${BASH_SOURCE[0]}")/jobs.sh"
export TERM=xterm
unset NO_COLOR

"$NPY" make x.npy 'f32[1000]' ramp 0 1
"$NPY" make d.npy 'u32[1000]' ramp 0 1
{
    square a x.npy a.npy
    # Time enough to be seen running once the other is done, and for a rate.
    echo "{\"id\":\"endless\",\"kernel\":\"$SHADERS/hang.spv\",\"groups\":[65535],\"depends_on\":[\"a\"],\
\"inout\":{\"0\":\"d.npy:h.npy\"},\"deadline\":\"${slowness}s\",\"retries\":0}"
} > jobs.jsonl

# What was drawn of the live line, a line each, and what was printed.
drawn() {
    tr '\r' '\n' < .stdout | sed 's/\x1b\[K//g;s/\x1b\[[0-9;]*m//g'
}

expect_drawn() {
    if drawn | grep -qxE -- "$1"; then passed=$((passed + 1)); else fail "never drawn: $1"; fi
}

case_name="a live line on a terminal"
on_one_processor script -qefc "stty cols 100; '$BULKHEAD' batch jobs.jsonl --grace ${slowness}s" /dev/null < /dev/null > .stdout 2> .stderr
status=$?
expect_status 1
expect_drawn '([0-9]+ min )?[0-9]+ s left, 1 of 2 done, 1 running, 0 waiting, [0-9.]+ a (second|minute)'
# It is gone before the next thing is said: the failure, and the summary.
if grep -qP '^.*\r\x1b\[K\x1b\[31mendless\x1b\[0m: quarantined, DEADLINE: ' .stdout; then
    passed=$((passed + 1))
else
    fail "the failure stands behind the line"
fi
expect_drawn '2 jobs: 1 done, 0 failed, 1 quarantined'

case_name="a line that is as narrow as COLUMNS says: what wraps cannot be taken back"
COLUMNS=24 on_one_processor script -qefc "stty cols 100; '$BULKHEAD' batch jobs.jsonl --state narrow --grace ${slowness}s" /dev/null < /dev/null > .stdout 2> .stderr
status=$?
expect_status 1
expect_drawn '([0-9]+ min )?[0-9]+ s left(, 1 of 2 done)?'

case_name="plain lines where standard error is no terminal"
on_one_processor cli batch jobs.jsonl --state plain --grace "${slowness}s"
expect_status 1
if grep -q $'[\r\x1b]' .stderr; then fail "there are control characters"; else passed=$((passed + 1)); fi
# Every ten seconds it says how far it is.
if [ "$(sed '/^[0-9][^:]* left, /d;/ running, /d;s/, [0-9.]* a \(second\|minute\)$//;s/DEADLINE: .*/DEADLINE/' .stderr)" = "endless: quarantined, DEADLINE
1 of 2 done, 1 quarantined" ]; then
    passed=$((passed + 1))
else
    fail "other lines"
fi

case_name="no more failures are told than can be read"
echo "no kernel" > bad.spv
for i in $(seq 52); do
    echo "{\"id\":\"j$i\",\"kernel\":\"bad.spv\",\"groups\":[1],\"out\":{\"0\":\"$i.npy:f32[1]\"}}"
done > jobs.jsonl
cli batch jobs.jsonl --state many
expect_status 1
told=$(grep -c '^j[0-9]*: failed, ' .stderr)
if [ "$told" -eq 50 ]; then passed=$((passed + 1)); else fail "$told are told"; fi
if [ "$(grep -cx 'further failures are listed at the end' .stderr)" -eq 1 ]; then
    passed=$((passed + 1))
else
    fail "how it goes on is not told once"
fi
finish
