#!/usr/bin/env bash
# Jobs that compute an expression: the words mean what they mean to bulkhead eval.
# shellcheck disable=SC2016 # jq's variables
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/jobs.sh
. "$(dirname "${BASH_SOURCE[0]}")/jobs.sh"

expect_same() { # FILE FILE
    if cmp -s "$1" "$2"; then passed=$((passed + 1)); else fail "$1 is not $2"; fi
}

"$NPY" make x.npy 'f32[3000]' random 1 -2 2
"$NPY" make m.npy 'f32[1]' ramp 0.25 0
"$NPY" make i.npy 'i8[3000]' ramp -60 0.04
expression='t = x - m; y = t > 0 ? t : a*t; n = i32(i) * i32(2)'
case_name="the command, to compare with"
cli eval "$expression" --in x=x.npy --in m=m.npy --in i=i.npy --set a=f32:0.01 --out y=y.npy --out n=n.npy
expect_status 0

case_name="the same words"
words() { # ID [MORE]
    echo "{\"id\":$1,\"eval\":\"$expression\",\"in\":{\"x\":\"x.npy\",\"m\":\"m.npy\",\"i\":\"i.npy\"},
\"set\":{\"a\":\"f32:0.01\"},\"out\":{\"y\":\"y$1.npy\",\"n\":\"n$1.npy\"}${2:-}}" | tr -d '\n'
    echo
}
{
    words 1
    words 2 ',"piece":"4K"' # three pieces of the f32, and the inputs are shared all the same
    words 3
    # A kernel reads what an expression wrote, and the other way round.
    square 4 y1.npy s.npy ',"depends_on":[1]' | sed 's/"id":"4"/"id":4/; s/f32\[1000\]/f32[3000]/; s/\[16\]/[47]/'
    echo '{"id":5,"eval":"z = sqrt(s) - abs(y)","in":{"s":"s.npy","y":"y1.npy"},"out":{"z":"z.npy"},"depends_on":[1,4]}'
} > jobs.jsonl
cli batch jobs.jsonl --dry-run --json
expect_json --arg words "$expression" '[.plan[].id] == ["1", "2", "3", "4", "5"] and .plan[0].kernel == $words'
cli batch jobs.jsonl --streams 1 --json
expect_status 0
for id in 1 2 3; do
    expect_same "y$id.npy" y.npy
    expect_same "n$id.npy" n.npy
done
expect_sql "SELECT DISTINCT kernel_name FROM attempt WHERE job <> 4" eval
"$NPY" show z.npy > .stdout
expect_stdout 'f32[3000] 0 0'
cli batch jobs.jsonl --resume --verify
expect_status 2
cli batch jobs.jsonl --verify
expect_stdout '8 outputs of 5 jobs that are done: 8 unchanged'

case_name="an expression of several kernels, whose result is a small float"
cli eval 'd = x - mean(x)' --in x=x.npy --out d=d1.safetensors:w:bf16
echo '{"id":"d","eval":"d = x - mean(x)","in":{"x":"x.npy"},"out":{"d":"d2.safetensors:w:bf16"}}' > jobs.jsonl
cli batch jobs.jsonl --state several
expect_status 0
expect_same d2.safetensors d1.safetensors

case_name="what is wrong with an expression is told of its job"
"$NPY" make short.npy 'f32[7]' ramp 0 1
{
    echo '{"id":"syntax","eval":"y = x +","in":{"x":"x.npy"},"out":{"y":"a.npy"}}'
    echo '{"id":"name","eval":"y = q","in":{"x":"x.npy"},"out":{"y":"b.npy"}}'
    echo '{"id":"shape","eval":"y = x + s","in":{"x":"x.npy","s":"short.npy"},"out":{"y":"c.npy"}}'
    echo '{"id":"other","eval":"y = x * 3","in":{"x":"x.npy"},"out":{"y":"e.npy"}}'
    echo '{"id":"good","eval":"y = x + 1","in":{"x":"x.npy"},"out":{"y":"d.npy"}}'
} > jobs.jsonl
cli batch jobs.jsonl --state wrong --json
expect_status 2
expect_stderr "jobs.jsonl:1: \"eval\": 'y = x +': column 8: "
expect_stderr "jobs.jsonl:2: \"eval\": 'y = q': column 5: there is no input 'q'"
expect_stderr '2 lines are bad'
cli batch jobs.jsonl --state wrong --json --keep-going
expect_status 1
expect_json '.done == 2 and .failed == 3 and ([.failures[].attempts] | add) == 0'
expect_json '.failures[] | select(.id == "shape") | .code == "INVALID_ARGUMENT" and
    (.message | startswith("'"'"'y = ")) and (.message | contains("bh_") | not)'
cli eval 'y = x + 1' --in x=x.npy --out y=d1.npy
expect_same d.npy d1.npy
cli eval 'y = x * 3' --in x=x.npy --out y=e1.npy # the same names, another template
expect_same e.npy e1.npy
# -- the deadline of pieces ------------------------------------------------------------------------
# 2048 pieces do not run within one deadline of 3 ms (times slowness), and do within as many.
case_name="a deadline is for a piece"
"$NPY" make large.npy 'f32[2097152]' ramp 0 1
echo '{"id":1,"eval":"z = 2*x","in":{"x":"large.npy"},"out":{"z":"pieces.npy"},"piece":"4K","deadline":"'$((3 * slowness))'ms","retries":0}' > jobs.jsonl
rm -rf jobs.jsonl.state
cli batch jobs.jsonl --streams 1
expect_status 0
cli eval 'z = 2*x' --in x=large.npy --out z=whole.npy
expect_same pieces.npy whole.npy
rm -rf jobs.jsonl.state pieces.npy whole.npy large.npy

finish
