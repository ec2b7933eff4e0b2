# Shared by the tests of scripts/: source it first.
#
# $folder is an empty folder, which is removed at the end. `fail WORDS` counts a failure and prints
# $folder/said, where a test keeps what the script under test has printed; a test ends with
# [ $failed -eq 0 ].
# shellcheck shell=bash
set -u

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
: > "$folder/said"

fail() {
    failed=$((failed + 1))
    echo "FAILED: $*"
    sed 's/^/  /' "$folder/said"
}

# Runs a command, whose exit status has to be STATUS; its output goes to $folder/said.
ends() { # STATUS NAME COMMAND...
    local status=0
    "${@:3}" > "$folder/said" 2>&1 || status=$?
    [ $status -eq "$1" ] || fail "$2: exit status $status, must be $1"
}
