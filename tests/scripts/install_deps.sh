#!/usr/bin/env bash
# scripts/install-deps on three distributions that are not here: the names it picks, and what it says
# where there is no package of a name. apt and dpkg are fakes that know the packages in $PACKAGES and
# have those in $INSTALLED.
# Usage: install_deps.sh SOURCE_FOLDER
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
set -eo pipefail
script=$1/scripts/install-deps
export PACKAGES=$folder/packages INSTALLED=$folder/installed LOG=$folder/log CLANG

fake() { cat > "$folder/$1" && chmod +x "$folder/$1"; }
fake dpkg-query << 'END'
#!/bin/sh
for name; do :; done
grep -qx "$name" "$INSTALLED" && printf installed
END
fake apt-cache << 'END'
#!/bin/sh
case $1 in
policy)
    # Much text behind the answer: who reads only the first lines must not fail.
    grep -qx "$2" "$PACKAGES" && echo "$2:" && echo '  Installed: (none)' && echo '  Candidate: 1.0' &&
        seq 1 20000
    ;;
depends)
    echo clang
    [ -z "$CLANG" ] || echo "  Depends: clang-$CLANG"
    seq 1 20000
    ;;
esac
END
fake apt-get << 'END'
#!/bin/sh
echo "$*" >> "$LOG"
case $* in
*update) [ ! -e "$PACKAGES.new" ] || cat "$PACKAGES.new" > "$PACKAGES" ;;
*install*) for name; do grep -x "$name" "$PACKAGES" >> "$INSTALLED"; done ;;
esac
exit 0
END
fake sudo << 'END'
#!/bin/sh
exec "$@"
END
PATH=$folder:$PATH

die() {
    echo "$*" >&2
    exit 1
}
# What every release has, by the script's own lists.
common=$(sed -n '/^build=(/,/^only_names=/p' "$script" | sed '/^only_names=/d;s/#.*//' | tr -d '()' |
    sed 's/^[a-z]*=//;s/"\(clang-[a-z]*-19\)|[^"]*"/\1/g;s/"[^"]*"//g')
machine() { # CLANG PACKAGE...
    CLANG=$1
    shift
    : > "$INSTALLED"
    : > "$LOG"
    rm -f "$PACKAGES.new"
    # shellcheck disable=SC2086 # words
    printf '%s\n' $common "$@" > "$PACKAGES"
}
names() { "$script" --names all; }

machine 14 libclang-rt-14-dev libclang-rt-dev
[ "$(names | grep libclang-rt)" = libclang-rt-14-dev ] || die "Debian 12: $(names)"
machine 19 libclang-rt-19-dev libclang-rt-dev
[ "$(names | grep libclang-rt)" = libclang-rt-19-dev ] || die "Debian 13: $(names)"
"$script" all > "$folder/said" || die "it could not be installed"
grep -qx libclang-rt-19-dev "$INSTALLED" || die "not installed: $(cat "$LOG")"
grep -q 'libclang-rt-14' "$LOG" && die "another release's name was asked for"
"$script" all | grep -q 'Nothing to install' || die "installed twice"
machine 21 libclang-rt-21-dev clang-format clang-tidy # Debian testing has no 19 any more
sed -i '/^clang-[a-z]*-19$/d' "$PACKAGES"
[ "$(names | grep -E 'clang-(format|tidy)' | tr '\n' ' ')" = 'clang-format clang-tidy ' ] ||
    die "Debian testing: $(names)"
machine 14 libclang-rt-14-dev clang-format clang-tidy # an older version is installed
printf '%s\n' clang-format clang-tidy > "$INSTALLED"
mkdir "$folder/tools"
for tool in bash sh grep seq; do ln -s "$(command -v $tool)" "$folder/tools"; done
mv "$PACKAGES" "$PACKAGES.new" # and apt's lists are not here yet
: > "$PACKAGES"
"$script" all > "$folder/said" || die "beside an older version: $(cat "$folder/said")"
for name in clang-format clang-tidy; do
    grep -qx "$name-19" "$INSTALLED" || die "an older $name is taken for the right one"
    ends 3 "a missing $name" env PATH="$folder:$folder/tools" "$script" --program "$name"
    grep -q "the package $name-19" "$folder/said" || fail "the package of $name is not named"
    fake "$name-19" < /dev/null
    [ "$("$script" --program "$name")" = "$name-19" ] || die "--program $name"
done
ends 2 '--program without a name' "$script" --program
machine '' libclang-rt-dev # clang is no package of that kind
[ "$(names | grep libclang-rt)" = libclang-rt-dev ] || die "without a version: $(names)"

# A package that is not there is named, and nothing is installed.
machine 23
status=0
"$script" all > "$folder/said" 2>&1 || status=$?
[ "$status" -eq 3 ] || die "status $status where a package is missing"
grep -q 'no package called: libclang-rt-23-dev|libclang-rt-dev$' "$folder/said" ||
    die "not named: $(cat "$folder/said")"
grep -q install "$LOG" && die "installed something: $(cat "$LOG")"
"$script" build > /dev/null || die "the set that does not need it failed, too"

# Lists that are not here yet are fetched.
machine 19
mv "$PACKAGES" "$PACKAGES.new"
: > "$PACKAGES"
"$script" test > "$folder/said" 2>&1 || die "without lists: $(cat "$folder/said")"
grep -q update "$LOG" || die "the lists were not fetched"
[ $failed -eq 0 ]
