# Ends what a test has in the background, such as a submitter, however the test ends: bash runs the EXIT
# trap also when a signal ends it. Source it after `folder` is set.
# shellcheck shell=bash disable=SC2154 # of who sources it

# Adds the processes that come from PID to `pids`. They are stopped first, so that none starts another.
descendants() { # PID
    local -a children
    local child list state
    for list in "/proc/$1/task/"*/children; do
        children=()
        read -ra children 2> /dev/null < "$list"
        for child in "${children[@]}"; do
            kill -STOP "$child" 2> /dev/null
            until ! read -r state 2> /dev/null < "/proc/$child/stat" || [[ ${state##*) } == [TtZX]* ]]; do :; done
            pids+=("$child")
            descendants "$child"
        done
    done
}

descendants_stop() {
    local -a pids=()
    descendants $$
    [ "${#pids[@]}" -eq 0 ] || kill -KILL "${pids[@]}" 2> /dev/null
    wait 2> /dev/null
}
trap 'descendants_stop; rm -rf "$folder"' EXIT

until_true() { # COMMAND…: within 60 s
    local end=$((SECONDS + 60 * slowness))
    until "$@"; do
        if [ "$SECONDS" -gt "$end" ]; then
            fail "this was never true: $*"
            return 1
        fi
        sleep 0.1
    done
}
