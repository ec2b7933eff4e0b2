#!/usr/bin/env bash
# bench/browser where no Chromium works: it says what is missing, ends, and leaves no process.
# Usage: browser.sh SOURCE_DIR
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
bench=$1/bench/browser
python=$(python3 -c 'import sys; print(sys.executable)')
mkdir "$folder/fakes" "$folder/tmp"
echo '{}' > "$folder/manifest.json"
browser() { # STATUS NAME ARGUMENT...
    ends "$1" "$2" env PATH="$folder/fakes" TMPDIR="$folder/tmp" "$python" "$bench" --driver "$folder/manifest.json" \
        --only speed "${@:3}"
}
says() {
    grep -q -- "$1" "$folder/said" || fail "nothing says: $1"
}
# The process that the last chromium started has ended, or nobody has reaped it yet.
child_has_ended() { # NAME
    local child state
    child=$(cat "$folder/child")
    [ -n "$child" ] || { fail "$1: it did not run" && return; }
    for _ in $(seq $((100 * ${BULKHEAD_TEST_SLOWNESS:-1}))); do
        state=$(sed 's/.*) //;s/ .*//' "/proc/$child/stat" 2> /dev/null)
        [ -n "$state" ] && [ "$state" != Z ] || return
        sleep 0.05
    done
    kill -9 "$child"
    fail "$1: its child $child lives"
}
chromium() { # the script's text from standard input
    : > "$folder/child"
    { printf '#!%s\n' "$(type -P bash)" && sed "s|FOLDER|$folder|;s|^sleep|$(type -P sleep)|"; } \
        > "$folder/fakes/chromium"
    chmod +x "$folder/fakes/chromium"
}

browser 3 "no chromium"
says 'apt-get install chromium'

# One that hangs, is deaf to SIGTERM, and has a child in a process group of its own.
chromium << 'END'
trap '' TERM
set -m
sleep 600 &
echo $! > FOLDER/child
sleep 600
END
browser 1 "a chromium that hangs" --limit $((2 * ${BULKHEAD_TEST_SLOWNESS:-1}))
says 'speed.html reported nothing within .* it was killed'
child_has_ended "a chromium that hangs"

# One that ends: it is not waited for until the limit, and what it leaves is killed.
chromium << 'END'
sleep 600 &
echo $! > FOLDER/child
exit 7
END
browser 1 "a chromium that ends" --limit 600
says 'before Chromium ended (status 7)'
child_has_ended "a chromium that ends"
[ -z "$(ls "$folder/tmp")" ] || fail "a profile is left in $folder/tmp"
[ $failed -eq 0 ]
