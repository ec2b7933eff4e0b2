#!/usr/bin/env bash
# scripts/test --under-load: what it refuses; that the tests have loops beside them and as many times
# as long; that a loop which ends too soon is seen; that none outlives it, also where it is killed.
# What it calls is a stub.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
times=${BULKHEAD_TEST_SLOWNESS:-1}
unset BULKHEAD_TEST_SLOWNESS # this test may itself be one of those beside loops
export times

mkdir -p "$folder/scripts" "$folder/bin" "$folder/build-tsan/tests"
cp "$1/scripts/test" "$1/scripts/even-load" "$folder/scripts/"

cat > "$folder/bin/cmake" << 'EOF'
#!/bin/sh
echo 'set_tests_properties(a PROPERTIES  TIMEOUT "240" COST "240")' > build-tsan/tests/CTestTestfile.cmake
EOF
# The loops are those below the script that were called so.
cat > "$folder/bin/ctest" << 'EOF'
#!/usr/bin/env bash
count=0
for pid in $(cat "/proc/$SCRIPT/task/$SCRIPT/children"); do
    if { tr '\0' ' ' < "/proc/$pid/cmdline"; } 2> /dev/null | grep -q '^bash -c while :; do :; done under-load $'; then
        echo "$pid" >> loops
        count=$((count + 1))
    fi
done
echo "$count loops, slowness ${BULKHEAD_TEST_SLOWNESS-none}, $*" >> seen
cat build-tsan/tests/CTestTestfile.cmake >> seen
case $ENDS in
killed) kill -KILL "$SCRIPT" ;;
ended) kill -TERM "$SCRIPT" ;;
loop)
    read -r loop < loops
    kill -KILL "$loop"
    while grep -q '^State:[[:space:]]*R' "/proc/$loop/status" 2> /dev/null; do sleep 0.01; done
    ;;
esac
while [ $# -gt 0 ]; do
    [ "$1" != --output-junit ] || junit=$2
    shift
done
echo '<testsuite name="x" tests="3" failures="0" disabled="0" skipped="0">' > "$junit"
if [ "$count" -gt 0 ]; then
    for ((i = 0; i < 1200 * times; i++)); do # until the load has been recorded
        [ ! -s "$(dirname "$junit")/load" ] || break
        sleep 0.1
    done
fi
EOF
chmod +x "$folder/bin/cmake" "$folder/bin/ctest"

# run ENDS ARGUMENT...
run() {
    ends=$1
    shift
    rm -f "$folder/loops" "$folder/seen"
    : > "$folder/loops"
    : > "$folder/seen"
    # Each process that it starts is told its number.
    PATH=$folder/bin:$PATH ENDS=$ends bash -c 'export SCRIPT=$$; exec "$@"' - \
        "$folder/scripts/test" --no-install "$@" > "$folder/said" 2>&1
    status=$?
}

sees() { grep -qF -- "$1" "$folder/seen" || fail "the tests do not see: $1; they saw $(cat "$folder/seen")"; }

no_loop_is_left() {
    local pid
    for ((i = 0; i < 600 * times; i++)); do
        local left=0
        while read -r pid; do
            case $(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$pid/status" 2> /dev/null) in
            '' | Z | X) ;;
            *) left=1 ;;
            esac
        done < "$folder/loops"
        [ $left -eq 1 ] || return 0
        sleep 0.1
    done
    fail "a loop is left behind"
}

for wrong in 0 1 51 100 x -1 ''; do
    run - "--under-load=$wrong" tsan
    if [ $status -ne 2 ] || ! grep -q 'from 2 to 50' "$folder/said"; then
        fail "--under-load=$wrong: status $status"
    fi
done
run - --under-load distro
[ $status -eq 2 ] || fail "with distro: status $status"

run well tsan
[ $status -eq 0 ] || fail "without load: status $status"
now=$(sed -n 's/^0 loops, slowness \([0-9]*\),.*/\1/p' "$folder/seen")
[ "${now:-0}" -ge 2 ] && [ "$now" -le 20 ] || fail "the slowness is measured as '$now'"
sees "--timeout $((60 * now)) "
sees "TIMEOUT \"$((240 * now))\""

# The same, set by hand: the limits that ctest has of tests, too.
BULKHEAD_TEST_SLOWNESS=3 run well tsan
[ $status -eq 0 ] || fail "slow: status $status"
sees "0 loops, slowness 3"
sees "--timeout 180 "
sees 'TIMEOUT "720" COST "240"'
BULKHEAD_TEST_SLOWNESS=0 run well tsan
[ $status -eq 2 ] || fail "a slowness of 0: status $status"

run well --under-load=2 tsan
[ $status -eq 0 ] || fail "under load: status $status"
grep -q '7 passed, 0 failed' "$folder/said" || fail "the tests are not counted"
grep -q "^$((3 * $(nproc))) tests at once; processes that had something to do: [1-9]" "$folder/said" ||
    fail "the load is not told"
sees "$((2 * $(nproc))) loops, slowness 4"
sees "--timeout 240 "
sees "--parallel $((3 * $(nproc))) "
sees 'TIMEOUT "960" COST "240"'
no_loop_is_left

run loop --under-load=2 tsan
[ $status -eq 1 ] || fail "a loop ended: status $status"
grep -q 'FAILED: tsan: each loop was there until' "$folder/said" || fail "nothing says that a loop ended"
no_loop_is_left

for how in ended killed; do
    run $how --under-load=2 tsan
    [ $status -ne 0 ] || fail "$how: status $status"
    sees "$((2 * $(nproc))) loops"
    no_loop_is_left
done
[ $failed -eq 0 ] && echo "passed"
exit $((failed > 0))
