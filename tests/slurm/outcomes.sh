#!/usr/bin/env bash
# What becomes of a batch when parts of a real Slurm are killed, and when others act on its tasks:
# no job is lost, none is done twice, and it is said what happened.
# shellcheck disable=SC2317 # until_true calls functions
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/counters.sh
. "$(dirname "${BASH_SOURCE[0]}")/../batch/counters.sh"
# shellcheck source=tests/slurm/counts.sh
. "$(dirname "${BASH_SOURCE[0]}")/counts.sh"
# shellcheck source=tests/slurm/cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"

slurm=(--executor slurm --poll 1s --streams 1 --no-probe)
shards=3 running=3
make_counters 1 1
case_name="what is expected"
cli run "$SHADERS/square.spv" --groups 4 --in 0=x.npy --out '1=expected.npy:f32[256]'
expect_status 0
cluster_start 3 || finish

# A batch in which each counter has $2 jobs, begun in the background. Each shard that can run at once
# stands still from its first jobs on, until |go_on|: none has ended before what is done to it is done.
begin() { # COUNTERS CHAIN ARGUMENT…
    rm -rf jobs.jsonl.state counters squares
    counters=$1 chain=$2
    jobs=$((counters * (chain + 1)))
    shift 2
    make_counters "$counters" "$chain"
    "$BULKHEAD" batch jobs.jsonl "${slurm[@]}" --shards "$shards" "$@" > .stdout 2> .stderr < /dev/null &
    batch=$!
    stopped=()
    until_true all_stopped
}
all_stopped() {
    local shard
    for ((shard = 0; shard < shards; shard++)); do
        [ -z "${stopped[shard]:-}" ] && some_done "$shard" && kill -STOP "$(pid_of "$shard")" && stopped[shard]=yes
    done
    [ ${#stopped[@]} -eq "$running" ]
}
some_done() { # SHARD
    [ "$(sqlite3 "jobs.jsonl.state/shards/000$1/state/batch.db" \
        "SELECT count(*) > 0 FROM jobs WHERE state = 'done'" 2> /dev/null)" = 1 ]
}
go_on() { # [SHARD]: all but this one
    local shard
    for shard in "${!stopped[@]}"; do [ "$shard" = "${1:-}" ] || kill -CONT "$(pid_of "$shard")"; done
}
end() {
    wait "$batch"
    status=$?
}
node_of() { squeue --me --noheader --array --states=running -o '%K %N' | sed -n "s/^$1 //p" | head -n 1; } # SHARD
pid_of() { # SHARD: of the process that has the shard's state folder
    awk '{ print $1 == "used" ? $2 : $1; exit }' "jobs.jsonl.state/shards/000$1/state/lock"
}
nothing_runs() { [ -z "$(squeue --me --noheader)" ]; }
parent_of() { sed 's/.*) [A-Z] \([0-9]*\) .*/\1/' "/proc/$1/stat"; }
# A machine that dies: its slurmd, and of each of its tasks slurmstepd, the shell and the batch. The
# shell first, so that it does not say how its batch has ended.
node_dies() { # NODE
    local shard batch_pid shell step
    daemon_kill "$1"
    for shard in 0 1 2; do
        grep -q "on $1," "jobs.jsonl.state/shards/000$shard/log" || continue
        batch_pid=$(pid_of "$shard")
        shell=$(parent_of "$batch_pid")
        step=$(parent_of "$shell")
        kill -KILL "$shell" "$step" "$batch_pid"
    done
}
thousands() { if [ "$1" -lt 1000 ]; then echo "$1"; else echo "${1::-3},${1: -3}"; fi; }
all_done() {
    expect_status 0
    expect_stdout "jobs: $(thousands "$jobs") done, 0 failed"
    expect_shards jobs.jsonl.state "$counters" "$chain"
}

case_name="kill -9 of a shard's batch"
begin 6 60
kill -KILL "$(pid_of 1)"
go_on 1
end
all_done
expect_stderr "shard 1: its batch was ended by SIGKILL on n"
expect_rounds jobs.jsonl.state '(.rounds | length == 2) and .rounds[1].shards == [1]'

case_name="a machine dies, and the controller is killed and started again"
begin 6 150
go_on 2
node=$(node_of 2)
# It has saved that all three run: the comment comes after that.
scontrol update JobId="$(jq .rounds[0].job jobs.jsonl.state/array.json)_2" AdminComment=it-runs-now
until_true grep -qa it-runs-now "$cluster/state/job_state"
controller_kill
node_dies "$node"
controller_start
# Otherwise Slurm finds that out by itself some seconds later: nightly_slurm_kills waits for that.
until_true scontrol update NodeName="$node" State=DOWN Reason=dead
end
node_start "$node"
all_done
expect_stderr "NODE_FAIL on $node"

case_name="tasks are preempted"
until_true cluster_is_up 3
urgent_ends() { [ -z "$(squeue --me --noheader --partition=urgent)" ]; }
for mode in REQUEUE CANCEL; do
    scontrol update PartitionName=main PreemptMode=$mode
    begin 6 60
    go_on 0
    node=$(node_of 0)
    sbatch --partition=urgent --nodelist="$node" --exclusive --output=/dev/null --wrap true > .urgent
    end
    all_done
    expect_stderr "shard 0: PREEMPTED on $node: it is submitted again"
    until_true urgent_ends
done

case_name="a node is drained: its tasks end there, and no other begins"
shards=7 running=6
begin 7 60
node=$(node_of 0)
on_node=$(squeue --me --noheader --array --states=running --nodelist="$node" -o %K | sort)
scontrol update NodeName="$node" State=DRAIN Reason=test
go_on
end
scontrol update NodeName="$node" State=RESUME
all_done
began=$(grep -l "on $node," jobs.jsonl.state/shards/*/log | sed 's,.*/000\(.\)/log,\1,' | sort)
expect_rounds jobs.jsonl.state '.rounds | length == 1'
if [ "$began" = "$on_node" ]; then passed=$((passed + 1)); else fail "on $node: $began, not $on_node"; fi
shards=3 running=3

case_name="scancel of one task from outside, and --resume"
begin 6 60
go_on 0
scancel "$(jq .rounds[0].job jobs.jsonl.state/array.json)_0"
end
expect_status 3
expect_stderr "shard 0: CANCELLED"
expect_stderr "1 shard is stuck"
cli batch jobs.jsonl "${slurm[@]}" --shards 3 --resume
all_done

case_name="a signal with --on-interrupt cancel, and one with leave"
begin 6 100 --on-interrupt cancel
kill -TERM "$batch"
go_on
end
expect_status 143
expect_stderr "the job array is cancelled"
until_true nothing_runs
begin 6 60 --on-interrupt leave
kill -TERM "$batch"
go_on
end
expect_status 143
expect_stderr "what is submitted goes on"
cli batch jobs.jsonl "${slurm[@]}" --shards 3 --resume
all_done
expect_rounds jobs.jsonl.state '.rounds | length == 1'
finish
