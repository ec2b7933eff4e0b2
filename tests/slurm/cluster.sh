# A Slurm of the test's own: munged, slurmctld and some slurmd on this machine, in a folder and
# with port numbers that nobody else uses. All of them are children of the test and end with it, by their pids.
# Source it after tests/cli/lib.sh.
#
#   cluster_start N      starts N nodes, n1, n2, …; each has two processors
#   node_kill n1         kill -9 of a slurmd; its tasks go on, as on a node that the network lost
#   node_start n1        starts one (again)
#   controller_kill, controller_start
#   until_true COMMAND…  waits until it succeeds, within a bound
#
# cluster_memory may have lines for slurm.conf in place of those that leave memory alone.
# Jobs in the partition `urgent` preempt those in `main`, the default.
# shellcheck shell=bash disable=SC2154 # who sources it sets folder and slowness

# shellcheck source=tests/slurm/leftovers.sh
. "$(dirname "${BASH_SOURCE[0]}")/leftovers.sh"
PATH=$PATH:/usr/sbin:/sbin # slurmctld, slurmd, munged
cluster=$folder/cluster
declare -A daemons=() # pid of each daemon

# munged and Slurm take paths in folders that others can enter.
cluster_folders() {
    chmod 711 "$folder"
    mkdir -p "$cluster/munge" "$cluster/state"
    chmod 711 "$cluster" "$cluster/munge"
    head -c 128 /dev/urandom > "$cluster/munge/key"
    chmod 600 "$cluster/munge/key"
}

cluster_conf() { # NODES BASE
    local host i
    host=$(uname -n)
    host=${host%%.*}
    {
        cat << CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$2
AuthType=auth/munge
AuthInfo=socket=$cluster/munge/socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
${cluster_memory:-SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none}
MpiDefault=none
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/%n
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/%n.pid
SlurmctldTimeout=5
SlurmdTimeout=4
MessageTimeout=$((2 * slowness < 60 ? 2 * slowness : 60))
KillWait=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
MinJobAge=300
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000
CONF
        for i in $(seq "$1"); do
            echo "NodeName=n$i NodeHostname=$host NodeAddr=127.0.0.1 Port=$(($2 + i)) CPUs=2 State=UNKNOWN"
        done
        echo "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1"
        echo "PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2"
    } > "$cluster/slurm.conf"
    # Later versions look for a control group of their own, which a container need not have.
    if [ "$(slurmctld -V | sed 's/[^0-9]*\([0-9]*\).*/\1/')" -ge 24 ]; then
        echo "CgroupPlugin=disabled" > "$cluster/cgroup.conf"
    fi
    export SLURM_CONF=$cluster/slurm.conf
}

daemon() { # NAME COMMAND…
    local name=$1
    shift
    "$@" >> "$cluster/$name.out" 2>&1 < /dev/null &
    daemons[$name]=$!
}

daemon_kill() { # NAME [SIGNAL]
    [ -n "${daemons[$1]:-}" ] || return 0
    kill "-${2:-KILL}" "${daemons[$1]}" 2> /dev/null
    wait "${daemons[$1]}" 2> /dev/null
    unset "daemons[$1]"
}

controller_start() { daemon slurmctld slurmctld -D -f "$SLURM_CONF" "$@"; }
controller_kill() { daemon_kill slurmctld; }
node_start() { daemon "$1" slurmd -D -f "$SLURM_CONF" -N "$1"; }
node_kill() { daemon_kill "$1"; }

cluster_is_up() { # NODES
    [ "$(sinfo -h -N -t idle -o %N 2> /dev/null | sort -u | wc -l)" -eq "$1" ]
}

# Another test may have taken a port between the choice and the start: then others are tried.
cluster_start() { # NODES
    local base try i
    cluster_folders
    daemon munged munged --foreground --socket="$cluster/munge/socket" --key-file="$cluster/munge/key" \
        --pid-file="$cluster/munge/pid" --log-file="$cluster/munge/log" --seed-file="$cluster/munge/seed"
    until_true test -S "$cluster/munge/socket" || return 1
    for try in 1 2 3 4 5; do
        base=$((20000 + (RANDOM * 32768 + RANDOM) % 1100 * 10))
        cluster_conf "$1" "$base"
        controller_start -c
        for i in $(seq "$1"); do node_start "n$i"; done
        local end=$((SECONDS + 60 * slowness))
        while [ "$SECONDS" -lt "$end" ]; do
            ! cluster_is_up "$1" || return 0
            for i in $(seq "$1") ctld; do
                i=${i/ctld/slurmctld}
                [[ $i == slurmctld ]] || i=n$i
                kill -0 "${daemons[$i]}" 2> /dev/null || break 2
            done
            sleep 0.1
        done
        echo "cluster: try $try from port $base on has failed"
        tail -n 3 "$cluster"/*.out
        controller_kill
        for i in $(seq "$1"); do node_kill "n$i"; done
    done
    fail "no Slurm starts"
    return 1
}

# Ends the tasks' processes, too: those of a killed slurmd belong to nobody.
cluster_stop() {
    local name pids pid
    for name in "${!daemons[@]}"; do daemon_kill "$name"; done
    # Tasks, and slurmstepd above them, have this configuration in their environment. So may programs
    # of the caller, which are no tasks.
    for pids in 1 2 3; do
        pids=
        while read -r pid; do
            if [ "$(cat "/proc/$pid/comm" 2> /dev/null)" = slurmstepd ] ||
                grep -qaz '^SLURM_JOB_ID=' "/proc/$pid/environ" 2> /dev/null; then
                pids+=" $pid"
            fi
        done < <(grep -lazF "SLURM_CONF=$cluster/slurm.conf" /proc/[0-9]*/environ 2> /dev/null |
            sed 's,/proc/\([0-9]*\)/.*,\1,')
        [ -n "$pids" ] || break
        # shellcheck disable=SC2086 # several pids
        kill -KILL $pids 2> /dev/null
        sleep 0.1
    done
}
trap 'descendants_stop; cluster_stop; rm -rf "$folder"' EXIT
