#!/usr/bin/env bash
# scripts/nightly, with two tests, a chaos and a scripts/mutate that end at once. Usage: nightly.sh SOURCE_DIR
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
mkdir -p "$folder"/{scripts,build/bin}
cp "$1/scripts/nightly" "$folder/scripts"
cd "$folder" || exit 1
git init -q && git -c user.name=n -c user.email=e commit -q --allow-empty -m first
cat > build/CTestTestfile.cmake << END
if(CTEST_CONFIGURATION_TYPE STREQUAL "Nightly")
    foreach(name good bad)
        add_test(nightly_\${name} "$folder/build/\${name}")
        set_tests_properties(nightly_\${name} PROPERTIES LABELS nightly)
    endforeach()
endif()
END
program() { # PATH; its text is standard input
    { echo '#!/bin/sh' && cat; } > "$1"
    chmod +x "$1"
}
program build/good <<< 'exit 0'
program build/bad <<< 'echo it is broken; exit 1'
program scripts/mutate <<< 'echo "SURVIVED x"; echo "97 caught, 3 survived, 0 useless"; exit 1'
# Ten hours, and as many faults as its file says.
program build/bin/bulkhead << 'END'
echo "$*" >> ../chaos_calls
echo '{"elapsed_ms": 36000000, "operations": 5, "injected": 400000}'
exit "$(cat ../chaos_status)"
END
echo 0 > chaos_status
nightly() { # STATUS ARGUMENT...
    ends "$1" "scripts/nightly ${*:2}" scripts/nightly "${@:2}"
}
says() {
    grep -qE -- "$1" "$folder/said" || fail "nothing says: $1"
}

nightly 2 nightly_ugly
says 'there is no part nightly_ugly: nightly_good, nightly_bad, chaos, mutate'
BUILD=$folder/none nightly 2
says 'nothing is built there'

nightly 1
says '^it is broken$'
says '^failed nightly_bad'
says '^SURVIVED x$'
says "^passed mutate.*'caught': 97, 'survived': 3"
says '^nightly_good: passed 1, failed 0,'
says '^chaos: passed 3, .*hours 30, faults 1.2e\+06, operations 15$'
says '^chaos that was valid: 30.00 of 24 hours, 1200000 of 1000000 faults$'
[ "$(grep -c -- '--faults kill --rate 100' chaos_calls)" -eq 1 ] || fail 'every second round has kills alone'
# The totals are kept, and chaos has had enough.
nightly 0 chaos nightly_good
says '^nightly_good: passed 2, failed 0,'
says '^chaos: passed 3,'
# What has waited longest comes first.
nightly 1
[ "$(grep -oE '^(passed|failed) [a-z_]+' "$folder/said" | head -n 1)" = 'failed nightly_bad' ] ||
    fail 'the part that ended last comes before the others'
# What is not valid counts for nothing, and is a failure; unknown is none.
rm build-nightly/totals
echo 1 > chaos_status
nightly 1 chaos
says '^failed chaos'
echo 4 > chaos_status
nightly 0 chaos
says '^unknown chaos'
says '^chaos that was valid: 0.00 of 24 hours, 0 of 1000000 faults$'
nightly 0 --totals
says '^chaos: passed 0, failed 1, .*unknown 1'
[ $failed -eq 0 ]
