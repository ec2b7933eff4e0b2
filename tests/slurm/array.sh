#!/usr/bin/env bash
# A batch through a real Slurm, from its first submission to its end, and what is refused before
# anything is submitted.
# shellcheck disable=SC2317 # until_true calls functions
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/counters.sh
. "$(dirname "${BASH_SOURCE[0]}")/../batch/counters.sh"
# shellcheck source=tests/slurm/counts.sh
. "$(dirname "${BASH_SOURCE[0]}")/counts.sh"
# shellcheck source=tests/slurm/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"

slurm=(--executor slurm --poll 1s)
counters=6 chain=4
make_counters "$counters" "$chain"
jobs=$((counters * (chain + 1)))

# -- without a Slurm -----------------------------------------------------------------------------
refuses "--shards needs --executor slurm" batch jobs.jsonl --shards 2
refuses "--executor slurm needs --shards N" batch jobs.jsonl --executor slurm
refuses "it is local or slurm" batch jobs.jsonl --executor pbs --shards 2
refuses "--comment is set by bulkhead batch" batch jobs.jsonl "${slurm[@]}" --shards 2 --sbatch-option=--comment=x
refuses "sbatch may read --arr=1-9 as --array, which is set by bulkhead batch" batch jobs.jsonl "${slurm[@]}" --shards 2 --sbatch-option=--arr=1-9
refuses "--dry-run is not for --executor slurm" batch jobs.jsonl "${slurm[@]}" --shards 2 --dry-run
refuses "it is 1s or longer" batch jobs.jsonl --executor slurm --shards 2 --poll 10ms

case_name="no Slurm on this machine"
mkdir empty
env PATH="$PWD/empty" "$BULKHEAD" batch jobs.jsonl "${slurm[@]}" --shards 2 > .stdout 2> .stderr
status=$?
expect_status 3
expect_stderr "sbatch cannot be started"

case_name="an old Slurm"
mkdir old
printf '#!/bin/sh\necho slurm 19.05.5\n' > old/sbatch
chmod +x old/sbatch
PATH=$PWD/old:$PATH cli batch jobs.jsonl "${slurm[@]}" --shards 2
expect_status 3
expect_stderr "this is Slurm 19.05; --executor slurm needs 20.11 or later"
[ ! -e jobs.jsonl.state ] || fail "a state folder was made"

# shellcheck source=tests/slurm/standins.sh
. "$(dirname "${BASH_SOURCE[0]}")/standins.sh"
rm -rf jobs.jsonl.state

# -- a batch -------------------------------------------------------------------------------------
case_name="what is expected"
cli run "$SHADERS/square.spv" --groups 4 --in 0=x.npy --out '1=expected.npy:f32[256]'
expect_status 0
cluster_start 2 || finish

case_name="the controller refuses a partition"
cli batch jobs.jsonl "${slurm[@]}" --shards 3 --partition nowhere
expect_status 2
expect_stderr "nvalid partition"
expect_stderr "nothing was submitted"
case_name="the controller refuses a gres"
cli batch jobs.jsonl "${slurm[@]}" --shards 3 --gres gpu:7
expect_status 2
expect_stderr "generic resource"
[ -z "$(squeue --me --noheader --states=all)" ] || fail "something was submitted: $(squeue --me --states=all)"

case_name="a batch of $jobs jobs in three shards"
cli batch jobs.jsonl "${slurm[@]}" --shards 3 --sbatch-option=--nice=10 --streams 1
expect_status 0
expect_stdout "$jobs jobs: $jobs done, 0 failed"
expect_stderr "$jobs of $jobs jobs done, 3 of 3 shards ended"
expect_shards jobs.jsonl.state "$counters" "$chain"
expect_rounds jobs.jsonl.state '.shards == 3 and (.rounds | length == 1) and .rounds[0].job > 0
    and (.sizes | add == .[0] * 3) and .batch_options == ["--streams=1", "--device=slurm"] and .sbatch_options == ["--nice=10"]'
grep -q "task .*_2 on n[12]" jobs.jsonl.state/shards/0002/log || fail "the log lacks the task's first line"
[ "$(squeue --me --noheader --array --states=all -o %k | grep -v probe | sort -u)" = "bulkhead:$(jq -r .id jobs.jsonl.state/array.json):0" ] ||
    fail "the comment is $(squeue --me --noheader --array --states=all -o %k | sort -u)"

case_name="what is said of it from outside"
cli batch --status jobs.jsonl.state --json
expect_status 0
expect_json ".done == $jobs and .total == $jobs and (.shards | length == 3) and .notes == []"
expect_json '[.shards[] | [.state, (.host | test("^n[12]$"))]] | all(. == ["ended", true])'
[ "$(sql_all jobs.jsonl.state 'SELECT DISTINCT host FROM attempt' | sort -u | grep -cx 'n[12]')" -gt 0 ] ||
    fail "the attempts have no machine"

case_name="--cancel ends the tasks, and nothing is submitted again"
"$NPY" make d.npy 'u32[1000]' ramp 0 1
echo "{\"id\":\"endless\",\"kernel\":\"$SHADERS/hang.spv\",\"groups\":[65535],\"inout\":{\"0\":\"d.npy:e.npy\"},\"retries\":0}" > endless.jsonl
"$BULKHEAD" batch endless.jsonl "${slurm[@]}" --shards 1 --no-probe --deadline 30m > .background 2>&1 < /dev/null &
submitter_pid=$!
until_true grep -qs '"state":2' endless.jsonl.state/shards/0000/state/feed.jsonl
cli batch --cancel endless.jsonl.state
expect_status 0
wait "$submitter_pid"
status=$?
expect_status 143
grep -qF "shard 0: it was cancelled (--cancel)" .background || fail "it does not say why: $(cat .background)"
expect_rounds endless.jsonl.state '.rounds | length == 1'
cli batch endless.jsonl "${slurm[@]}" --shards 1 --resume --deadline "${slowness}s"
expect_status 1 # it runs to its deadline
expect_stdout "1 job: 0 done, 0 failed, 1 quarantined"
case_name="--cancel of a batch that has ended says so"
cli batch --cancel jobs.jsonl.state
expect_status 3
expect_stderr "jobs.jsonl.state: all jobs have ended: there is nothing to cancel"
[ ! -e jobs.jsonl.state/cancel ] || fail "the file cancel was made"
cli batch --cancel endless.jsonl.state # its job is quarantined
expect_status 3
expect_stderr "endless.jsonl.state: all jobs have ended: there is nothing to cancel"
case_name="--cancel of one that has ended, and Slurm has not noticed it"
on squeue "echo '$(jq -r .rounds[0].job jobs.jsonl.state/array.json)|0|RUNNING||bulkhead:$(jq -r .id jobs.jsonl.state/array.json):0|None'"
PATH=$standins:$PATH cli batch --cancel jobs.jsonl.state
expect_status 3
expect_stderr "all jobs have ended: there is nothing to cancel"
case_name="--cancel of one that has ended, and has a task in Slurm's queue again (--retry-failed)"
on squeue "echo '17|0|PENDING||bulkhead:$(jq -r .id jobs.jsonl.state/array.json):0|None'"
on scancel true
PATH=$standins:$PATH cli batch --cancel jobs.jsonl.state
expect_status 0
expect_stdout "1 task was cancelled in Slurm's queue"
case_name="again without --resume"
cli batch jobs.jsonl "${slurm[@]}" --shards 3
expect_status 2
expect_stderr "has a batch already: continue it (--resume)"
case_name="--resume of what has ended submits nothing"
cli batch jobs.jsonl "${slurm[@]}" --shards 3 --resume
expect_status 0
expect_stdout "$jobs jobs: $jobs done, 0 failed"
cli batch jobs.jsonl "${slurm[@]}" --shards 3 --resume --json --html all.html
expect_status 0
expect_json ".done == $jobs and .exit_status == 0 and .jobs == \"jobs.jsonl\" and (.shards | length == 3)"
grep -q '>n[12] 0002 stream 0<' all.html || fail "the page has no row of shard 0002"
expect_rounds jobs.jsonl.state '.rounds | length == 1'
case_name="--resume with other lines, or another number of shards"
cli batch jobs.jsonl "${slurm[@]}" --shards 2 --resume
expect_status 2
expect_stderr "of another number of shards (3)"
sed 's/f32:1,/f32:2,/' jobs.jsonl > other.jsonl
cli batch other.jsonl --state jobs.jsonl.state "${slurm[@]}" --shards 3 --resume
expect_status 2
expect_stderr "has changed since it was submitted"
expect_shards jobs.jsonl.state "$counters" "$chain"

case_name="jobs that fail, and --retry-failed with another line"
{
    echo "{\"id\":\"good\",\"kernel\":\"$SHADERS/square.spv\",\"groups\":[4],\"in\":{\"0\":\"x.npy\"},\"out\":{\"1\":\"good.npy:f32[256]\"}}"
    echo
    echo "{\"id\":\"bad\",\"kernel\":\"$SHADERS/square.spv\",\"groups\":[4],\"in\":{\"0\":\"x.npy\"},\"out\":{\"7\":\"bad.npy:f32[256]\"}}"
} > mixed.jsonl
cli batch mixed.jsonl "${slurm[@]}" --shards 5
expect_status 1
expect_stdout "2 jobs: 1 done, 1 failed"
expect_rounds mixed.jsonl.state '.shards == 2'
[ "$(sql_all mixed.jsonl.state 'SELECT line FROM job' | sort | tr '\n' ' ')" = "1 3 " ] ||
    fail "the lines are not those of the file"
sed -i 's/"7"/"1"/' mixed.jsonl
cli batch mixed.jsonl "${slurm[@]}" --shards 5 --resume --retry-failed
expect_status 0
expect_stdout "2 jobs: 2 done, 0 failed"
expect_rounds mixed.jsonl.state '(.rounds | length == 2) and .rounds[1].why == "--retry-failed" and (.rounds[1].shards | length == 1)'

case_name="an input of shards that have ended has changed"
cp x.npy read.npy
for id in a b; do
    echo "{\"id\":\"$id\",\"kernel\":\"$SHADERS/square.spv\",\"groups\":[4],\"in\":{\"0\":\"read.npy\"},\"out\":{\"1\":\"$id.npy:f32[256]\"}}"
done > read.jsonl
cli batch read.jsonl "${slurm[@]}" --shards 2
expect_status 0
"$NPY" make read.npy 'f32[256]' ramp 5 1
cli batch read.jsonl "${slurm[@]}" --shards 2 --resume
expect_status 2
expect_stderr "read.npy has changed since 2 jobs read it"
cli batch read.jsonl "${slurm[@]}" --shards 2 --resume --keep-changed
expect_status 0
expect_rounds read.jsonl.state '.rounds | length == 1'
cli batch read.jsonl "${slurm[@]}" --shards 2 --resume --redo-changed
expect_status 0
expect_stdout "2 jobs: 2 done, 0 failed"
expect_rounds read.jsonl.state '(.rounds | length == 2) and .rounds[1].why == "--redo-changed" and (.rounds[1].shards | length == 2)'
cli run "$SHADERS/square.spv" --groups 4 --in 0=read.npy --out '1=squares.npy:f32[256]'
expect_status 0
cmp -s a.npy squares.npy && cmp -s b.npy squares.npy || fail "the results are those of the old input"

has_failed() { [ "$(sql_all "$1" "SELECT count(*) FROM jobs WHERE state = 'failed'" 2> /dev/null | sum)" -eq 1 ]; } # STATE
case_name="--retry-failed with another line, where the shard did not end in order"
{
    echo "{\"id\":\"bad\",\"kernel\":\"$SHADERS/square.spv\",\"groups\":[4],\"in\":{\"0\":\"x.npy\"},\"out\":{\"7\":\"bad.npy:f32[256]\"}}"
    sed 's/e.npy/f.npy/' endless.jsonl
} > stopped.jsonl
"$BULKHEAD" batch stopped.jsonl "${slurm[@]}" --shards 1 --no-probe --streams 1 --deadline 30m > .background 2>&1 < /dev/null &
submitter_pid=$!
until_true grep -qs '"state":2' stopped.jsonl.state/shards/0000/state/feed.jsonl
until_true has_failed stopped.jsonl.state
cli batch --cancel stopped.jsonl.state
wait "$submitter_pid"
sed -i 's/"7"/"1"/' stopped.jsonl
cli batch stopped.jsonl "${slurm[@]}" --shards 1 --no-probe --streams 1 --resume --retry-failed --deadline "${slowness}s"
expect_status 1
expect_stdout "2 jobs: 1 done, 0 failed, 1 quarantined"

case_name="an array that Slurm has forgotten and refuses now has run all the same"
cp -a jobs.jsonl.state forgotten
jq '.rounds[0].job = 0 | .id |= gsub("[0-9a-f]"; "1")' forgotten/array.json > .array && cp .array forgotten/array.json
cli batch jobs.jsonl "${slurm[@]}" --state forgotten --shards 3 --resume --partition nowhere
expect_status 3
expect_stderr "it is not submitted again: "
[ -s forgotten/array.json ] || fail "array.json is gone"
rm forgotten/array.json
cli batch jobs.jsonl "${slurm[@]}" --state forgotten --shards 2
expect_status 2
expect_stderr "forgotten has shards that have run, and no array.json"
expect_shards jobs.jsonl.state "$counters" "$chain"

case_name="the controller is down, and comes back"
controller_kill
cli batch mixed.jsonl "${slurm[@]}" --shards 5 --state down --controller-timeout 1s
expect_status 3
expect_stderr "the controller of Slurm was not reached"
expect_stderr "nothing was submitted"
(sleep 1; touch back) &
"$BULKHEAD" batch mixed.jsonl "${slurm[@]}" --shards 5 --state down --controller-timeout 60s > .background 2>&1 < /dev/null &
submitter_pid=$!
until_true test -e back
controller_start
wait "$submitter_pid"
status=$?
cp .background .stdout
expect_status 0
expect_stdout "2 jobs: 2 done, 0 failed"

case_name="two submitters on one folder"
mkdir -p busy
exec 8> busy/lock
flock 8
printf "1 elsewhere" >&8
cli batch jobs.jsonl "${slurm[@]}" --shards 3 --state busy
exec 8>&-
expect_status 3
expect_stderr "is in use by another bulkhead batch (1 elsewhere)"

case_name="kill -9 of a submitter whose probe is pending"
rm -rf jobs.jsonl.state counters squares
make_counters "$counters" "$chain"
"$BULKHEAD" batch jobs.jsonl "${slurm[@]}" --shards 3 --sbatch-option=--begin=now+1hour > .background 2>&1 < /dev/null &
submitter_pid=$!
pending() { squeue --me --noheader --states=pending -o %k | grep -q :probe; }
until_true pending
kill -KILL "$submitter_pid"
wait "$submitter_pid" 2> /dev/null
[ ! -e jobs.jsonl.state/array.json ] || fail "there is an array already"
cli batch --status jobs.jsonl.state
expect_status 0
expect_stdout "waiting for the probe: job $(squeue --me --noheader --states=pending -o %A) is PENDING (BeginTime)"
cli batch jobs.jsonl "${slurm[@]}" --shards 3 # other options: another probe
expect_status 0
[ -z "$(squeue --me --noheader --states=pending)" ] || fail "the old probe is still pending"
expect_shards jobs.jsonl.state "$counters" "$chain"

# -- cancelling what waits -----------------------------------------------------------------------
case_name="--cancel of tasks that wait, where there is no scancel: the submitter sees the file"
waits() { # ROUND COMMAND…: they wait for an hour
    "${@:2}" "$BULKHEAD" batch jobs.jsonl "${slurm[@]}" --shards 3 --no-probe --sbatch-option=--begin=now+1hour --resume > .background 2>&1 < /dev/null &
    submitter_pid=$!
    until_true array_waits "$1"
}
array_waits() { squeue --me --noheader --states=pending -o %k | grep -q ":$1\$"; }
nothing_waits() { [ -z "$(squeue --me --noheader --states=pending)" ]; }
rm -rf jobs.jsonl.state counters squares
make_counters "$counters" "$chain"
waits 0 timeout "$((60 * slowness))"
env PATH="$PWD/empty" "$BULKHEAD" batch --cancel jobs.jsonl.state > .stdout 2> .stderr
status=$?
expect_status 3
expect_stderr "Slurm's programs cannot be started (squeue: No such file or directory)"
expect_stderr "those that wait end when they begin; give --cancel again where scancel works"
wait "$submitter_pid"
status=$?
cp .background .stderr
expect_status 143
expect_stderr "shard 2: it was cancelled (--cancel)"
until_true nothing_waits
case_name="--cancel of tasks that wait, after kill -9 of their submitter"
waits 1
kill -KILL "$submitter_pid"
wait "$submitter_pid" 2> /dev/null
cli batch --cancel jobs.jsonl.state
expect_status 0
expect_stdout "3 tasks were cancelled in Slurm's queue"
until_true nothing_waits
cli batch --cancel jobs.jsonl.state
expect_status 0
expect_stdout "jobs.jsonl.state is cancelled"
if grep -q queue .stdout; then fail "there was something to cancel again"; fi
cli batch jobs.jsonl "${slurm[@]}" --shards 3 --resume
expect_status 0
expect_shards jobs.jsonl.state "$counters" "$chain"
expect_rounds jobs.jsonl.state '.rounds | length == 3'

# -- kill -9 of the submitter --------------------------------------------------------------------
# Before, during and after its sbatch. Each time another one goes on: nothing is lost, and there is
# one array.
submitter() { # ARGUMENT…: in the background, its pid in $!
    "$BULKHEAD" batch jobs.jsonl "${slurm[@]}" "$@" > .background 2>&1 < /dev/null &
}
submitted() { squeue --me --noheader --states=all -o %k | grep -q "$(jq -r .id jobs.jsonl.state/array.json):0"; }
mkdir slow
cat > slow/sbatch << SBATCH
#!/bin/sh
[ "\$1" != --version ] || exec $(command -v sbatch) "\$@"
: > "$folder/sbatch-begins"
while [ -e "$folder/hold" ]; do sleep 0.05; done
exec $(command -v sbatch) "\$@"
SBATCH
chmod +x slow/sbatch
for moment in before after; do
    case_name="kill -9 of the submitter $moment its sbatch has reached the controller"
    rm -rf jobs.jsonl.state counters squares sbatch-begins
    make_counters "$counters" "$chain"
    [ $moment = after ] || : > hold
    # shellcheck disable=SC2031
    PATH=$PWD/slow:$PATH submitter --shards 3 --no-probe
    submitter_pid=$!
    until_true test -e sbatch-begins
    [ $moment = before ] || until_true submitted
    kill -KILL "$submitter_pid"
    wait "$submitter_pid" 2> /dev/null
    (sleep 1; rm -f hold) & # the sbatch that the killed one had started is still on its way
    cli batch jobs.jsonl "${slurm[@]}" --shards 3 --resume
    expect_status 0
    expect_stdout "$jobs jobs: $jobs done, 0 failed"
    expect_shards jobs.jsonl.state "$counters" "$chain"
    expect_rounds jobs.jsonl.state '(.rounds | length == 1) and .rounds[0].job > 0'
    arrays=$(squeue --me --noheader --array --states=all -o '%F %k' | grep "$(jq -r .id jobs.jsonl.state/array.json):[0-9]" | sort -u | wc -l)
    if [ "$arrays" -eq 1 ]; then passed=$((passed + 1)); else fail "there are $arrays arrays"; fi
done

case_name="nothing is left running"
cluster_stop
# What a killed submitter had asked Slurm ends when it sees that nobody answers.
none_is_left() {
    left=$(env -u SLURM_CONF grep -lazF "SLURM_CONF=$SLURM_CONF" /proc/[0-9]*/environ 2> /dev/null)
    [ -z "$left" ]
}
until_true none_is_left
if [ -z "$left" ]; then
    passed=$((passed + 1))
else
    for process in $left; do tr '\0' ' ' < "${process%environ}cmdline"; done
    fail "processes: $left"
fi
finish
