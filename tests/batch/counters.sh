# Batches whose every job can be seen to have run exactly once: chains of jobs that add one to a
# file in place. What looks at them afterwards is od and sqlite3, nothing of ours.
# shellcheck shell=bash

# Makes $1 counters, each with a chain of $2 jobs, in jobs.jsonl and counters/; and one job more
# for each that only writes.
make_counters() {
    local counters=$1 chain=$2 c i depends
    mkdir -p counters squares
    "$NPY" make one.npy 'f32[4]' ramp 1 0
    "$NPY" make zero.npy 'f32[4]' ramp 0 0
    "$NPY" make x.npy 'f32[256]' ramp 0 1
    : > jobs.jsonl
    for c in $(seq "$counters"); do
        cp zero.npy "counters/$c.npy"
        depends=
        for i in $(seq "$chain"); do
            echo "{\"id\":\"c$c.$i\",\"kernel\":\"$SHADERS/saxpy.spv\",\"groups\":[1],\
\"in\":{\"0\":\"one.npy\"},\"inout\":{\"1\":\"counters/$c.npy\"},\"push\":\"f32:1,u32:4\"$depends}"
            depends=",\"depends_on\":[\"c$c.$i\"]"
        done
        echo "{\"id\":\"s$c\",\"kernel\":\"$SHADERS/square.spv\",\"groups\":[4],\
\"in\":{\"0\":\"x.npy\"},\"out\":{\"1\":\"squares/$c.npy:f32[256]\"}}"
    done >> jobs.jsonl
}

# What a file of four numbers holds: "5 5 5 5".
numbers() {
    tail -c 16 "$1" | od -An -tf4 | tr -s ' \n' ' ' | sed 's/^ //;s/ $//'
}

# Each counter at exactly $2, each square as expected. Prints what is wrong.
check_arrays() { # COUNTERS CHAIN
    local chain=$2 c wrong=0
    for c in $(seq "$1"); do
        if [ "$(numbers "counters/$c.npy")" != "$chain $chain $chain $chain" ]; then
            echo "counter $c is $(numbers "counters/$c.npy"), not $chain"
            wrong=1
        fi
        if ! cmp -s <(tail -c 1024 "squares/$c.npy") <(tail -c 1024 expected.npy); then
            echo "squares/$c.npy is wrong"
            wrong=1
        fi
    done
    return "$wrong"
}

# All jobs done, each counter at exactly $2, nothing left over. Prints what is wrong.
check_counters() {
    local counters=$1 chain=$2 wrong=0
    check_arrays "$counters" "$chain" || wrong=1
    if [ -n "$(find . -name '.bulkhead-*')" ]; then
        echo "temporaries are left: $(find . -name '.bulkhead-*' | head -3)"
        wrong=1
    fi
    local total=$((counters * (chain + 1)))
    if [ "$(sqlite3 jobs.jsonl.state/batch.db "SELECT count(*) FROM jobs WHERE state = 'done'")" != "$total" ]; then
        echo "not all of $total are done:" "$(sqlite3 jobs.jsonl.state/batch.db \
            'SELECT state, count(*) FROM jobs GROUP BY state' | tr '\n' ' ')"
        wrong=1
    fi
    # What was recorded done once was never run again: no attempt comes after a good one.
    local again
    again=$(sqlite3 jobs.jsonl.state/batch.db "SELECT count(*) FROM attempt AS a JOIN attempt AS b
        ON a.job = b.job AND a.attempt < b.attempt WHERE a.status = 0 AND a.ended_ns > 0")
    if [ "$again" != 0 ]; then
        echo "$again attempts came after a good one"
        wrong=1
    fi
    if [ "$(sqlite3 jobs.jsonl.state/batch.db 'PRAGMA integrity_check')" != ok ]; then
        echo "the database is damaged"
        wrong=1
    fi
    return "$wrong"
}
