# Whether each job was done once, over all shards of a batch: tests/batch/counters.sh for one state
# folder. Source it after that.
# shellcheck shell=bash

sql_all() { # STATE QUERY: the answers of all shards, one a line
    local database
    for database in "$1"/shards/*/state/batch.db; do sqlite3 "$database" "$2"; done
}

sum() { awk '{ total += $1 } END { print total + 0 }'; }

# All jobs done, each counter at exactly $3, nothing left over. Prints what is wrong.
check_shards() { # STATE COUNTERS CHAIN
    local state=$1 counters=$2 chain=$3 wrong=0 got
    check_arrays "$counters" "$chain" || wrong=1
    got=$(sql_all "$state" "SELECT count(*) FROM jobs WHERE state = 'done'" | sum)
    if [ "$got" != $((counters * (chain + 1))) ]; then
        echo "$got of $((counters * (chain + 1))) are done"
        wrong=1
    fi
    got=$(sql_all "$state" "SELECT count(*) FROM attempt AS a JOIN attempt AS b
        ON a.job = b.job AND a.attempt < b.attempt WHERE a.status = 0 AND a.ended_ns > 0" | sum)
    if [ "$got" != 0 ]; then
        echo "$got attempts came after a good one"
        wrong=1
    fi
    got=$(find . -name '.bulkhead-*' | wc -l)
    if [ "$got" != 0 ]; then
        echo "$got temporaries are left"
        wrong=1
    fi
    return "$wrong"
}

expect_shards() { # STATE COUNTERS CHAIN
    local why
    if why=$(check_shards "$@"); then passed=$((passed + 1)); else fail "$why"; fi
}

rounds() { jq "$2" "$1/array.json"; } # STATE FILTER
expect_rounds() { # STATE FILTER
    if jq -e "$2" "$1/array.json" > .jq 2>&1; then
        passed=$((passed + 1))
    else
        fail "array.json: not so: $2: $(jq -c .rounds "$1/array.json")"
    fi
}
