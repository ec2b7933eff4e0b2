#!/usr/bin/env bash
# A host's own history (<bulkhead/history.h>): each bug of bug_host.c is found in it by --check, and nothing is
# found where it has none.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"

check() { # BUG STATUS FILTER WHAT
    case_name="$4"
    "$BUG_HOST" history.jsonl "$1" > .stdout 2> .stderr
    status=$?
    [ "$status" = 0 ] || { fail "the host itself fails" && return; }
    cli chaos --check history.jsonl --json
    expect_status "$2"
    expect_json "$3"
}

check 0 0 '.verdict == "valid" and .power.compared >= 12 and .poisoned > 0 and .leaks.found == 0' "no bug"
check 1 1 '.anomalies.false_success > 0' "a result is used before its event was waited for"
check 2 1 '.anomalies.false_success > 0' "verdicts are ignored"
check 3 1 '.anomalies.changed > 0' "what may be done only once is tried again"
check 4 1 '.anomalies.leak > 0' "what a poisoned event had leaks"
check 5 1 '.anomalies.changed > 0' "a request is answered twice"
check 6 1 '.anomalies.lost > 0' "a request is forgotten"
check 7 1 '.anomalies.collateral == 1' "a good request is called a failure"
check 8 1 '.anomalies.false_success > 0' "a request gets another one's result"
check 9 1 '.anomalies.lost == 3' "a request is answered too late"
check 10 1 '.anomalies.lost > 0' "nobody looks at a verdict"
check 11 1 '.anomalies.false_success > 0' "ended is taken for good"

case_name="a history that was cut short proves nothing"
head -n -1 history.jsonl > torn.jsonl
cli chaos --check torn.jsonl --json
expect_json '.complete == false and .findings[0].anomaly != "lost"'
"$BUG_HOST" history.jsonl 0
head -n 20 history.jsonl > torn.jsonl
cli chaos --check torn.jsonl --json
expect_status 4
head -c -9 history.jsonl > torn.jsonl
cli chaos --check torn.jsonl
expect_status 2
expect_stderr "it is cut off"
cli chaos --replay history.jsonl
expect_status 2
finish
