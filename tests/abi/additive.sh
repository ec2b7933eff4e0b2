#!/usr/bin/env bash
# Is what the headers say now what was frozen, and more behind it at most?
# Usage: additive.sh SOURCE_DIR FROZEN_PROGRAM NOW_PROGRAM
set -euo pipefail
source=$1 frozen=$2 now=$3
here=$source/tests/abi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$frozen" > "$work/frozen"
"$now" > "$work/now"
compare() { awk -f "$here/additive.awk" "$source/supervisor/context/layout.def" "$here/fixed.txt" "$1" "$2"; }
compare "$work/frozen" "$work/now"

# And does it notice what it is there for? Each line: an edit of today's table, and what is said.
while IFS='|' read -r edit said; do
    [ -n "$edit" ] || continue
    sed -E "$edit" "$work/now" > "$work/edited"
    cmp -s "$work/edited" "$work/now" && { echo "additive.sh: no change: $edit" >&2; exit 1; }
    if compare "$work/now" "$work/edited" > "$work/output"; then
        echo "additive.sh: unnoticed: $edit" >&2; exit 1
    fi
    grep -qF "$said" "$work/output" ||
        { echo "additive.sh: $edit: not '$said' but:" >&2; cat "$work/output" >&2; exit 1; }
done <<'CHANGES'
s/^(field bh_binding offset) 16/\1 20/|bh_binding.offset was 16
s/^(field bh_verdict status 0 4) bh_status/\1 uint32_t/|bh_verdict.status was
/^field bh_check advice/d|bh_check.advice was
/^struct bh_check /d|bh_check is gone
s/^(struct bh_detail) 568/\1 576/|bh_detail must not grow
s/^(struct bh_verdict [0-9]+) 8/\1 4/|bh_verdict has not the alignment 8
s/^(struct bh_verdict) [0-9]+/\1 8/|bh_verdict is smaller
s/^(field bh_submit_info alone .*)/\1\nfield bh_submit_info more 44 4 int/|bh_submit_info.more is new and lies at 44
s/^(field bh_stream_options nice .*)/\1\nfield bh_stream_options more 96 4 int/|needs the row BHI_LAYOUT(bh_stream_options, more)
s/^(value BH_ACCESS_WRITE) 2/\1 4/|BH_ACCESS_WRITE was 2
s/^(struct bh_judgement .*)/\1\nfield bh_judgement more 44 4 int/|bh_judgement.more is new
s/^(function bh_status bh_judge_run_sized\()/\1int /|gone or changed: function bh_status bh_judge_run_sized
s/^(function bh_status bh_submit_sized\()/\1int /|gone or changed: function bh_status bh_submit_sized
s/^(struct bh_check .*)/\1\nstruct bh_new 8 8/|bh_new: say in
CHANGES
echo "additive"
