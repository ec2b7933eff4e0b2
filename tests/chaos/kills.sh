#!/usr/bin/env bash
# Some KILLS workers are killed in one run: nothing is lost, and the process is what it was.
# SANITIZED is empty but in builds with a sanitizer.
# shellcheck shell=bash source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
LIMIT=7000
case_name="$KILLS kills"
cli chaos --seed 3 --faults kill --count "$KILLS" --rate 200 --json
expect_status 0
expect_json '.verdict == "valid" and .lost == 0'
# One that misses does not count, and where too many do the run ends all the same: where other tests
# run beside it a worker may take long to come back. By night nothing does.
if [ "$KILLS" -ge 10000 ]; then
    expect_json ".faults.kill == $KILLS"
else
    expect_json "(.faults.kill + .missed) >= $KILLS and .faults.kill * 2 >= $KILLS"
fi
# A spare worker that is starting has so many.
expect_json '.leaks.descriptors_last <= .leaks.descriptors_first + 16'
# A sanitizer keeps what was freed: there the checker's own bound has to do.
[ "$SANITIZED" ] || expect_json '.leaks.rss_last <= .leaks.rss_first + 16777216'
jq -c '{operations, ready, poisoned, injected, missed, elapsed_ms, recovery: (.recovery | del(.histogram)), leaks}' .stdout
finish
