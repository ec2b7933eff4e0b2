#!/usr/bin/env bash
# A probe that waits, a batch that is cancelled, and what continues them: with programs that stand in for
# those of Slurm.
# shellcheck disable=SC2016 # snippets are for the stand-ins
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/counters.sh
. "$(dirname "${BASH_SOURCE[0]}")/../batch/counters.sh"
# shellcheck source=tests/slurm/counts.sh
. "$(dirname "${BASH_SOURCE[0]}")/counts.sh"
# shellcheck source=tests/slurm/standins.sh
. "$(dirname "${BASH_SOURCE[0]}")/standins.sh"
make_counters 1 1
LIMIT=20
state=jobs.jsonl.state
pending='echo "18|N/A|PENDING||$comment|Resources"'
begun='echo "17|0|PENDING||$comment|None"'
look() { # ARGUMENT…: of bulkhead batch, with the stand-ins
    PATH=$standins:$PATH cli batch "$@"
}
expect_no_file() { if [ ! -e "$state/$1" ]; then passed=$((passed + 1)); else fail "there is a $1"; fi; }
expect_record() { # JOB
    if jq -e ".job == $1" "$state/probe.json" > .jq 2>&1; then passed=$((passed + 1)); else fail "probe.json: $(cat "$state/probe.json")"; fi
}
# A submitter is killed whose probe waits.
killed() { # ARGUMENT…
    on sbatch 'echo 18'
    on squeue 'kill -KILL "$PPID"'
    standin --shards 1 "$@"
    expect_status 137
}
# From now on the probe answers at the second squeue, and the array ends at once.
answers() {
    on sbatch 'task 2 n1; echo 17'
    on squeue "case \$comment in *:probe:*) [ \"\$(calls squeue)\" -le $(($(called squeue) + 1)) ] || probe n1; $pending ;; *) $begun ;; esac"
}
expect_refused() { # the array's task: so it was submitted
    expect_status 3
    expect_stderr "its batch was refused (status 2)"
}

standins_case "what is said while only the probe waits"
killed
expect_record 18
on squeue "$pending"
look --status "$state"
expect_status 0
expect_stdout "waiting for the probe: job 18 is PENDING (Resources), submitted at 20"
expect_stdout "; its submitter has ended: repeat the command to continue"
look --status "$state" --json
expect_status 0
expect_json '.waiting_for == "probe" and (.probe | .job == 18 and .state == "PENDING" and .reason == "Resources" and .host == null and .submitted > 1e12)'
look --logs "$state" c1.1
expect_status 0
expect_stdout "no job has begun, and no shard is written: waiting for the probe: job 18 is PENDING (Resources)"
on squeue 'echo "18|N/A|RUNNING|n2|$comment|None"'
look --status "$state"
expect_stdout "waiting for the probe: job 18 is RUNNING on n2"
on squeue 'echo "squeue: error: slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1'
look --status "$state"
expect_status 0
expect_stdout "waiting for the probe: job 18, whose state is not known (squeue: slurm_load_jobs error: Unable to contact"

case_name="the next submitter waits for the same probe"
answers
standin --shards 1 --resume
expect_refused
expect_stderr "the probe that an earlier submitter of $state has submitted (job 18) is in Slurm's queue: it is waited for"
expect_called sbatch 2
expect_called scancel 0
expect_no_file probe.json

standins_case "killed before sbatch has answered: the probe is found by its comment"
on sbatch 'kill -KILL "$PPID"; echo 18'
standin --shards 1
expect_record 0
on squeue true
look --status "$state"
expect_stdout "waiting for the probe: it is being submitted"
answers
standin --shards 1
expect_refused
expect_called sbatch 2

standins_case "the probe has answered when nobody waited"
on sbatch 'probe n1; kill -KILL "$PPID"'
standin --shards 1
on sbatch 'task 2 n1; echo 17'
on squeue "$begun"
standin --shards 1 --resume
expect_refused
expect_called sbatch 2

standins_case "the probe is gone: there is another one"
killed
on sbatch 'case $comment in *:probe:*) probe n1; echo 19 ;; *) task 2 n1; echo 17 ;; esac'
on squeue 'echo "18|N/A|CANCELLED||$comment|None"'
standin --shards 1 --resume
expect_refused
expect_called sbatch 3

standins_case "a probe that asks for something else is cancelled"
killed
on sbatch 'case $comment in *:probe:*) probe n1; echo 19 ;; *) task 2 n1; echo 17 ;; esac'
on squeue "$pending"
standin --shards 1 --resume --partition other
expect_refused
expect_cancelled 18
standins_case "as is one with --no-probe"
killed
on sbatch 'task 2 n1; echo 17'
on squeue "$pending"
standin --shards 1 --resume --no-probe
expect_refused
expect_cancelled 18
expect_no_file probe.json

standins_case "as is one for other lines, when --resume takes the old ones again"
on sbatch 'task 2 n1; echo 17'
standin --shards 1 --no-probe
sed -i.was 's/f32:1,/f32:2,/' jobs.jsonl
killed --resume --retry-failed
expect_record 18
mv jobs.jsonl.was jobs.jsonl
on sbatch 'task 2 n1; echo 17'
on squeue "$pending"
standin --shards 1 --resume
expect_refused
expect_cancelled 18
expect_no_file probe.json

standins_case "--cancel of a probe whose submitter was killed"
killed
on squeue "$pending"
on scancel 'echo "scancel: error: Unable to contact slurm controller (connect failure)" >&2; exit 1'
look --cancel "$state"
expect_status 3
expect_stderr "the probe is not removed from Slurm's queue; if its submitter runs, it does that; give --cancel again where scancel works"
expect_record 18
on scancel true
look --cancel "$state"
expect_status 0
expect_stdout "$state is cancelled, with its probe (job 18): nothing was submitted"
expect_no_file probe.json
look --status "$state"
expect_status 2
expect_stderr "is no state folder of a batch"
answers
on sbatch 'case $comment in *:probe:*) probe n1; echo 19 ;; *) task 2 n1; echo 17 ;; esac'
standin --shards 1 --resume
expect_refused
expect_stderr "$state was cancelled (--cancel) by $(id -un) on "
expect_stderr "; now it is submitted"
expect_no_file cancel

standins_case "--status --follow of a probe that nobody waits for"
killed
on squeue "[ \"\$(calls squeue)\" -le 1 ] || rm -f $folder/$state/probe.json; $pending"
look --status "$state" --follow
expect_status 3
expect_stderr "waiting for the probe: job 18 is PENDING (Resources)"
expect_stderr "the probe has ended, and nothing is submitted"

# What runs in squeue gives it, so that it comes while the submitter lives.
cancels='[ -e '"$folder/$state"'/cancel ] || "$BULKHEAD" batch --cancel '"$folder/$state"' > "$standins/out" 2>&1'
export BULKHEAD
standins_case "--cancel of a probe while its submitter waits"
on sbatch 'echo 18'
on squeue "$cancels; $pending"
standin --shards 1
expect_status 143
expect_stderr "cancelled (--cancel); nothing was submitted"
expect_no_file probe.json
expect_no_file array.json

standins_case "--cancel while the submitter lives"
on sbatch 'echo 17'
on squeue "$cancels; if [ \"\$(calls scancel)\" -eq 0 ]; then $begun; else echo \"17|0|CANCELLED||\$comment|None\"; fi"
standin --shards 1 --no-probe
expect_status 143
expect_stderr "shard 0: it was cancelled (--cancel)"
expect_stderr "cancelled (--cancel) by $(id -un) on "
expect_stderr ": 1 shard has not ended"
expect_stderr "to continue: $BULKHEAD batch jobs.jsonl --executor=slurm --poll=1s --shards=1 --no-probe --resume"
if grep -q stuck .stderr; then fail "a shard is said to be stuck"; fi
look --status "$state" --json
expect_json ".notes[0] | startswith(\"it was cancelled by $(id -un) on \")"
case_name="--resume after it says so"
on sbatch 'task 2 n1; echo 17'
on squeue 'case $comment in *:1) echo "17|0|PENDING||$comment|None" ;; *) echo "17|0|CANCELLED||$comment|None" ;; esac'
standin --shards 1 --no-probe --resume
expect_refused
expect_stderr "$state was cancelled (--cancel) by $(id -un) on $(uname -n) at 20"
expect_stderr "; now the shards that have not ended are submitted again"
expect_stderr "shard 0: it was cancelled (--cancel): it is submitted again and continues"
case_name="--cancel from another folder says how to continue"
on squeue "$begun"
look --cancel "$state"
expect_status 0
expect_stdout "to continue: $BULKHEAD batch jobs.jsonl --executor=slurm --shards=1 --state=$folder/$state --device=slurm --resume"
mkdir elsewhere
(cd elsewhere && PATH=$standins:$PATH "$BULKHEAD" batch --cancel "../$state") > .stdout 2> .stderr
status=$?
expect_status 0
expect_stdout "to continue: cd $folder && $BULKHEAD batch jobs.jsonl --executor=slurm --shards=1 --state=$folder/$state --device=slurm --resume"

standins_case "a signal when all tasks have ended"
on sbatch 'echo 17'
on squeue 'task 0 n1; kill -TERM "$PPID"; sleep 1000'
standin --shards 1 --no-probe
expect_status 143
expect_stderr "SIGTERM: all tasks have ended; bulkhead batch --status $state reports"
expect_called scancel 0
if grep -q "to continue" .stderr; then fail "there is nothing to continue"; fi

standins_case "a task that ended well, and records that do not say so"
on sbatch 'task 0 n1; echo 17'
standin --shards 1 --no-probe
expect_status 3
expect_stderr "shard 0: its task ended well, but its records say so of 0 of its "
expect_stderr "Remove $state/shards/0000/ended"
rm "$state/shards/0000/ended"
on sbatch 'task 2 n1; echo 17'
on squeue 'echo "17|0|COMPLETED||$comment|None"'
standin --shards 1 --no-probe --resume
expect_stderr "it is submitted again"
expect_called sbatch 2

standins_case "what continues a batch can be pasted"
on sbatch 'echo 17'
on squeue 'kill -TERM "$PPID"; sleep 1000'
standin --shards 1 --no-probe --sbatch-option="--job-name=it's" --state 'a state'
expect_status 143
expect_stderr "what is submitted goes on; --resume follows it again, bulkhead batch --cancel 'a state' ends it"
on squeue 'task 2 n1; echo "17|0|PENDING||$comment|None"'
PATH=$standins:$PATH sh -c "$(sed -n 's/^bulkhead batch: to continue: //p' .stderr)" > .stdout 2> .stderr.1
status=$?
mv .stderr.1 .stderr
expect_refused
expect_called sbatch 1

# -- a terminal, the controller, a task ----------------------------------------------------------
terminal=$(command -v script) # a stand-in's is another
asked() { # ANSWER: SIGINT at a terminal, while the array waits
    on sbatch 'echo 17'
    on squeue "[ \"\$(calls squeue)\" -gt 1 ] || { kill -INT \"\$PPID\"; sleep 1000; }; $begun"
    echo "$1" | PATH=$standins:$PATH timeout "$((LIMIT * slowness))" \
        "$terminal" -qefc "'$BULKHEAD' batch jobs.jsonl --executor slurm --poll 1s --shards 1 --no-probe" /dev/null > .stdout 2> .stderr
    status=$?
    expect_status 130
    expect_stdout "Cancel the job array? Otherwise it goes on. [y/N]"
}
standins_case "a terminal is asked at SIGINT: yes"
asked y
expect_stdout "SIGINT: the job array is cancelled; --resume continues"
expect_called scancel 1
standins_case "a terminal is asked at SIGINT: anything else"
asked later
expect_stdout "SIGINT: what is submitted goes on"
expect_called scancel 0

standins_case "one squeue for all shards, and none before its time"
make_counters 3 1
on sbatch 'echo 17'
on squeue 'if [ "$(calls squeue)" -lt 5 ]; then state=PENDING; else state=CANCELLED; fi
for shard in 0 1 2; do echo "17|$shard|$state||$comment|Priority"; done'
begun_s=$SECONDS
standin --shards 3 --no-probe
expect_status 3
expect_stderr "3 shards are stuck"
# The first one comes at once, and a second of the shell's may have ended early.
if [ "$(called squeue)" -le $((SECONDS - begun_s + 2)) ]; then passed=$((passed + 1)); else fail "$(called squeue) calls in $((SECONDS - begun_s)) s"; fi
expect_called sbatch 1
make_counters 1 1

standins_case "what a task's batch is given"
on sbatch 'task 2 n1; echo 17'
standin --shards 1 --no-probe --streams 3
expect_status 3
if [ "$(cat "$standins/arguments")" = "batch $folder/$state/shards/0000/jobs.jsonl --state $folder/$state/shards/0000/state --resume --quarantine $folder/$state/quarantine --cancel-file $folder/$state/cancel --streams=3 --device=slurm" ]; then
    passed=$((passed + 1))
else
    fail "$(cat "$standins/arguments")"
fi
case_name="a task whose GPU is not here"
SLURM_JOB_GPUS=3 cli batch jobs.jsonl --state alone --device slurm
expect_status 3
expect_stderr "--device slurm: Slurm gave this task the GPUs 3, but Vulkan shows none"

# -- this test itself ----------------------------------------------------------------------------
case_name="a test that a signal ends leaves nothing"
cat > left.sh << LEFT
folder=$folder/left
mkdir \$folder
. "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/leftovers.sh"
sh -c 'sleep 1000 & sleep 1000' &
sleep 1000 &
touch begun
sleep 1000
LEFT
"$LEAVES_NONE" bash left.sh 2> .left &
wrapper=$!
until [ -e begun ]; do sleep 0.01; done
until test_pid=$(< "/proc/$wrapper/task/$wrapper/children") && [ "$(wc -w < "/proc/${test_pid% }/task/${test_pid% }/children")" -eq 3 ]; do sleep 0.01; done
kill -TERM "${test_pid% }"
wait "$wrapper"
status=$?
expect_status 143
if [ ! -e left ]; then passed=$((passed + 1)); else fail "its folder is still there"; fi
finish
