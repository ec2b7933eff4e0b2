# Ends what a test has in the background, such as a submitter, however the test ends: bash runs the EXIT
# trap also when a signal ends it. Source it after `folder` is set.
# shellcheck shell=bash disable=SC2013,SC2154 # words of a line; of who sources it

descendants() { # PID
    local child
    for child in $(cat "/proc/$1/task/$1/children" 2> /dev/null); do
        descendants "$child"
        echo "$child"
    done
}

descendants_stop() {
    local pids
    pids=$(descendants $$)
    # shellcheck disable=SC2086 # several pids; what has listed them is gone
    [ -z "$pids" ] || kill -KILL $pids 2> /dev/null
    wait 2> /dev/null
}
trap 'descendants_stop; rm -rf "$folder"' EXIT
