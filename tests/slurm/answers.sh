#!/usr/bin/env bash
# What Slurm's programs may answer, or not, and signals while they run: with programs that stand in for them.
# shellcheck disable=SC2016 # snippets are for the stand-ins
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/counters.sh
. "$(dirname "${BASH_SOURCE[0]}")/../batch/counters.sh"
# shellcheck source=tests/slurm/counts.sh
. "$(dirname "${BASH_SOURCE[0]}")/counts.sh"
# shellcheck source=tests/slurm/standins.sh
. "$(dirname "${BASH_SOURCE[0]}")/standins.sh"
make_counters 6 4

# -- an old answer -------------------------------------------------------------------------------
standins_case "a job number that is given twice: the old task's answer is not the new one's"
on sbatch 'task 1 n1; echo 17'
standin --shards 1 --no-probe
on sbatch 'echo 17'
on squeue '[ "$(calls squeue)" -lt 2 ] || task 2 n2; echo "17|0|PENDING||$comment|None"'
standin --shards 1 --no-probe --resume --retry-failed
expect_status 3
expect_stderr "its batch was refused (status 2)"
expect_rounds jobs.jsonl.state '[.rounds[].job] == [17, 17]'

cli batch jobs.jsonl --resume
expect_status 2
expect_stderr "jobs.jsonl.state has a job array of Slurm: give --executor slurm"
expect_stderr "to continue: $BULKHEAD batch jobs.jsonl --executor=slurm --shards=1 --state=$folder/jobs.jsonl.state --device=slurm --resume"
[ ! -e jobs.jsonl.state/batch.db ] || fail "the array's folder has a batch of this machine"

standins_case "an option that sbatch does not know"
on sbatch 'echo "sbatch: unrecognized option --mme=100M" >&2; exit 255'
standin --shards 1 --no-probe --sbatch-option=--mme=100M
expect_status 2
expect_stderr "unrecognized option --mme=100M"
expect_called sbatch 1

standins_case "the probe of a killed submitter runs when the next one has submitted its own, which asks for another partition"
on sbatch 'cp "$script" "$standins/old"; kill -KILL "$PPID"'
standin --shards 1
expect_called sbatch 1
# Both answer for another version, and name their machine.
on sbatch 'sed -i s/version/nonsense/ "$script" "$standins/old"
cp "$script" "$standins/new"; cp "$standins/old" "$script"; probe old; cp "$standins/new" "$script"; echo 18'
on squeue '[ "$(calls squeue)" -lt 2 ] || probe new; echo "18|N/A|PENDING||$comment|None"'
standin --shards 1 --partition other
expect_status 2
expect_stderr "on new cannot be started"

# -- a new version is installed ------------------------------------------------------------------
# The program runs, and its file is another one: what the kernel says is the path is none.
cp "$BULKHEAD" program
exec 9< program
rm program
built=$BULKHEAD
BULKHEAD=/proc/self/fd/9
standins_case "the file of the program is removed"
standin --shards 1
expect_status 3
expect_stderr "$folder/program, which tasks are to start, was removed while it ran: give the command again"
expect_called sbatch 0
cp "$built" program
standins_case "the file of the program is replaced"
standin --shards 1
expect_status 3
expect_stderr "$folder/program, which tasks are to start, was replaced by another program while it ran: give the command again"
expect_called sbatch 0
if [ ! -e jobs.jsonl.state ]; then passed=$((passed + 1)); else fail "a state folder was made"; fi
exec 9<&-
standins_case "a program whose name is like that of a removed file"
mv program 'program (deleted)'
BULKHEAD=$folder/'program (deleted)'
on sbatch 'task 0 n1; echo 17'
standin --shards 1 --no-probe
expect_called sbatch 1
if grep -qF 'program (deleted)' "$standins/script"; then passed=$((passed + 1)); else fail "the script has another program"; fi
BULKHEAD=$built

# -- a signal ------------------------------------------------------------------------------------
# The stand-in sends it itself, and then does not end. With its process group it is killed:
# LEAVES_NONE would find the `sleep`.
hangs='kill -TERM "$PPID"; sleep 1000; exit 1'
is_there='echo "17|0|PENDING||$comment|None"'
expect_no_array() { if [ ! -e jobs.jsonl.state/array.json ]; then passed=$((passed + 1)); else fail "there is an array.json"; fi; }
LIMIT=10

standins_case "a signal while sbatch --version runs"
on version "$hangs"
standin --shards 1
expect_status 143
expect_stderr "cancelled by SIGTERM; nothing was submitted"

standins_case "a signal while sbatch runs; --resume finds what it had submitted"
on sbatch "$hangs"
standin --shards 1 --no-probe
expect_status 143
expect_stderr "the answer of sbatch did not come, and it may have submitted the job array"
on squeue "[ \"\$(calls squeue)\" -lt 2 ] || task 2 n1; $is_there"
standin --shards 1 --no-probe --resume
expect_status 3
expect_stderr "its batch was refused (status 2)"
expect_called sbatch 1

standins_case "its request is on its way when --resume looks first"
on sbatch "$hangs"
standin --shards 1 --no-probe
on version "$hangs"
standin --shards 1 --no-probe --resume
expect_status 143
expect_stderr "SIGTERM: the answer of sbatch did not come, and it may have submitted the job array"
on version 'echo "slurm 23.11.4"'
on squeue "case \$(calls squeue) in 1) ;; 2) $is_there ;; *) task 2 n1; $is_there ;; esac"
standin --shards 1 --no-probe --resume
expect_status 3
expect_stderr "its batch was refused (status 2)"
expect_called sbatch 1

standins_case "a signal while sbatch runs, with --on-interrupt cancel"
on sbatch "$hangs"
on squeue "$is_there"
standin --shards 1 --no-probe --on-interrupt cancel
expect_status 143
expect_stderr "SIGTERM: the job array is cancelled"
expect_called scancel 1
standins_case "the same where nothing was submitted: it is looked for twice"
on sbatch "$hangs"
standin --shards 1 --no-probe --on-interrupt cancel
expect_status 143
expect_stderr "Slurm's queue has no task of this batch"
expect_called squeue 2

standins_case "a signal while squeue runs"
on sbatch 'echo 17'
on squeue "$hangs"
standin --shards 1 --no-probe
expect_status 143
expect_stderr "what is submitted goes on"
expect_stderr "--cancel jobs.jsonl.state ends it"
if [ "$(wc -l < .stderr)" -eq 2 ]; then passed=$((passed + 1)); else fail "not two lines"; fi

standins_case "a signal while the controller is down: nothing is submitted, and the same command goes on"
on sbatch 'now=$(calls sbatch); ( [ "$now" -ne 3 ] || { while kill -0 $$; do sleep 0.01; done; kill -TERM "$PPID"; } ) > "$standins/out" 2>&1 &
echo "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)" >&2; exit 1'
standin --shards 1 --no-probe
expect_status 143
expect_stderr "cancelled by SIGTERM; nothing was submitted"
expect_no_array
on sbatch 'task 2 n1; echo 17'
standin --shards 1 --no-probe
expect_status 3
expect_stderr "its batch was refused (status 2)"

standins_case "a signal while the probe's sbatch runs, and while its squeue runs: the probe is cancelled"
on sbatch "$hangs"
on squeue "$is_there"
standin --shards 1
expect_status 143
expect_stderr "cancelled by SIGTERM; nothing was submitted"
expect_called scancel 1
on sbatch 'echo 17'
on squeue "$hangs"
standin --shards 1
expect_status 143
expect_stderr "cancelled by SIGTERM; nothing was submitted"
expect_called scancel 2
expect_no_array

standins_case "a signal while the sbatch of a killed submitter has the folder"
on sbatch 'echo $$ > "$standins/holder"; kill -KILL "$PPID"; exec sleep 1000'
PATH=$standins:$PATH "$BULKHEAD" batch jobs.jsonl --executor slurm --shards 1 --no-probe > .first 2>&1 &
wait "$!" 2> /dev/null
on squeue "$is_there"
waits() { find "/proc/$1/fd" -lname '*/lock' 2> /dev/null | grep -q .; } # SUBMITTER: for the folder
resume_and_stop() { # ARGUMENT…
    PATH=$standins:$PATH "$BULKHEAD" batch jobs.jsonl --executor slurm --shards 1 --no-probe --resume "$@" > .stdout 2> .stderr &
    until_true waits "$!"
    kill -TERM "$!"
    wait "$!"
    status=$?
    expect_status 143
}
resume_and_stop
expect_stderr "SIGTERM: the answer of sbatch did not come, and it may have submitted the job array"
expect_called scancel 0
resume_and_stop --on-interrupt cancel
expect_stderr "SIGTERM: the job array is cancelled"
expect_cancelled 17
# A signal to the whole group ends a squeue that is just being started.
on squeue '[ -e "$standins/struck" ] || { touch "$standins/struck"; kill -TERM $$; }; '"$is_there"
resume_and_stop --on-interrupt cancel
expect_stderr "SIGTERM: the job array is cancelled"
expect_cancelled 17 17
kill -KILL "$(< "$standins/holder")"

standins_case "a signal during --resume, while its probe runs, and while sbatch --version runs"
on sbatch 'echo 17'
on squeue "$hangs"
standin --shards 1 --no-probe
id=$(jq -r .id jobs.jsonl.state/array.json)
runs="echo '17|0|RUNNING|n1|bulkhead:$id:0|None'"
cp jobs.jsonl was.jsonl
sed -i 's/f32:1,/f32:2,/' jobs.jsonl
on sbatch "$hangs"
on squeue "$runs; echo \"18|N/A|PENDING||\$comment|None\""
standin --shards 1 --resume --retry-failed --on-interrupt leave
expect_status 143
expect_stderr "SIGTERM: what is submitted goes on; --resume follows it again, bulkhead batch --cancel jobs.jsonl.state ends it"
expect_cancelled 18
standin --shards 1 --resume --retry-failed --on-interrupt cancel
expect_status 143
expect_stderr "SIGTERM: the job array is cancelled"
expect_cancelled 18 18 17 18
touch jobs.jsonl.state/cancel
on version "$hangs"
on squeue "$runs"
standin --shards 1 --resume --on-interrupt cancel
expect_status 143
expect_stderr "SIGTERM: the job array is cancelled"
expect_cancelled 18 18 17 18 17
if [ -e jobs.jsonl.state/cancel ]; then passed=$((passed + 1)); else fail "the file cancel is gone, and it does not go on"; fi
mv was.jsonl jobs.jsonl
unset LIMIT

# -- what does not work --------------------------------------------------------------------------
without() { # PROGRAM ARGUMENT…: it alone is missing
    rm -rf part
    mkdir part
    cp "$standins/sbatch" "$standins/squeue" "$standins/scancel" part
    rm "part/$1"
    env PATH="$PWD/part" "$BULKHEAD" batch jobs.jsonl --executor slurm --shards 1 > .stdout 2> .stderr < /dev/null
    status=$?
    expect_status 3
    expect_stderr "$1 cannot be started ($1: No such file or directory)"
    expect_called sbatch 0
    if [ ! -e jobs.jsonl.state ]; then passed=$((passed + 1)); else fail "a state folder was made"; fi
}
standins_case "there is no squeue"
without squeue
standins_case "there is no scancel"
without scancel
standins_case "an old squeue"
on version '[ "$name" = squeue ] && echo "slurm 19.05.5" || echo "slurm 23.11.4"'
standin --shards 1
expect_status 3
expect_stderr "squeue: this is Slurm 19.05"

LIMIT=20
standins_case "squeue fails while a probe waits"
on sbatch 'echo 17'
on squeue 'echo "squeue: error: slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1'
standin --shards 1 --controller-timeout 1s
expect_status 3
expect_stderr "(connect failure); it is tried again"
expect_stderr "the controller of Slurm was not reached: squeue: slurm_load_jobs error: Unable to contact slurm controller (connect failure); nothing was submitted"
expect_called scancel 1
standins_case "squeue will fail again"
on sbatch 'echo 17'
on squeue 'echo "squeue: error: Plugin initialization failed" >&2; echo "squeue: fatal: failed to initialize auth plugin" >&2; exit 1'
standin --shards 1 --controller-timeout 60m
expect_status 3
expect_stderr "squeue: Plugin initialization failed; failed to initialize auth plugin"
standin --shards 1 --no-probe --controller-timeout 1s
expect_status 3
expect_stderr "failed to initialize auth plugin; what is submitted goes on, and is asked for again"
expect_stderr "failed to initialize auth plugin: what is submitted goes on; --resume continues"
standins_case "after a long outage squeue fails once as if for good"
down='{ echo "squeue: error: slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1; }'
bad='{ echo "squeue: fatal: failed to initialize auth plugin" >&2; exit 1; }'
on sbatch 'echo 17'
on squeue "case \$(calls squeue) in 1 | 2 | 3) $down ;; 4) $bad ;; *) task 2 n1; $is_there ;; esac"
standin --shards 1 --no-probe --controller-timeout 1s
expect_status 3
expect_stderr "its batch was refused (status 2)"
standins_case "the same once, where there is nothing else to wait for"
on sbatch 'if [ "$(calls sbatch)" -eq 1 ]; then echo 18; else echo "sbatch: error: Zero Bytes were transmitted or received" >&2; exit 1; fi'
on squeue "case \$(calls squeue) in 1 | 3) $bad ;; 2) sed -i s/version/nonsense/ \"\$script\"; probe n1; echo \"18|N/A|RUNNING|n1|\$comment|None\" ;; *) task 2 n1; $is_there ;; esac"
standin --shards 1
expect_status 2
expect_stderr "on n1 cannot be started"
standin --shards 1 --no-probe
expect_status 3
expect_stderr "its batch was refused (status 2)"
expect_called sbatch 2
standins_case "squeue will fail again, and it is not known whether there is an array"
on sbatch 'echo "sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received" >&2; exit 1'
on squeue 'echo "squeue: fatal: failed to initialize auth plugin" >&2; exit 1'
standin --shards 1 --no-probe --controller-timeout 60m
expect_status 3
expect_stderr "failed to initialize auth plugin; --resume tries again"
expect_called sbatch 1
expect_rounds jobs.jsonl.state '.rounds[0].job == 0'

standins_case "SLURM_CONF names nothing"
SLURM_CONF=$folder/none.conf standin --shards 1
expect_status 3
expect_stderr "SLURM_CONF is $folder/none.conf, which cannot be read (No such file or directory): set it"
SLURM_CONF=$folder/none.conf standin --shards 1 --no-probe --resume
expect_status 3
expect_called sbatch 0
standins_case "a site's plugin says why, and Slurm what came of it"
on sbatch 'printf "sbatch: error: Your account is over its budget\nsbatch: error: Batch job submission failed: Unspecified error\n" >&2; exit 1'
standin --shards 1 --no-probe
expect_status 2
expect_stderr "sbatch: Your account is over its budget; Batch job submission failed: Unspecified error; nothing was submitted"
expect_called sbatch 1
standins_case "munged does not run: that may change"
on sbatch 'printf "sbatch: error: If munged is up, restart with --num-threads=10\nsbatch: error: Munge encode failed: Failed to access \"/run/munge/munge.socket.2\": No such file or directory\nsbatch: error: Batch job submission failed: Protocol authentication error\n" >&2; exit 1'
standin --shards 1 --controller-timeout 1s
expect_status 3
expect_stderr "was not reached: Munge encode failed: Failed to access \"/run/munge/munge.socket.2\": No such file or directory; Batch job submission failed: Protocol"
expect_called sbatch 2
unset LIMIT

standins_case "an option of a later sbatch that takes the next word as its value does not take ours"
on sbatch 'exit 1'
standin --shards 1 --no-probe --sbatch-option=--unheard-of --sbatch-option=--mem=1G
expect_status 2
if grep -q -- "--unheard-of --parsable --mem=1G --array=0 " "$standins/calls"; then passed=$((passed + 1)); else fail "$(cat "$standins/calls")"; fi
standin --shards 1 --sbatch-option=--unheard-of
if grep -q -- "--unheard-of --parsable --job-name=bulkhead-probe " "$standins/calls"; then passed=$((passed + 1)); else fail "$(cat "$standins/calls")"; fi
refuses "--wrap is not for --executor slurm" batch jobs.jsonl --executor slurm --shards 2 --sbatch-option=--wrap=true
refuses "several options in one word" batch jobs.jsonl --executor slurm --shards 2 --sbatch-option=-Ha1-9

# -- what people are told ------------------------------------------------------------------------
standins_case "a batch that ended badly: where its log is, and its last line"
on sbatch 'if [ "$(calls sbatch)" -eq 1 ]; then task 3 n1; else task 2 n1; fi; echo 17'
standin --shards 1 --no-probe
expect_status 3
log=jobs.jsonl.state/shards/0000/log
expect_stderr "shard 0: its batch ended with status 3 on n1; its log, $folder/$log, ends with: this is status 3: it is submitted again"
expect_stderr "shard 0: its batch was refused (status 2); its log, $folder/$log, ends with: this is status 2"
standins_case "a probe that could not run: its log, which is here, says why"
on sbatch 'echo "slurmstepd: error: execve(): Permission denied" > jobs.jsonl.state/probe/log; echo 18'
on squeue 'echo "18|N/A|FAILED|n1|$comment|NonZeroExitCode"'
standin --shards 1
expect_status 2
expect_stderr "a probe ended on n1 (FAILED) without an answer: its log, $folder/jobs.jsonl.state/probe/log, ends with: slurmstepd: error: execve(): Permission denied"

standins_case "the name of a probe's mark"
on sbatch 'cd "$folder" && find . -name ".bulkhead-probe-*" > "$standins/mark"; exit 1'
standin --shards 1
mkfifo "$(head -n 1 "$standins/mark")" || fail "a probe has no mark"
standins_case "a probe's mark that would wait for ever"
LIMIT=20 standin --shards 1
expect_status 3
expect_stderr "/.bulkhead-probe-"
expect_stderr " cannot be made: No such device or address; nothing was submitted"
standins_case "an input that would wait for ever"
on sbatch 'cd "$folder" && mv x.npy hidden && probe n1; mkfifo x.npy; echo 18'
on squeue 'echo "18|N/A|COMPLETED|n1|$comment|None"'
LIMIT=20 standin --shards 1
expect_status 3
expect_stderr "/x.npy cannot be copied to "
expect_stderr "/staged: it is not a file any more"
mv -f hidden x.npy

standins_case "more shards than the controller takes"
on scontrol 'echo "MaxArraySize            = 4"'
standin --shards 6
expect_status 2
expect_stderr "6 are too many: the controller takes arrays of at most 4 tasks (MaxArraySize, max_array_tasks): give --shards 4 or fewer"
if [ ! -e jobs.jsonl.state ]; then passed=$((passed + 1)); else fail "a state folder was made"; fi
on scontrol 'exit 1'
on sbatch 'echo "sbatch: error: Batch job submission failed: Invalid job array specification" >&2; exit 1'
standin --shards 6 --no-probe
expect_status 2
expect_stderr "the largest task of this array is 5, and MaxArraySize must be larger (scontrol show config): give fewer --shards; nothing was submitted"

standins_case "folders that cannot be recorded, or given to Slurm"
elsewhere() { # FOLDER ARGUMENT…: in a new folder
    mkdir "$1"
    (cd "$1" && PATH=$standins:$PATH exec "$BULKHEAD" batch "$folder/jobs.jsonl" --executor slurm --shards 1 "${@:2}") > .stdout 2> .stderr < /dev/null
    status=$?
    expect_status 2
    expect_called sbatch 0
    if rmdir "$1" && [ ! -e jobs.jsonl.state ]; then passed=$((passed + 1)); else fail "something was written"; fi
}
elsewhere $'caf\xe9' --state state
expect_stderr "/caf? is not UTF-8, and array.json, which records it, is"
elsewhere $'new\nline' --state "$folder/jobs.jsonl.state"
expect_stderr "/new line: Slurm takes no \\ and no control characters in paths"
elsewhere plain --state $'new\nstate'
expect_stderr "new state: Slurm takes no \\ and no control characters in paths"
elsewhere plain --state $'caf\xe9'
expect_stderr "the state folder caf? is not UTF-8, and array.json, which may record it, is"
on sbatch 'task 2 n1; echo 17'
standin --shards 1 --no-probe --html $'caf\xe9.html'
expect_status 3
expect_stderr "its batch was refused (status 2)"
if rm $'caf\xe9.html'; then passed=$((passed + 1)); else fail "there is no page"; fi
standins_case "a folder behind a link"
mkdir $'new\nline'
ln -s $'new\nline' link
elsewhere plain --state "$folder/link/state"
expect_stderr "link/state: Slurm takes no"
rmdir $'new\nline' && rm link

if unshare --mount true 2> /dev/null; then
    in_small() { # ARGUMENT…: with a small file system at `small`
        PATH=$standins:$PATH unshare --mount sh -c 'mount -t tmpfs -o size=2m none small && exec "$@"' sh \
            timeout "$((60 * slowness))" "$BULKHEAD" batch jobs.jsonl --executor slurm --poll 1s --state small/state "$@" > .stdout 2> .stderr < /dev/null
        status=$?
    }
    mkdir small
    standins_case "the folder is full when the probe wants to answer"
    on sbatch 'cat /dev/zero > small/filler 2> "$standins/out"; probe n1 2> "$standins/out"; echo 18'
    on squeue 'echo "18|N/A|FAILED|n1|$comment|NonZeroExitCode"'
    in_small --shards 1
    expect_status 3
    expect_stderr "/small/state cannot be written: No space left on device; nothing was submitted"
    standins_case "the folder is full when a task ends"
    on sbatch 'echo 17'
    on squeue '[ "$(calls squeue)" -lt 2 ] || { task 3 n1; cat /dev/zero > small/filler 2> "$standins/out"; echo "17|0|FAILED|n1|$comment|None"; }'
    in_small --shards 1 --no-probe
    expect_status 3
    expect_stderr "its batch ended with status 3 on n1; $folder/small/state cannot be written: No space left on device: it is submitted again"
    expect_stderr "/small/state/array.json: "
    expect_stderr "No space left on device; --resume continues"
fi
finish
