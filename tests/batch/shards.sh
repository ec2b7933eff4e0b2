#!/usr/bin/env bash
# Several batches as the shards of one: what is said of them from outside, how they are cancelled, and
# what they share.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/jobs.sh
. "$(dirname "${BASH_SOURCE[0]}")/jobs.sh"
unset SLURMD_NODENAME

"$NPY" make x.npy 'f32[1000]' ramp 0 1
"$NPY" make d.npy 'u32[1000]' ramp 0 1

endless() { # ID DEADLINE [RETRIES [MORE]]
    echo "{\"id\":\"$1\",\"kernel\":\"$SHADERS/hang.spv\",\"groups\":[65535],\
\"inout\":{\"0\":\"d.npy:$1.npy\"},\"deadline\":\"$2\",\"retries\":${3:-2}${4:-}}"
}

# shard STATE NAME MACHINE: runs the shard's jobs there, what it prints goes to its log. In the
# background it is a process of its own, $!.
shard() {
    SLURMD_NODENAME=$3 "$BULKHEAD" batch "$1/shards/$2/jobs.jsonl" --state "$1/shards/$2/state" \
        --resume --isolate job --grace "${slowness}s" --quarantine "$1/quarantine" \
        --cancel-file "$1/cancel" >> "$1/shards/$2/log" 2>&1 < /dev/null &
    shard=$!
}

shard_ends() { # STATUS STATE NAME MACHINE
    shard "$2" "$3" "$4"
    expect_ended "$1" "$shard"
}

# Waits until a file has a line with $2.
await() {
    local i
    for ((i = 0; i < 600 * slowness; i++)); do
        if grep -qsF -- "$2" "$1"; then return; fi
        sleep 0.1
    done
    fail "$1 never had: $2"
}

expect_ended() { # STATUS PID
    wait "$2"
    status=$?
    expect_status "$1"
}

case_name="two shards, and a kernel that is bad in both"
mkdir -p s/shards/0000 s/shards/0001 s/shards/0002
{ square a x.npy a.npy; endless bad 500ms; } > s/shards/0000/jobs.jsonl
{ square b x.npy b.npy; endless worse 500ms; } > s/shards/0001/jobs.jsonl
{ echo '# later'; square c x.npy c.npy; } > s/shards/0002/jobs.jsonl
shard_ends 1 s 0000 n1
shard_ends 1 s 0001 n2
cli batch --status s --json --html page.html
expect_status 1
expect_json '[.total, .done, .quarantined, .submitted] == [5, 2, 2, 1]'
expect_json '[.shards[] | [.shard, .host, .state, .total]] ==
    [["0000", "n1", "ended", 2], ["0001", "n2", "ended", 2], ["0002", null, "not begun", 1]]'
expect_json '[.failures[] | [.id, .shard, .host, .code, .blame]] ==
    [["bad", "0000", "n1", "DEADLINE", "certain"], ["worse", "0001", "n2", "DEADLINE", "certain"]]'
# In the first it was tried as often as it may be, in the second once.
expect_json '[.failures[].attempts] == [3, 1]'
expect_json '[.notes[] | select(startswith("1 kernel is in the quarantine"))] | length == 1'
expect_json '[.shards[].clock_ahead_ms] == [0, 0, 0] and (.notes | length == 1)'
for words in 'n1 0000 stream 0' 'n2 0001 stream 0' 'bad, attempt 3 at n1: DEADLINE'; do
    if grep -qF "$words" page.html; then passed=$((passed + 1)); else fail "the page has no $words"; fi
done
cli batch --status s
expect_status 1
expect_untouched
expect_stdout '5 jobs: 2 done, 0 failed, 2 quarantined, 1 submitted'
expect_stdout '6 attempts in '
expect_stdout 'on 3 shards'
if grep -qE '^  0001 +n2 +ended +2 +1 +1 +0 +20' .stdout; then passed=$((passed + 1)); else fail "no row of shard 0001"; fi
if grep -qE '^  worse +2 +hang.spv +quarantined +DEADLINE +1 +- +0001 +n2 ' .stdout; then passed=$((passed + 1)); else fail "no row of the job"; fi

case_name="the logs of one job"
cli batch --logs s worse
expect_status 0
expect_untouched
expect_stdout 'worse: quarantined in shard 0001: the deadline of 500 ms passed'
expect_stdout '  attempt 1 on n2, lavapipe:0, stream '
expect_stdout '  log: worse: quarantined, DEADLINE: '
cli batch --logs s bad --json
expect_status 0
expect_json '.id == "bad" and (.shards | length == 1)'
expect_json '.shards[0] | .shard == "0000" and [.attempts[] | [.host, .code]] == [["n1", "DEADLINE"], ["n1", "DEADLINE"], ["n1", "DEADLINE"]]'
cli batch --logs s c
expect_status 0
expect_stdout 'c: submitted in shard 0002: the shard has not begun'
cli batch --logs s nobody
expect_status 2
expect_stderr 's has no job "nobody"'
# Of a single batch, too.
cli batch --logs s/shards/0000/state a
expect_status 0
expect_stdout 'a: done in shard 0000'

case_name="a job in two shards"
mkdir -p t/shards/0000 t/shards/0001
square a x.npy e.npy | tee t/shards/0000/jobs.jsonl > t/shards/0001/jobs.jsonl
shard_ends 0 t 0000 n1
shard_ends 0 t 0001 n2
cli batch --status t --json
expect_status 0
expect_json '.notes == ["job a is in several shards: 0000 (done), 0001 (done); each may have run it"]'

case_name="cancelled from outside"
mkdir -p u/shards/0000 u/shards/0001
endless long "$((60 * slowness))s" > u/shards/0000/jobs.jsonl
endless longer "$((60 * slowness))s" > u/shards/0001/jobs.jsonl
shard u 0000 n1
pid=$shard
await u/shards/0000/state/feed.jsonl '"state":2'
cli batch --status u --json
expect_status 0
expect_json '.running == 1 and .shards[0].state == "running" and .cut_off == 0'
cli batch --cancel u
expect_status 0
expect_stdout 'u is cancelled'
expect_ended 143 "$pid"
if grep -qF 'cancelled by u/cancel; --resume continues' u/shards/0000/log; then passed=$((passed + 1)); else fail "the log does not say why"; fi
shard_ends 143 u 0001 n2 # one that begins later ends at once
cli batch --status u --json
expect_json '(.cancelled + .waiting) == 2 and (.notes[0] | test("^it was cancelled by .* on .* at .* UTC: u/cancel exists"))'

case_name="a single batch is cancelled by its state folder"
endless long "$((60 * slowness))s" > jobs.jsonl
"$BULKHEAD" batch jobs.jsonl > .out 2> .err < /dev/null &
pid=$!
await jobs.jsonl.state/feed.jsonl '"state":2'
cli batch --cancel jobs.jsonl.state
expect_status 0
expect_ended 143 "$pid"
if [ ! -e jobs.jsonl.state/cancel ]; then passed=$((passed + 1)); else fail "the file is still there"; fi
cli batch --cancel jobs.jsonl.state
expect_status 3
expect_stderr 'no process has it: there is nothing to cancel'
square quick x.npy q.npy > jobs.jsonl
echo '1 elsewhere' > v.cancel
mkdir -m 700 v
mv v.cancel v/cancel # for a process that is gone
cli batch jobs.jsonl --state v --resume
expect_status 0
if [ ! -e v/cancel ]; then passed=$((passed + 1)); else fail "the file is still there"; fi

case_name="killed, and continued on another machine"
mkdir -p w/shards/0000
{ square a x.npy f.npy; endless long "$((2 * slowness))s" 0 ',"depends_on":["a"]'; } > w/shards/0000/jobs.jsonl
shard w 0000 n1
pid=$shard
await w/shards/0000/state/feed.jsonl '"job":2,"attempt":1'
kill -KILL "$pid"
wait "$pid" 2> /dev/null
cli batch --status w --json
expect_json '.shards[0].state == "running" and .done == 1' # nobody has said anything else
"$BULKHEAD" batch --status w --follow --json > follow.json 2> follow.txt & # it sees the rest
follower=$!
shard_ends 1 w 0000 n2
expect_ended 1 "$follower"
if jq -e '.quarantined == 1' follow.json > /dev/null; then passed=$((passed + 1)); else fail "the follower has not seen the end"; fi
if grep -q '^2 of 2 done\|^1 of 2 done, 1 quarantined' follow.txt; then passed=$((passed + 1)); else fail "no progress"; fi
cli batch --logs w long --json
expect_json '[.shards[0].attempts[] | [.host, .code]] == [["n1", null], ["n2", "DEADLINE"]]'
cli batch --status w --json
expect_json '.cut_off == 1 and .attempts == 3 and .shards[0].host == "n2" and .shards[0].state == "ended"'

refuses "--status runs nothing: it excludes --resume" batch --status s --resume
case_name="--cancel runs nothing, so it has no report"
cli batch --cancel s --json
expect_status 2
expect_stderr "--cancel runs nothing: it excludes --json"
expect_json '.error.message | contains("it excludes --json")'
refuses "JOBS does not go with --status and --cancel: these name a state folder" batch jobs.jsonl --status s
refuses "--logs STATE needs the id of a job: --logs STATE ID" batch --logs s
refuses "--status: nowhere: No such file or directory" batch --status nowhere
refuses "is no state folder of a batch" batch --status s/quarantine
refuses "JOBS is missing" batch
refuses "the folder's name is empty" batch jobs.jsonl --quarantine ''

case_name="a quarantine that others can write"
mkdir -m 777 open
chmod 777 open
cli batch jobs.jsonl --state v --resume --quarantine open
expect_status 3
expect_stderr '--quarantine open: '
finish
