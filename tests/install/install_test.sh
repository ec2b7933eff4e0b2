#!/usr/bin/env bash
# Installs into a temporary prefix, moves it away (nothing may remember where it was), then builds
# and runs a C program and a C++ program against it, found by find_package and by pkg-config.
# Usage: install_test.sh SOURCE_DIR BUILD_DIR CMAKE CC CXX GLSLC [PYTHON]
set -euo pipefail

source_dir=$1 build_dir=$2 cmake=$3 cc=$4 cxx=$5 glslc=$6 python=${7:-}
here=$source_dir/tests/install
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset BULKHEAD_WORKER

step() { echo "== $*"; }
die() { echo "install_test: $*" >&2; exit 1; }

if command -v doxygen > /dev/null; then
    step "the reference"
    "$source_dir/scripts/reference" "$build_dir/reference" "$build_dir"
fi

step "install"
"$cmake" --install "$build_dir" --prefix "$work/first" > "$work/install.log"
mv "$work/first" "$work/prefix"
prefix=$work/prefix
pc=$(find "$prefix" -name bulkhead.pc)
[ -n "$pc" ] || die "bulkhead.pc is not installed"
libdir=$(dirname "$(dirname "$pc")")
for wanted in "$prefix/include/bulkhead/bulkhead.h" "$prefix/include/bulkhead/status.h" \
    "$prefix/include/bulkhead/status_codes.h" "$prefix/include/bulkhead/reason_codes.h" \
    "$libdir/libbulkhead-judge.so" "$libdir/libbulkhead-judge.so.0.2" "$libdir/pkgconfig/bulkhead-judge.pc" \
    "$libdir/libbulkhead.so" "$libdir/libbulkhead.so.0.2" "$libdir/libbulkhead.a" "$libdir/cmake/bulkhead/bulkhead-config.cmake"; do
    [ -e "$wanted" ] || die "$wanted is not installed"
done
[ -x "$prefix/libexec/bulkhead/bulkhead-worker" ] || die "the worker is not installed"
[ -x "$prefix/libexec/bulkhead/bulkhead-warden" ] || die "the warden is not installed"
"$prefix/libexec/bulkhead/apparmor-profile" |
    grep -qF "\"$prefix/libexec/bulkhead/bulkhead-warden\" flags=(unconfined)" ||
    die "apparmor-profile does not name the warden beside it"
[ -x "$prefix/bin/bulkhead" ] || die "the program bulkhead is not installed"
ls "$prefix"/share/bulkhead/shaders/*.spv > /dev/null || die "no kernel is installed"
docs=$prefix/share/doc/bulkhead
for page in $(grep -ohE 'docs/[a-zA-Z0-9_/-]+\.md' "$prefix"/include/bulkhead/*.h "$docs/README.md"); do
    [ -s "$docs/$page" ] || die "$page is cited, but not installed"
done
for page in $(grep -ohE '\((docs|examples)/[^)#]+' "$docs/README.md" | tr -d '('); do
    [ -e "$docs/$page" ] || die "README.md links to $page, which is not installed"
done
for page in 'CLI:## bulkhead batch' 'protocol:## Control messages'; do
    grep -qxF "${page#*:}" "$docs/docs/${page%%:*}.md" || die "docs/${page%%:*}.md is not installed, or is not whole"
done
[ -s "$prefix/share/man/man1/bulkhead.1" ] || die "the manual page is not installed"
if [ -d "$build_dir/reference" ]; then
    for page in bh_submit bh_verdict BH_DEADLINE bulkhead_submit.h; do
        [ -s "$prefix/share/man/man3/$page.3" ] || die "the manual page $page(3) is not installed"
    done
    [ -s "$docs/reference/html/index.html" ] || die "the pages of the reference are not installed"
fi
for completion in bash-completion/completions/bulkhead zsh/site-functions/_bulkhead \
    fish/vendor_completions.d/bulkhead.fish; do
    [ -s "$prefix/share/$completion" ] || die "$completion is not installed"
done
if grep -rlI "$build_dir" "$libdir/cmake" "$pc" "$prefix/include"; then
    die "these files remember the build folder"
fi

step "the profile, on request"
[ ! -e "$work/root" ] || die "there is a root before"
DESTDIR=$work/root "$cmake" --install "$build_dir" --prefix /opt/x --component apparmor > "$work/apparmor.log"
(cd "$work/root" && find . -type f) > "$work/files"
[ "$(cat "$work/files")" = ./etc/apparmor.d/opt.x.libexec.bulkhead.bulkhead-warden ] ||
    die "the component apparmor has $(cat "$work/files")"
"$source_dir/containers/apparmor-profile" /opt/x/libexec/bulkhead/bulkhead-warden |
    cmp - "$work/root/etc/apparmor.d/opt.x.libexec.bulkhead.bulkhead-warden" || die "the profile is another"

step "only bh_* is exported"
others=$(nm -D --defined-only "$libdir/libbulkhead.so" | awk '$2 != "A" { print $3 }' |
    grep -v '^bh_' || true)
[ -z "$others" ] || die "libbulkhead.so also exports: $others"
declared=$(grep -hoE '\bbh_[a-z0-9_]+\(' "$prefix"/include/bulkhead/*.h | tr -d '(' | sort -u |
    while read -r name; do
        grep -qE "^BH_API .*\b$name\(" "$prefix"/include/bulkhead/*.h && echo "$name"
    done)
[ "$(wc -w <<< "$declared")" -ge 20 ] || die "the declarations were not understood: $declared"
grep -q '^bh_judge_run$' <<< "$declared" || die "judge.h was not understood: $declared"
nm -D --defined-only "$libdir/libbulkhead-judge.so" > "$work/judge"
if awk '$2 != "A" { print $3 }' "$work/judge" | grep -v '^bh_judge.*@@BULKHEAD_JUDGE_0\.2$'; then
    die "libbulkhead-judge.so also exports these"
fi
readelf -d "$libdir/libbulkhead-judge.so" > "$work/dynamic"
grep -q 'SONAME.*\[libbulkhead-judge\.so\.0\.2\]' "$work/dynamic" || die "no SONAME"
grep -q 'NEEDED.*\[libbulkhead\.so\.0\.2\]' "$work/dynamic" || die "libbulkhead-judge has libbulkhead in it"
nm -D --defined-only "$libdir/libbulkhead.so" > "$work/symbols"
for name in $declared; do
    case $name in bh_judge*)
        grep -qE " $name(@|$)" "$work/judge" || die "$name is declared, but not exported"
        continue ;;
    esac
    grep -qE " $name(@|$)" "$work/symbols" || die "$name is declared, but not exported"
done
readelf -d "$libdir/libbulkhead.so" > "$work/dynamic"
grep -q 'SONAME.*\[libbulkhead\.so\.0\.2\]' "$work/dynamic" || die "no SONAME"
if awk '$2 != "A"' "$work/symbols" | grep -v '@@BULKHEAD_0\.2$'; then
    die "these symbols have not the version BULKHEAD_0.2"
fi
if grep -E 'NEEDED.*(vulkan|SPIRV|shaderc)' "$work/dynamic"; then
    die "the supervisor must not link a driver or a parser"
fi

step "each header by itself, in C and C++"
for header in "$prefix"/include/bulkhead/*.h; do
    echo "#include <bulkhead/${header##*/}>" > "$work/one.c"
    for standard in c11 c17; do
        "$cc" -std=$standard -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" -fsyntax-only \
            "$work/one.c"
    done
    for standard in c++11 c++17 c++20; do
        "$cxx" -x c++ -std=$standard -Wall -Wextra -Wpedantic -Werror -I"$prefix/include" \
            -fsyntax-only "$work/one.c"
    done
done

"$glslc" --target-env=vulkan1.1 "$here/double.comp" -o "$work/double.spv"
run() {
    local output
    output=$("$@" "$work/double.spv") || die "$1 failed"
    [ "$output" = "the kernel has run" ] || die "$1 says: $output"
}
export LD_LIBRARY_PATH=$libdir

step "find_package"
"$cmake" -G Ninja -S "$here/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" > "$work/configure.log" 2>&1 ||
    { cat "$work/configure.log"; die "find_package failed"; }
"$cmake" --build "$work/consumer" > "$work/build.log" 2>&1 ||
    { cat "$work/build.log"; die "the consumer does not build"; }
run "$work/consumer/consumer-c"
run "$work/consumer/consumer-cpp"
# Through a link, as /lib is one: all else is where the files are.
mkdir "$work/link"
ln -s "$libdir" "$work/link/lib"
"$cmake" -G Ninja -S "$here/consumer" -B "$work/linked" -DCMAKE_PREFIX_PATH="$work/link" \
    -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" > "$work/linked.log" 2>&1 ||
    { cat "$work/linked.log"; die "find_package through a link failed"; }
# The archive does not know where it was installed; its host says where the worker is.
BULKHEAD_WORKER=$prefix/libexec/bulkhead/bulkhead-worker run "$work/consumer/consumer-c-static"

# Only the same minor version fits: find_package asks before the linker does.
for wanted in 0.1 0.3 1.0; do
    if "$cmake" -G Ninja -S "$here/consumer" -B "$work/other" -DCMAKE_PREFIX_PATH="$prefix" \
        -DWANTED=$wanted -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" \
        > "$work/other.log" 2>&1; then
        die "find_package(bulkhead $wanted) takes $("$prefix/bin/bulkhead" --version)"
    fi
    grep -q 'compatible with requested' "$work/other.log" || { cat "$work/other.log"; die "$wanted"; }
    rm -rf "$work/other"
done

step "pkg-config"
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
version=$(sed -n 's/^#define BH_VERSION_[A-Z]* //p' "$prefix/include/bulkhead/version.h" | paste -sd.)
[ "$(pkg-config --modversion bulkhead)" = "$version" ] || die "bulkhead.pc is not $version"
[ -x "$(pkg-config --variable=worker bulkhead)" ] || die "pkg-config names no worker"
[ -s "$(pkg-config --variable=kernels bulkhead)/saxpy.spv" ] || die "pkg-config names no kernels"
# Nothing of what the library itself needs, where it is not to be linked.
[ "$(pkg-config --cflags bulkhead | wc -w)" = 1 ] || die "--cflags: $(pkg-config --cflags bulkhead)"
[ "$(pkg-config --libs bulkhead | wc -w)" = 2 ] || die "--libs: $(pkg-config --libs bulkhead)"
# shellcheck disable=SC2046 # words are wanted
"$cc" -std=c17 -Wall -Wextra -Werror $(pkg-config --cflags bulkhead) "$here/host.c" \
    -o "$work/pkg-c" $(pkg-config --libs bulkhead)
# shellcheck disable=SC2046
"$cxx" -std=c++17 -Wall -Wextra -Werror $(pkg-config --cflags bulkhead) "$here/host.cpp" \
    -o "$work/pkg-cpp" $(pkg-config --libs bulkhead)
run "$work/pkg-c"
run "$work/pkg-cpp"
# shellcheck disable=SC2046
"$cc" -std=c17 $(pkg-config --cflags bulkhead) "$here/host.c" -o "$work/pkg-c-static" \
    $(pkg-config --static --libs bulkhead | sed 's/-lbulkhead/-l:libbulkhead.a/')
readelf -d "$work/pkg-c-static" | grep -q 'NEEDED.*libbulkhead' && die "not the archive was linked"
BULKHEAD_WORKER=$prefix/libexec/bulkhead/bulkhead-worker run "$work/pkg-c-static"

# shellcheck disable=SC2046
"$cc" -std=c17 -Wall -Wextra -Werror $(pkg-config --cflags bulkhead-judge) "$docs/examples/judge.c" \
    -o "$work/pkg-judge" $(pkg-config --libs bulkhead-judge)
expect_judge() {
    "$1" > "$work/said" 2>&1 || [ $? = 1 ] || { cat "$work/said"; die "$1 failed"; }
    grep -qx 'right: CORRECT' "$work/said" || { cat "$work/said"; die "$1 judges otherwise"; }
}
expect_judge "$work/pkg-judge"
expect_judge "$work/consumer/consumer-judge"

step "the installed program"
unset LD_LIBRARY_PATH
"$prefix/bin/bulkhead" --help > /dev/null || die "bulkhead --help failed"
"$prefix/bin/bulkhead" devices > "$work/devices" || die "bulkhead devices failed"
[ -s "$work/devices" ] || die "bulkhead devices shows nothing"

if [ -n "$python" ]; then
    step "the Python package"
    package=$(find "$prefix" -type d -path '*/python3*/*-packages/bulkhead')
    [ -n "$package" ] || die "the Python package is not installed"
    export PYTHONPATH=${package%/bulkhead} PYTHONDONTWRITEBYTECODE=1
    "$python" "$source_dir/tests/python/place.py" "$package" "$libdir" "$prefix/libexec/bulkhead" ||
        die "the program in Python failed"
    "$python" - "$prefix" << 'END' || die "python -m bulkhead is not the installed command"
import sys
from bulkhead import __main__ as command, shaders
assert command.find_program() == sys.argv[1] + "/bin/bulkhead", command.find_program()
assert str(shaders()) == sys.argv[1] + "/share/bulkhead/shaders", shaders()
END
    for file in py.typed _native.pyi _status.py aio.py; do
        [ -e "$package/$file" ] || die "$file of the Python package is not installed"
    done
    # Where the interpreter looks, if the prefix is its own.
    "$python" - "${package#"$prefix"/}" << 'END' || die "no such folder is on the path of Python: $package"
import sys, sysconfig
sys.exit(not sysconfig.get_path("platlib").endswith(sys.argv[1].removesuffix("/bulkhead")))
END
fi
echo "installed, found and run"
