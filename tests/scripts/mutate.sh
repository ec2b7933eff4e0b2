#!/usr/bin/env bash
# scripts/mutate, on a program of ten lines with a test that misses one thing. Usage: mutate.sh SOURCE_DIR
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
mkdir -p "$folder"/{base,scripts,tests/mutants}
cp "$1/scripts/mutate" "$folder/scripts"
cp "$1/tests/mutants/mutate" "$1/tests/mutants/propose" "$folder/tests/mutants"
cp "$1/CMakePresets.json" "$folder"
cd "$folder" || exit 1
echo 'base/ ^clamps$' > tests/mutants/covers
echo '/build*/' > .gitignore
cat > base/clamp.c << 'END'
int clamp(int x, int low, int high) {
    int result = x;
    if (x < low) {
        result = low;
    }
    if (x > high) {
        result = high;
    }
    return result;
}
END
cat > base/test.cpp << 'END'
extern "C" int clamp(int x, int low, int high);
int main() { return clamp(5, 1, 3) == 3 && clamp(2, 1, 3) == 2 && clamp(1, 1, 3) == 1 ? 0 : 1; }
END
cat > CMakeLists.txt << 'END'
cmake_minimum_required(VERSION 3.25)
project(clamp C CXX)
enable_testing()
add_executable(clamp base/clamp.c base/test.cpp)
add_test(NAME clamps COMMAND clamp)
add_test(NAME fails COMMAND false)
foreach(name bulkhead-worker bulkhead-worker-faulty bulkhead-warden bulkhead-cli bulkhead bulkhead_python)
    add_custom_target(${name})
endforeach()
END
git init -q && git add -A && git -c user.name=n -c user.email=e commit -qm first
mutate() { # STATUS ARGUMENT...
    ends "$1" "scripts/mutate ${*:2}" scripts/mutate "${@:2}"
}
says() {
    grep -qxF -- "$1" "$folder/said" || fail "nothing says: $1"
}

mutate 0 --changed
says 'nothing to try'
sed -i 's/    if (x < low) {/    if (x < low) { \/\/ changed/; s/    if (x > high) {/    if (high < x) {/' base/clamp.c
mutate 1 --changed
says 'SURVIVED base_clamp_c_3: base/clamp.c:3: if (x < low) { // changed -> if (x <= low) { // changed'
says 'SURVIVED base_clamp_c_6: base/clamp.c:6: if (high < x) { -> if (high <= x) {'
says '0 caught, 2 survived, 0 useless, 0 without a test, 0 not tried'
cmp base/clamp.c build-mutate/src/base/clamp.c || fail 'the copy keeps a mistake'
cat > table << 'END'
name forgets_high
tests ^(clamps|fails)$
file base/clamp.c
in clamp
drop result = high;

name forgets_low
tests ^clamps$
file base/clamp.c
line 4
drop result = low;

name nonsense
tests ^clamps$
file base/clamp.c
in clamp
expression return result
becomes return
 nothing

name failing
tests ^fails$
file base/clamp.c
line 4
drop result = low;

name gone
tests ^clamps$
file base/clamp.c
in clamp
drop result = middle;
END
mutate 1 table
says 'left out: fails fails, or takes over 60 s, without any mistake'
says 'caught forgets_high: clamps'
says 'SURVIVED forgets_low: base/clamp.c:4: result = low; -> ;'
says 'useless nonsense: base/clamp.c:9: return result; -> return'
says 'useless gone: clamp has 0 times and not once: drop result = middle; '
says 'untested failing: base/clamp.c:4: result = low; -> ;'
says '1 caught, 1 survived, 1 useless, 1 without a test, 0 not tried'
mutate 0 table forgets_high
says '1 caught, 0 survived, 0 useless, 0 without a test, 0 not tried'
mutate 0 --list --random 3 7
cp "$folder/said" "$folder/first"
mutate 0 --list --random 3 7
cmp "$folder/said" "$folder/first" || fail 'a seed gives two tables'
mutate 2 --random none
mutate 2 nowhere
mutate 2 --changed nothing
[ $failed -eq 0 ]
