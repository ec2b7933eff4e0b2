# Lines of jobs, and what became of them: for the tests of bulkhead batch that look at single jobs.
# shellcheck shell=bash

square() { # ID IN OUT [MORE]
    echo "{\"id\":\"$1\",\"kernel\":\"$SHADERS/square.spv\",\"groups\":[16],\"in\":{\"0\":\"$2\"},\
\"out\":{\"1\":\"$3:f32[1000]\"}${4:-}}"
}

expect_sql() { # QUERY ANSWER
    local got
    got=$(sqlite3 jobs.jsonl.state/batch.db "$1")
    if [ "$got" = "$2" ]; then passed=$((passed + 1)); else fail "$1: $got, not $2"; fi
}
