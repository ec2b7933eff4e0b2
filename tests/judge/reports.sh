#!/usr/bin/env bash
# bulkhead judge: pages, and what has changed between two runs.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/judge/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

task task.json '.bytes = "12 * n" | .operations = "2 * n"'
kernel right.comp <<< 'if (i < n) z[i] = a * x[i] + y[i];'
kernel less.comp <<< 'if (i < n) z[i] = a * x[i] + 0.999 * y[i];'
kernel broken.comp <<< 'z[i] = <script>;'
cp right.comp '<b>&"right".comp'

case_name="a page"
LIMIT=120 cli judge task.json right.comp less.comp broken.comp '<b>&"right".comp' --html page.html --json
expect_status 1
expect_empty .stderr
cp .stdout before.json
expect_json '.correct == 2'
if xmllint --noout page.html; then passed=$((passed + 1)); else fail "the page is not well-formed"; fi
expect_page() {
    if grep -qF -- "$1" page.html; then passed=$((passed + 1)); else fail "the page lacks: $1"; fi
}
expect_page 'Judge saxpy'
expect_page '&lt;b&gt;&amp;&quot;right&quot;.comp'
expect_page 'broken.comp:9: error'
expect_page 'COMPILE_FAILED'
expect_page 'expected'
if grep -q '<script' page.html; then fail "a script in the page"; else passed=$((passed + 1)); fi

refuses '--html task.json: the file exists and is not a page' judge task.json right.comp --html task.json
refuses '--html nowhere/page.html: ' judge task.json right.comp --html nowhere/page.html
refuses '--html -: a page needs a file' judge task.json right.comp --html -
refuses '--rank speed: it must be time or error' judge task.json right.comp --html new.html --rank speed
refuses '--rank needs --html' judge task.json right.comp --rank error

case_name="nothing has changed"
cli judge --diff before.json before.json
expect_status 0
expect_stdout '4 candidates: 4 same'

case_name="what has changed"
kernel less.comp <<< 'if (i < n) z[i] = a * x[i] + y[i];'
kernel right.comp <<< 'if (i < n) z[i] = y[i] + x[i] * a * 1.1;'
LIMIT=120 cli judge task.json less.comp right.comp broken.comp --json
cp .stdout after.json
cli judge --diff before.json after.json
expect_status 1
expect_stdout 'less.comp         better  WRONG    CORRECT  -'
expect_stdout 'right.comp        worse   CORRECT  WRONG    Z[0] is '
expect_stdout '<b>&"right".comp  gone    CORRECT  -        -'
expect_stdout '4 candidates: 1 same, 1 worse, 1 gone, 1 better'
cli judge --diff before.json after.json --json
expect_status 1
expect_json '.same == 1 and [.changes[] | [.file, .change, .before, .after]] == [["less.comp", "better", "WRONG", "CORRECT"],
    ["right.comp", "worse", "CORRECT", "WRONG"], ["<b>&\"right\".comp", "gone", "CORRECT", null]]'
cli judge --diff after.json before.json --json
expect_json '[.changes[].change] == ["better", "worse", "new"]'

case_name="times that were measured in other ways"
expect_json '.not_compared == []'
# timed FILE JQ: before.json with times of two candidates.
timed() {
    jq '.candidates |= map(.timing = if .verdict == "CORRECT" then [{size: {n: 1}, ratio: 1, low: 0.9, high: 1.1,
        one_processor: true, cold: true, device: true}] else null end) | '"$2" before.json > "$1"
}
timed one.json .
timed all.json '.candidates[].timing[]? += {one_processor: false, ratio: 2, low: 1.9, high: 2.1}'
timed other.json '.device = "other:0\u001b[31m" | .candidates[0].timing[0] += {cold: false, ratio: 2, low: 1.9, high: 2.1}'
device=$(jq -r .device before.json)
cli judge --diff one.json all.json
expect_status 0
expect_stdout '4 candidates: 4 same'
expect_stdout 'times of 2 candidates are not compared: one.json has them on one processor, all.json not on one processor (--all-processors, or another device)'
cli judge --diff all.json one.json --json
expect_status 0
expect_json '.same == 4 and .changes == [] and .not_compared == [{condition: "processors", before: "not on one processor (--all-processors, or another device)", after: "on one processor", candidates: 2}]'
cli judge --diff one.json other.json
expect_status 0
expect_stdout "times of 2 candidates are not compared: one.json has them on $device, other.json on other:0?[31m"
timed other.json '.candidates[0].timing[0] += {cold: false, ratio: 2, low: 1.9, high: 2.1} | .candidates[3].timing[0] += {ratio: 2, low: 1.9, high: 2.1}'
cli judge --diff one.json other.json
expect_status 1
expect_stdout '4 candidates: 3 same, 1 slower'
expect_stdout 'times of 1 candidate are not compared: one.json has them with cold caches, other.json with warm caches'

jq '.candidates[1].verdict = 7' before.json > bad.json
line=$(grep -n '"verdict": 7' bad.json | cut -d: -f1)
refuses "bad.json:$line: \"candidates\" [1] \"verdict\": it must be a string" judge --diff before.json bad.json
refuses 'nowhere.json: No such file or directory' judge --diff nowhere.json before.json
refuses '--diff compares two files and runs nothing: it excludes --seed' judge --diff before.json after.json --seed 1
refuses '--diff compares two files, what --json' judge --diff before.json after.json before.json
jq '.task = "other"' before.json > other.json
refuses "before.json is of the task 'saxpy', other.json of 'other'" judge --diff before.json other.json
case_name="a run that failed"
cli judge task.json right.comp --device nowhere --json
cp .stdout failed.json
refuses 'failed.json:1: "error": the run failed' judge --diff failed.json before.json
finish
