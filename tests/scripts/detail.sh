#!/usr/bin/env bash
# Every public function that returns a bh_status has a bh_detail, but those whose codes mean one thing
# each: docs/decisions/0050-detail.md lists them. Usage: detail.sh SOURCE_DIR
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
page=$1/docs/decisions/0050-detail.md

# NAME has|lacks, of each function of the headers in a folder.
list() { # FOLDER
    cat "$1"/*.h | perl -0ne '
        s{/\*.*?\*/}{}gs;
        while (/\bBH_(?:API|INLINE)\s+(?:BH_MUST_USE\s+)?bh_status\s+(\w+)\(([^;{]*?)\)\s*[;{]/gs) {
            print "$1 ", ($2 =~ /\bbh_detail \*/ ? "has" : "lacks"), "\n";
        }' | sort -u
}
# Those that lack one and are not on the page.
missing() { # FOLDER
    list "$1" | awk '$2 == "lacks" { print $1 }' | while read -r name; do
        grep -q "^|[^|]*\`$name\`" "$page" || echo "$name"
    done
}

headers=$1/include/bulkhead
count=$(list "$headers" | wc -l)
[ "$count" -gt 50 ] || { echo "only $count functions were found" && exit 1; }
found=$(missing "$headers")
[ -z "$found" ] || { echo "no bh_detail, and not in $page: $found" && exit 1; }
# The check sees one that is new.
printf 'BH_API BH_MUST_USE bh_status bh_buffer_new(bh_buffer *buffer);\n' > "$folder/new.h"
[ "$(missing "$folder")" = bh_buffer_new ] || { echo "a new function without one is not seen" && exit 1; }
