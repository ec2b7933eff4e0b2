#!/usr/bin/env bash
# Tasks of a real Slurm that reach a limit: of time, of memory, of the shared folder. Slurm counts time
# in minutes, and looks twice a minute: so the batches wait beside each other. The test has a mount
# namespace of its own, with a small file system for the folder `small`; without one it fails.
# shellcheck disable=SC2317 # until_true calls functions
if [ -z "${SLURM_LIMITS_INSIDE:-}" ]; then
    SLURM_LIMITS_INSIDE=1 exec unshare --mount bash "${BASH_SOURCE[0]}"
fi
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/counters.sh
. "$(dirname "${BASH_SOURCE[0]}")/../batch/counters.sh"
# shellcheck source=tests/slurm/counts.sh
. "$(dirname "${BASH_SOURCE[0]}")/counts.sh"
# shellcheck source=tests/slurm/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"

slurm=(--executor slurm --poll 1s --streams 1 --no-probe)
mkdir small
mount -t tmpfs -o size=24m none small || finish
trap 'descendants_stop; cluster_stop; umount "$folder/small"; rm -rf "$folder"' EXIT
make_counters 1 1
case_name="what is expected"
cli run "$SHADERS/square.spv" --groups 4 --in 0=x.npy --out '1=expected.npy:f32[256]'
expect_status 0
# shellcheck disable=SC2034 # of cluster.sh
cluster_memory="SelectTypeParameters=CR_Core_Memory
NodeName=DEFAULT RealMemory=4000
DefMemPerCPU=2000
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill"
cluster_start 3 || finish

# A job that takes longer than a minute, whatever it runs on. When a task is ended, its worker may get the
# signal so much before its batch that this counts against the job.
endless() { # ID INPUT
    echo "{\"id\":\"$1\",\"kernel\":\"$SHADERS/hang.spv\",\"groups\":[65535],\"inout\":{\"0\":\"$2:$1.npy\"},\"deadline\":\"30m\",\"retries\":9}"
}
short() { # ID
    echo "{\"id\":\"$1\",\"kernel\":\"$SHADERS/square.spv\",\"groups\":[4],\"in\":{\"0\":\"x.npy\"},\"out\":{\"1\":\"$1.npy:f32[256]\"}}"
}
declare -A submitters=()
submit() { # NAME ARGUMENT…: of NAME.jsonl, in the background
    local name=$1
    shift
    "$BULKHEAD" batch "$name.jsonl" "${slurm[@]}" "$@" > "$name.out" 2> "$name.err" < /dev/null &
    submitters[$name]=$!
}
ended() { # NAME
    wait "${submitters[$1]}"
    status=$?
    cp "$1.out" .stdout
    grep -v "jobs done," "$1.err" > .stderr
}
pids_of() { awk '{ print $1 == "used" ? $2 : $1; nextfile }' "$1"/shards/*/state/lock; } # STATE
some_done() { # STATE SHARDS: in each of them
    [ "$(sql_all "$1" "SELECT count(*) > 0 FROM jobs WHERE state = 'done'" 2> /dev/null | sum)" -eq "$2" ]
}

# The first of three counters. Its batch is stopped in the middle, until Slurm ends it.
make_counters 3 150
grep -E '"id":"(c1\.|s1")' jobs.jsonl > long.jsonl
grep -vE '"id":"(c1\.|s1")' jobs.jsonl > full.jsonl
submit long --shards 1 --time 1
until_true some_done long.jsonl.state 1
kill -STOP "$(pids_of long.jsonl.state)"
# The first task ends a job, the last none.
"$NPY" make d.npy 'u32[1000]' ramp 0 1
{ short quick; endless slow d.npy | sed 's/}$/,"depends_on":["quick"]}/'; } > alone.jsonl
submit alone --shards 1 --time 1
until_true some_done alone.jsonl.state 1

case_name="a task uses more memory than it was given"
"$NPY" make big.npy 'u32[25000000]' ramp 0 1
endless huge big.npy > memory.jsonl # its input alone is 100 MB
submit memory --shards 1 --sbatch-option=--mem=60M
ended memory
expect_status 3
expect_stderr "the task's memory was used up before a job ended; it was running huge: give more (--sbatch-option --mem=SIZE)"
expect_rounds memory.jsonl.state '.rounds | length == 1'

case_name="the shared folder is full: nothing is submitted"
fill() { cat /dev/zero >> small/filler 2> .cat; }
submitted() { squeue --me --noheader --states=all -o '%k' | sort -u | grep -c ':[0-9]*$'; }
before=$(submitted)
fill
cli batch full.jsonl "${slurm[@]}" --shards 2 --state small/state
expect_status 3
expect_stderr "No space left on device"
if [ "$(submitted)" -eq "$before" ]; then passed=$((passed + 1)); else fail "an array was submitted"; fi

case_name="the shared folder becomes full while tasks run"
rm -rf small/filler small/state
submit full --shards 2 --state small/state
until_true some_done small/state 2
pids=$(pids_of small/state)
# shellcheck disable=SC2086 # several pids
kill -STOP $pids
fill
# shellcheck disable=SC2086
kill -CONT $pids
# What a task that ends gives back is used up, too.
while kill -0 "${submitters[full]}" 2> /dev/null; do
    fill
    sleep 0.1
done
ended full
expect_status 3
expect_stderr "it is submitted again and continues"
expect_stderr "small/state/array.json: "
expect_stderr "No space left on device; --resume continues"
if grep -q "the disk is full: free some space" small/state/shards/000?/log; then passed=$((passed + 1)); else fail "the logs do not say why"; fi
rm small/filler
cli batch full.jsonl "${slurm[@]}" --shards 2 --state small/state --resume
expect_status 0
if [ -z "$(find small -name '.ended*')" ]; then passed=$((passed + 1)); else fail "$(find small -name '.ended*')"; fi

case_name="the time limit passes: the rest is submitted again"
ended long
expect_status 0
expect_stderr "shard 0: TIMEOUT on n"
mkdir -p all/shards
ln -s "$folder/long.jsonl.state/shards/0000" all/shards/0
ln -s "$folder"/small/state/shards/* all/shards/
expect_shards all 3 150
# On a slow machine the rest may take longer than one more task has.
expect_rounds long.jsonl.state '(.rounds | length >= 2) and (.rounds[1:] | all(.why | startswith("TIMEOUT on n")))'

case_name="a job that alone takes longer is named"
ended alone
expect_status 3
expect_stderr "the time limit passed before a job ended; it was running slow: give more (--time)"
expect_rounds alone.jsonl.state '(.rounds | length >= 2) and (.rounds[1:] | all(.why | startswith("TIMEOUT on n")))'
finish
