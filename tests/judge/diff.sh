#!/usr/bin/env bash
# bulkhead judge --diff: what has changed between two runs, and each mistake in their files.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"

# run FILE CANDIDATE...: a run; a candidate is a name, a verdict and, by size, ratio/low/high.
run() {
    local out=$1 one
    shift
    for one; do
        # shellcheck disable=SC2086 # its parts
        set -- $one
        jq -n --arg file "$1" --arg verdict "$2" '[$ARGS.positional[] | split("/") | map(fromjson)] as $times
            | {file: $file, verdict: $verdict, message: "", timing: (if $times == [] then null else
                [$times[] | {size: {n: .[0]}, ratio: .[1], low: .[2], high: .[3]}] end)}' --args "${@:3}"
    done | jq -s '{task: "saxpy", candidates: .}' > "$out"
}
# changes JQ: what --diff of before.json and after.json says.
changes() {
    cli judge --diff before.json after.json --json
    expect_json "$1"
}

case_name="each change"
run before.json 'worse CORRECT' 'gone CORRECT' 'better WRONG' 'other WRONG' 'slower CORRECT 1/1.0/0.9/1.1' \
    'faster CORRECT 1/1.0/0.9/1.1' 'meets CORRECT 1/1.0/0.9/1.1' 'untimed CORRECT' 'wrong WRONG'
run after.json 'new WRONG' 'worse WRONG' 'better CORRECT' 'other DEADLINE' 'slower CORRECT 1/1.3/1.2/1.4' \
    'faster CORRECT 1/0.8/0.7/0.89' 'meets CORRECT 1/1.3/1.1/1.5' 'untimed CORRECT 1/1.3/1.2/1.4' 'wrong WRONG'
changes '.same == 3 and [.changes[] | .change] == [.changes[] | .file] and (.changes | length) == 7
    and .changes[0].before == null and .changes[-1].after == null and .changes[-1].file == "gone"'
expect_status 1

case_name="the second of a file that is given twice is compared with the second"
run before.json 'a CORRECT' 'a WRONG'
run after.json 'a CORRECT' 'a WRONG' 'a WRONG'
changes '.same == 2 and [.changes[].change] == ["new"]'

case_name="a ratio is the geometric mean of its sizes"
run before.json
run after.json 'a CORRECT 1/0.5/0.4/0.6 2/2/1.6/2.4 3/null/null/null'
changes '.changes[0] | (.ratio_after - 1 | fabs) < 1e-9 and .ratio_before == null'

case_name="only sizes of which both know the ratio are compared"
run before.json 'a CORRECT 1/0.5/0.4/0.6 2/null/null/null'
run after.json 'a CORRECT 1/0.5/0.4/0.6 2/3/2.9/3.1'
changes '.same == 1'
mv before.json swap.json && mv after.json before.json && mv swap.json after.json
changes '.same == 1'

# unlike CONDITION BEFORE AFTER: times that differ in it are not compared, and said to be so.
unlike() {
    case_name="times that differ: $*"
    run .before 'a CORRECT 1/1/1/1'
    run .after 'a CORRECT 1/2/2/2'
    jq "$2" .before > before.json
    jq "$3" .after > after.json
    changes ".same == 1 and [.not_compared[].condition] == [\"$1\"]"
}
unlike processors '.candidates[0].timing[0].one_processor = true' '.candidates[0].timing[0].one_processor = false'
unlike processors . '.candidates[0].timing[0].one_processor = true' # an earlier version knew all of them alone
unlike caches '.candidates[0].timing[0].cold = true' .
unlike clock '.candidates[0].timing[0].device = false' '.candidates[0].timing[0].device = true'
unlike baseline . '.candidates[0].timing[0].baseline = true'
beside() { echo ".baseline = \"$1\" | .candidates[0].timing[0].baseline = true"; }
unlike baseline "$(beside one.comp)" "$(beside two.comp)"
expect_json '.not_compared[0] | .before == "one.comp" and .after == "two.comp"'
cli judge --diff before.json after.json
expect_stdout 'before.json has them beside one.comp, after.json beside two.comp'
case_name="times beside the same baseline"
jq "$(beside one.comp)" .after > after.json
changes '.same == 0 and .changes[0].change == "slower" and .not_compared == []'
unlike device '.device = "lavapipe:0"' '.device = "nvidia:0" | .candidates[0].timing[0].cold = true' # which says all

# mistake COMPLAINT TEXT: a file that is refused.
mistake() {
    printf '%b' "$2" > run.json
    refuses "run.json:$1" judge --diff run.json run.json
}
one='"file":"a","verdict":"CORRECT","message":""'
mistake '1: not JSON: ' ''
mistake '1: it must be an object, as bulkhead judge --json prints it' '[]'
mistake '1: "error": the run failed: no candidate was judged' '{"error":{}}'
mistake '2: "task": it must be a string' '{\n"task":3}'
mistake '1: there is no "task"' '{}'
mistake '1: there is no "candidates"' '{"task":""}'
mistake '2: "device": it must be a string' '{"task":"",\n"device":3}'
mistake '2: "candidates": it must be an array' '{"task":"",\n"candidates":{}}'
mistake '2: "candidates" [0]: it must be an object' '{"task":"","candidates":[\n3]}'
mistake '2: "candidates" [0]: there is no "file"' '{"task":"","candidates":[\n{}]}'
mistake '3: "candidates" [1] "verdict": it is empty' "{\"task\":\"\",\"candidates\":[{$one},\n\n{\"file\":\"b\",\"verdict\":\"\"}]}"
mistake '2: "candidates" [0] "message": it must be a string' '{"task":"","candidates":[{"file":"a","verdict":"WRONG",\n"message":null}]}'
mistake '2: "candidates" [0] "timing": it must be an array, or null' "{\"task\":\"\",\"candidates\":[{$one,\"timing\":\n{}}]}"
mistake '2: "candidates" [0] "timing" [0]: it must be an object' "{\"task\":\"\",\"candidates\":[{$one,\"timing\":[\n7]}]}"
mistake '2: "candidates" [0] "timing" [0] "low": it must be a number above 0, or null' \
    "{\"task\":\"\",\"candidates\":[{$one,\"timing\":[{\"ratio\":1,\"low\":\n-1,\"high\":1}]}]}"
mistake '1: "candidates" [0] "timing" [0]: there is no "high"' "{\"task\":\"\",\"candidates\":[{$one,\"timing\":[{\"ratio\":1,\n\"low\":1}]}]}"
finish
