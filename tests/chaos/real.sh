#!/usr/bin/env bash
# `bulkhead chaos` on real workers: each fault alone, all of them together, from outside; what it
# prints, what it saves, what it refuses.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
LIMIT=120

# -- refusals -----------------------------------------------------------------------------------
refuses "'bang' is not a fault" chaos --faults kill,bang
refuses "it is not a rate" chaos --rate fast
refuses "it is not a rate" chaos --rate 5/m
refuses "it is not between" chaos --rate 0
refuses "it is not a share" chaos --find-rate 1/x
refuses "it is neither 0 nor between" chaos --find-rate 2
refuses "--streams 13" chaos --streams 13
refuses "--duration none" chaos --duration none
refuses "--count and --duration exclude each other" chaos --count 5 --duration 5s
refuses "--replay and --seed exclude each other" chaos --replay x.jsonl --seed 1
refuses "--check and --history exclude each other" chaos --check x.jsonl --history y.jsonl
refuses "--check missing.jsonl: it cannot be opened" chaos --check missing.jsonl
refuses "--replay missing.jsonl: it cannot be opened" chaos --replay missing.jsonl
refuses "nowhere" chaos --history nowhere/h.jsonl
echo data > data.html
refuses "is not a page" chaos --html data.html
refuses "the history is saved there: name another file" chaos --history one --html ./one
refuses "the history is saved there: name another file" chaos --seed 1 --html chaos-1.jsonl
case_name="refuses: a folder that takes no history"
(cd /proc && exec "$BULKHEAD" chaos --seed 1) > .stdout 2> .stderr
status=$?
expect_status 2
expect_stderr "the history chaos-1.jsonl: "
expect_stderr "--history FILE"
expect_empty .stdout
echo '{"schema":1' > cut.jsonl
refuses "--check cut.jsonl: line 1" chaos --check cut.jsonl

# -- few descriptors ----------------------------------------------------------------------------
case_name="a soft limit is raised to what it takes, and that is enough"
(ulimit -Sn 45 && ulimit -Hn 240 && cli chaos --seed 1 --faults kill,full --count 20 --json; echo "$status" > .status)
status=$(< .status)
expect_status 0
expect_json '.verdict == "valid" and .injected == 20'
case_name="a hard one is told before anything runs"
(ulimit -n 223 && cli chaos --seed 1 --count 2; echo "$status" > .status)
status=$(< .status)
expect_status 3
expect_stderr "a run with 2 streams needs 224 free file descriptors, but only "
expect_stderr " of 223 are free"
if [ "$(wc -l < .stderr)" -eq 1 ]; then passed=$((passed + 1)); else fail "not one line"; fi
expect_empty .stdout

# -- each fault alone ---------------------------------------------------------------------------
# What takes the right to trace a worker is missed without it, and that is said.
may_trace=$(( $(sed -n 's/^CapEff:\t/0x/p' /proc/self/status) >> 19 & 1 ))
# A valid run has compared enough results to find one wrong in 100, the default (of 1,000: mutants.sh).
for fault in kill segv stop hang oom garbage close zygote slow full device unguarded; do
    behind "$fault" chaos --seed 5 --faults $fault --count 4 --rate 10 --json
done
for fault in kill segv stop hang oom garbage close zygote slow full device unguarded; do
    case_name="fault $fault"
    of_behind "$fault"
    if { [ $fault = garbage ] || [ $fault = close ]; } && [ "$may_trace" = 0 ]; then
        expect_status 4
        expect_stderr "CAP_SYS_PTRACE"
        continue
    fi
    expect_status 0
    expect_json ".verdict == \"valid\" and .faults.$fault > 0"
    expect_json ".power.compared >= 299 and .ready >= .power.compared and .operations >= .ready"
    expect_json ".power.found_rate <= .power.find_rate and .power.find_rate == 0.01"
done

case_name="baits do not queue up"
cli chaos --seed 14 --faults hang --streams 1 --count 12 --rate 1000 --history baits.jsonl --json
expect_status 0
expect_json '.verdict == "valid" and .faults.hang > 4'
# Submitted, and those of them that had not ended then.
most=$(jq -s '(map(select(.kind == "end") | {(.op | tostring): .ended_ns}) | add) as $ended
    | map(select(.kind == "op" and .bait)) as $baits
    | [$baits[] as $new | [$baits[] | select(.op < $new.op and $ended[.op | tostring] > $new.at_ns)] | length]
    | max' baits.jsonl)
if [ "$most" -lt 4 ]; then passed=$((passed + 1)); else fail "$most baits waited when another came"; fi

# D2, by content: what a worker had left in device memory is read, and right, after its death.
case_name="device memory outlives its worker"
cli chaos --seed 9 --faults device --count 20 --history memory.jsonl --json
expect_status 0
expect_json '.verdict == "valid" and .faults.device == 20'
outlived=$(jq -s '(map(select(.kind == "fault" and (.missed | not)) | {(.pids[] | tostring): .at_ns}) | add) as $died
    | (map(select(.kind == "op" and .device) | {(.op | tostring): true}) | add) as $there
    | (map(select(.kind == "end" and .state == "ready") | {(.op | tostring): .worker_pid}) | add) as $by
    | [.[] | select(.kind == "result" and .status == "OK" and $there[.op | tostring])
        | select(.at_ns > ($died[$by[.op | tostring] | tostring] // infinite))] | length' memory.jsonl)
if [ "$outlived" -gt 0 ]; then passed=$((passed + 1)); else fail "nothing was read after its worker's death"; fi
case_name="the same again"
cli chaos --replay memory.jsonl --json
expect_status 0
expect_json '.verdict == "valid" and .faults.device > 10'
case_name="device memory, from outside"
cli chaos --seed 9 --outside --faults device --count 10 --json
expect_status 0
expect_json '.verdict == "valid" and .outside and .faults.device == 10'

# What one device needs of the other is moved and copied by the library; workers are killed in that, too.
case_name="two devices"
pair=$(mktemp -d "${TMPDIR:-/tmp}/bulkhead-chaos-XXXXXX")
trap 'rm -rf "$folder" "$pair"' EXIT
FAKE_GPU=$TWO_DEVICES fake_gpu "$pair"
VK_DRIVER_FILES=$pair/fake_icd.json \
    cli chaos --seed 9 --device any --streams 4 --faults kill,device --count 12 --history two.jsonl --json
expect_status 0
expect_json '.verdict == "valid" and .faults.device > 0 and .faults.kill > 0'

# Nothing stops it but the end of its worker, which on a processor is its own end: nobody is charged.
case_name="kernels without the guard"
cli chaos --seed 9 --faults unguarded --count 8 --history unguarded.jsonl --json
expect_status 0
expect_json '.verdict == "valid" and .faults.unguarded == 8'
ends=$(jq -s '(map(select(.kind == "op" and .bait) | {(.op | tostring): true}) | add) as $baits
    | [.[] | select(.kind == "end" and $baits[.op | tostring]) | select(.status == "DEADLINE" and .signal == 9)]
    | length' unguarded.jsonl)
if [ "$ends" -eq 8 ]; then passed=$((passed + 1)); else fail "$ends of 8 ended by the end of their workers"; fi
case_name="and the same again"
cli chaos --replay unguarded.jsonl --json
expect_status 0
expect_json '.verdict == "valid" and .faults.unguarded == 8'

# -- together -----------------------------------------------------------------------------------
case_name="all of them"
cli chaos --seed 6 --duration 4s --history all.jsonl --html all.html
expect_status 0
expect_stdout "valid: every promise was kept"
[ -s all.jsonl ] || fail "no history"
[ -s all.html ] || fail "no page"
case_name="a saved history is checked alike"
cli chaos --check all.jsonl --json
expect_status 0
expect_json '.verdict == "valid" and .seed == "6" and .power.compared >= 299 and .power.find_rate == 0.01'
compared=$(jq .power.compared .stdout)
expect_untouched
case_name="too few operations are no verdict"
# The same history, of which somewhat more was asked for than it has, and somewhat less.
jq -c "if .bulkhead_chaos then .find_rate = 2.9 / $compared else . end" all.jsonl > enough.jsonl
cli chaos --check enough.jsonl --json
expect_status 4
expect_json '.verdict == "unknown" and (.findings | length == 1)'
expect_json '.findings[0].text | startswith("too few operations: the run would have found one wrong operation in ")'
cli chaos --check enough.jsonl
expect_status 4
expect_stdout "unknown: this run proves nothing"
expect_stdout "too few operations"
jq -c "if .bulkhead_chaos then .find_rate = 3.1 / $compared else . end" all.jsonl > enough.jsonl
cli chaos --check enough.jsonl --json
expect_status 0
expect_json '.verdict == "valid"'
expect_untouched
rm enough.jsonl
case_name="a saved history is replayed"
cli chaos --replay all.jsonl --json
expect_status 0
expect_json '.verdict == "valid" and .injected > 0'

ln all.jsonl hard.jsonl
ln -s all.jsonl soft.jsonl
for name in all.jsonl ./all.jsonl hard.jsonl soft.jsonl; do
    refuses "--history $name: that file is the history to replay" \
        chaos --replay all.jsonl --history $name
done
INPUT=all.jsonl refuses "that file is the history to replay" \
    chaos --replay - --history all.jsonl
rm hard.jsonl soft.jsonl

sed 's/"stream":1/"stream":2/' all.jsonl > stream.jsonl
refuses "'stream' must be less than 2, the number of streams" chaos --replay stream.jsonl
sed 's/"words":64,/"words":4000000000,/' all.jsonl > words.jsonl
refuses "'words' must be a whole number" chaos --replay words.jsonl

sed 's/"words":64,/"words":0,/' all.jsonl > words.jsonl
refuses "has 0 words" chaos --replay words.jsonl

sed '1s/"streams":2/"streams":13/' all.jsonl > streams.jsonl
refuses "it has 13 streams; a replay takes 1 to 12" chaos --replay streams.jsonl
jq -c 'select(.kind != "op")' all.jsonl > nothing.jsonl
refuses "it has no operation" chaos --replay nothing.jsonl

sed '1s/"kill",//' all.jsonl > kind.jsonl
refuses "'fault' is kill, which line 1 does not have" chaos --replay kind.jsonl
jq -c 'if .kind == "fault" then .after_op = 1000000 else . end' all.jsonl > after.jsonl
line=$(grep -n '"kind":"fault"' after.jsonl | head -1)
refuses "line ${line%%:*}: 'after_op' is 1000000, and the last operation is" chaos --replay after.jsonl

# What cannot have been is not replayed as something else.
some=$(jq -n 'first(inputs | select(.kind == "op" and (.bait | not) and .op > 20)) | .op' all.jsonl)
contradicts() { # WORDS CHANGE: of that operation
    jq -c --argjson some "$some" "if .kind == \"op\" and .op == \$some then $2 else . end" \
        all.jsonl > contradicts.jsonl
    refuses "the history contradicts itself: $1" chaos --replay contradicts.jsonl
    if grep -q "^bulkhead chaos: --replay contradicts.jsonl: line [0-9]*: the history" .stderr; then
        passed=$((passed + 1)); else fail "it does not say where"; fi
}
contradicts "operation " '.inputs = [.op]'
expect_stderr "which was not submitted before it"
contradicts "operation " '.wait = 1000000'
expect_stderr "which was not submitted before it"
contradicts "operation " '.op = 1000000'
contradicts "operation " '., .'
contradicts "operation " '.reuses = .op'
expect_stderr "overwrites what"
jq -c 'if .kind == "fault" then .number = 1 else . end' all.jsonl > number.jsonl
refuses "the history contradicts itself: fault 1 comes after " chaos --replay number.jsonl

case_name="faults after the last operation, which was refused"
{
    head -1 all.jsonl
    jq -c 'select(.kind == "op" and .op == 1) | .bait = false | .inputs = [] | .wait = 0 | .reuses = 0 | .words = 64' all.jsonl
    echo '{"kind":"refused","at_ns":2,"op":3,"stream":0,"status":"NO_MEMORY","call":"bh_submit"}'
    jq -c 'select(.kind == "op" and .op == 1) | .op = 4 | .event = 9999 | .bait = true | .inputs = [] | .wait = 0 | .reuses = 0 | .words = 0' all.jsonl
    for fault in '4,"number":1,"fault":"hang","pids":[]' '0,"number":2,"fault":"kill","pids":[1]'; do
        echo '{"kind":"fault","at_ns":3,"stream":0,"outside":false,"missed":false,"after_op":3,"lasts_ns":0,"op":'"$fault}"
    done
} > last.jsonl
cli chaos --replay last.jsonl --json
expect_status 0
expect_json '.verdict == "valid" and .injected == 2'

case_name="the same seed, the same faults"
cli chaos --seed 8 --faults kill,slow,hang --count 20 --rate 40 --history a.jsonl
expect_status 0
cli chaos --seed 8 --faults kill,slow,hang --count 20 --rate 40 --history b.jsonl
expect_status 0
faults_of() {
    jq -c 'select(.kind == "fault") | [.number, .fault, .stream]' "$1" | sort -V | head -20
}
if [ "$(faults_of a.jsonl | wc -l)" -eq 20 ] && cmp -s <(faults_of a.jsonl) <(faults_of b.jsonl); then
    passed=$((passed + 1))
else
    fail "the faults differ"
fi

case_name="from outside"
# Nobody is there to be hit while a zygote starts: of this seed that is at the end.
cli chaos --seed 11 --outside --faults kill,segv,slow,zygote --count 20 --rate 20 --history o.jsonl --json
expect_status 0
expect_json '.verdict == "valid" and .outside and .injected > 10'

# -- unknown, interrupted -----------------------------------------------------------------------
case_name="no fault, no verdict" # and a folder that is none: after su it is another's
mkdir chaos-10.jsonl # nor is the first name free
XDG_RUNTIME_DIR=nowhere cli chaos --seed 10 --faults slow --rate 0.001 --duration 1ms
expect_status 4
expect_stdout "unknown"
[ -s chaos-10-2.jsonl ] || fail "the history was not saved"
case_name="evidence is not overwritten"
cli chaos --seed 10 --faults slow --rate 0.001 --duration 1ms --json
expect_status 4
expect_json '.history == "chaos-10-3.jsonl"'
cmp -s <(grep chaos-10-2.jsonl .before) <(fingerprint | grep chaos-10-2.jsonl) || fail "it was overwritten"
[ -s chaos-10-3.jsonl ] || fail "the second history was not saved"
mv chaos-10-2.jsonl chaos-10-replayed.jsonl
case_name="nor by its own replay"
cli chaos --replay chaos-10-replayed.jsonl --json
expect_status 4
expect_json '.history == "chaos-10-replayed-2.jsonl"'
cmp -s <(grep replayed.jsonl .before) <(fingerprint | grep replayed.jsonl) || fail "it was overwritten"

case_name="a signal ends it, and what there is is told"
mkfifo told
"$LEAVES_NONE" env --default-signal=INT "$BULKHEAD" chaos --seed 12 --duration 5m --verbose --json --html cut.html \
    > .stdout 2> told &
program=$!
exec 3< told
grep -m 1 "fault [0-9]*:" <&3 > /dev/null # whichever: one that misses is not told of
read -r running < "/proc/$program/task/$program/children"
running=${running%% *}
kill -INT "$running"
cat <&3 > .stderr
wait "$program"
status=$?
exec 3<&-
expect_status 130
expect_stderr "cancelled by SIGINT"
expect_json '.verdict == "unknown" and (.complete | not) and .injected > 0 and .history == "chaos-12.jsonl"'
expect_json '[.findings[].text] | index("the history is incomplete: the run was cut short")'
[ -s cut.html ] || fail "no page"
cli chaos --check chaos-12.jsonl
expect_status 4
expect_stdout "unknown: this run proves nothing: it was cut short"

mkfifo pipe
for option in check replay; do
    for through in pipe -; do
        case_name="a signal while --$option $through reads is told"
        exec 9<> pipe # it has no end
        "$BULKHEAD" chaos --$option $through > .stdout 2> .stderr < pipe 9>&- &
        program=$!
        { # more than a pipe holds: it is being read
            head -1 all.jsonl
            yes '{"kind":"stall","at_ns":1,"lasted_ns":1}' | head -5000
        } >&9
        kill -TERM "$program"
        echo >&9 # it may have come just before a read, which waits then
        wait "$program"
        status=$?
        exec 9>&-
        expect_status 143
        expect_stderr "bulkhead chaos: cancelled by SIGTERM"
        if [ "$(wc -l < .stderr)" -eq 1 ]; then passed=$((passed + 1)); else fail "not one line"; fi
    done
done
finish
