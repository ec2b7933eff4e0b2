# For cases that need no Slurm: programs that stand in for sbatch, squeue, scancel and scontrol do what a
# case says. Source it after tests/cli/lib.sh, in a folder in which make_counters was called.
#
#   on sbatch SNIPPET      what `sbatch` does from now on: lines of sh. They have $comment, $script and the
#                          words after the script in $words
#   on version SNIPPET     what each of them does with --version; $name is the program
#   task STATUS NODE       in a snippet: runs the script that was submitted last, as a task 0 of the array 17.
#                          Its batch ends with STATUS at once
#   probe NODE             in a snippet: runs the script that was submitted last, as a probe
# shellcheck shell=bash disable=SC2016 # snippets are for the stand-ins
# shellcheck disable=SC2034,SC2154 # of lib.sh

# shellcheck source=tests/slurm/leftovers.sh
. "$(dirname "${BASH_SOURCE[0]}")/leftovers.sh"
standins=$folder/standins
mkdir -p "$standins"
cat > "$standins/common" << COMMON
folder=$folder standins=$standins
name=\${0##*/}
[ "\${1:-}" != --version ] || { . "\$standins/on_version"; exit 0; }
echo "\$name \$*" >> "\$standins/calls"
calls() { grep -c "^\$1 " "\$standins/calls"; } # NAME: how often it was called, with this time
if [ "\$name" = sbatch ]; then
    for word; do
        case \$word in
        --comment=*) echo "\${word#*=}" > "\$standins/comment" ;;
        -*) ;;
        *) break ;;
        esac
        shift
    done
    cp "\$1" "\$standins/script"
    shift
    echo "\$*" > "\$standins/words"
fi
comment=\$(cat "\$standins/comment" 2> /dev/null)
words=\$(cat "\$standins/words" 2> /dev/null)
script=\$standins/script
state() { sed -n "s/^state='\(.*\)'/\1/p" "\$script"; }
task() {
    printf '#!/bin/sh\necho "\$*" > "%s/arguments"\necho "this is status %s"\nexit %s\n' "\$standins" "\$1" "\$1" > "\$standins/program"
    chmod +x "\$standins/program"
    sed "s,^program=.*,program=\$standins/program," "\$script" |
        SLURM_ARRAY_JOB_ID=17 SLURM_ARRAY_TASK_ID=0 SLURM_JOB_ID=17 SLURMD_NODENAME=\$2 sh -s \$words >> "\$(state)/shards/0000/log" 2>&1
}
probe() { SLURM_JOB_ID=18 SLURMD_NODENAME=\$1 sh "\$script"; }
COMMON
for program in sbatch squeue scancel scontrol; do
    printf '#!/bin/sh\n. "%s/common"\n. "%s/on_%s"\n' "$standins" "$standins" "$program" > "$standins/$program"
    chmod +x "$standins/$program"
done
on() { printf '%s\n' "$2" > "$standins/on_$1"; } # PROGRAM SNIPPET
# Begins a case: nothing has been called, each program does nothing.
standins_case() { # NAME
    case_name=$1
    rm -rf jobs.jsonl.state "$standins/calls" "$standins/comment" "$standins/words"
    : > "$standins/calls"
    for program in sbatch squeue scancel scontrol; do on "$program" true; done
    on version 'echo "slurm 23.11.4"'
}
standin() { # ARGUMENT…: of bulkhead batch jobs.jsonl
    PATH=$standins:$PATH cli batch jobs.jsonl --executor slurm --poll 1s "$@"
}
called() { grep -c "^$1 " "$standins/calls"; } # PROGRAM: how often
expect_called() { # PROGRAM TIMES
    if [ "$(called "$1")" -eq "$2" ]; then passed=$((passed + 1)); else fail "$1 was called $(called "$1") times, not $2"; fi
}
expect_cancelled() { # JOB…: in this order
    local jobs
    jobs=$(sed -n 's/^scancel //p' "$standins/calls" | tr '\n' ' ')
    if [ "$jobs" = "$* " ]; then passed=$((passed + 1)); else fail "$jobs are cancelled, not $*"; fi
}
