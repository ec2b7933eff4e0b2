#!/usr/bin/env bash
# Where a system refuses what a sandbox needs, doctor names the cause and the one setting, and other
# commands say the same. It never says "run bulkhead doctor" or that a driver is missing.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# denied PLACE HOW ARGUMENT...
denied() {
    case_name=$*
    timeout --kill-after=5 $((60 * slowness)) "$DENIED" "$1" "$2" "$BULKHEAD" "${@:3}" > .stdout 2> .stderr
    status=$?
    tr -s ' \n' '  ' < .stdout > .said
    tr -s ' \n' '  ' < .stderr >> .said
}
says() {
    if grep -qF -- "$1" .said; then passed=$((passed + 1)); else fail "it does not say '$1'"; fi
}
says_not() {
    if grep -qiF -- "$1" .said; then fail "it says '$1'"; else passed=$((passed + 1)); fi
}
ends() {
    if [ "$status" -eq "$1" ]; then passed=$((passed + 1)); else fail "status is not $1"; fi
}
# refused PLACE HOW CAUSE SETTING: the words of both, to their ends.
refused() {
    denied "$1" "$2" doctor
    ends 3
    says "): $3 -> $4 "
    says_not 'run bulkhead doctor'
    says_not mesa-vulkan
    says_not 'install a Vulkan driver'
    denied "$1" "$2" eval 'y = 2*x' --in x=x.npy --out y=y.npy
    ends 3
    says "): $3; to allow it: $4 ("
    says_not 'run bulkhead doctor'
}
page='(docs/operating.md)'
filter="a filter that lets this program make namespaces and mounts $page"
option="--security-opt seccomp=FILE, made by containers/seccomp-profile $page"

"$NPY" make x.npy 'f32[8]' ramp 0 1
refused host limit 'user.max_user_namespaces is 0' 'sysctl user.max_user_namespaces=15000'
refused host switch 'kernel.unprivileged_userns_clone is 0' 'sysctl kernel.unprivileged_userns_clone=1'
refused host apparmor \
    'AppArmor takes all rights in a user namespace away (kernel.apparmor_restrict_unprivileged_userns is 1)' \
    "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile with 'userns,' for bulkhead-warden $page"
refused host namespaces 'a seccomp filter is on this process' "$filter"
refused host mounts 'a seccomp filter is on this process' "$filter"
contained="the container's seccomp filter"
refused docker namespaces "$contained" "$option"
refused podman namespaces "$contained" "$option"
refused podman mounts "$contained" "$option"
refused kubernetes namespaces "$contained" \
    "a seccompProfile of type Localhost made by containers/seccomp-profile $page"
refused lxc namespaces "$contained" "a filter that lets the container make namespaces and mounts $page"
# Of a context, for which there are no checks.
denied podman unknown doctor
ends 3
says "futex_waitv (Function not implemented): $contained; to allow it: $option ("
says_not 'run bulkhead doctor'

# The profile for containers: what refuses goes, what a sandbox needs comes, the rest stays.
profile() {
    case_name="seccomp-profile $*"
    "$CONTAINERS/seccomp-profile" "$@" > .stdout 2> .stderr
    status=$?
    tr -s ' \n' '  ' < .stderr > .said
}
echo '{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
    {"names": ["read", "write"], "action": "SCMP_ACT_ALLOW"},
    {"names": ["mount", "bpf"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
    {"names": ["unshare"], "action": "SCMP_ACT_ERRNO"}]}' > runtime.json
profile runtime.json
ends 0
expect_json '.syscalls | length == 3'
expect_json '.syscalls[0].names == ["read", "write"] and .syscalls[1].names == ["bpf"]'
expect_json '.syscalls[2].action == "SCMP_ACT_ALLOW" and (.syscalls[2].names | contains(["mount", "unshare"]))'
echo '{"syscalls": 7}' > bad.json
profile bad.json
ends 1
says 'bad.json is no seccomp profile'
profile nowhere.json
ends 1
says 'nowhere.json cannot be read'

# The profile for AppArmor: printed, installed and loaded, unloaded and removed. A program stands in for
# apparmor_parser; where that is installed, it reads the profile.
profiles() {
    case_name="apparmor-profile $*"
    PATH=$PWD/stand-in:$PATH "$CONTAINERS/apparmor-profile" "$@" > .stdout 2> .stderr
    status=$?
    tr -s ' \n' '  ' < .stdout > .said
    tr -s ' \n' '  ' < .stderr >> .said
}
mkdir -p stand-in "a place" profiles
printf '#!/bin/sh\necho "$@" >> "%s/loads"\n' "$PWD" > stand-in/apparmor_parser
printf '#!/bin/sh\nexit 0\n' > stand-in/aa-enabled
chmod 755 stand-in/*
cp stand-in/aa-enabled "a place/bulkhead-warden"
name=$(realpath "a place/bulkhead-warden" | sed 's,^/,,; s,/,.,g; s/ /_/g')
profiles "a place/bulkhead-warden"
ends 0
says "profile $name \"$(realpath "a place/bulkhead-warden")\" flags=(unconfined) { userns,"
if command -v apparmor_parser > /dev/null && [ -e /etc/apparmor.d/abi/4.0 ]; then
    apparmor_parser --skip-kernel-load --skip-cache --debug .stdout > .said 2>&1
    status=$?
    ends 0
fi
cp .stdout printed
profiles --install "a place/bulkhead-warden" profiles
ends 0
cmp -s printed "profiles/$name" || fail "another profile is installed"
profiles --remove "a place/bulkhead-warden" profiles
ends 0
[ -z "$(ls -A profiles)" ] || fail "left in the folder: $(ls -A profiles)"
printf '%s\n' "--replace --write-cache profiles/$name" "--remove profiles/$name" | cmp -s - loads ||
    fail "loaded: $(cat loads)"
profiles --remove "a place/bulkhead-warden" profiles
ends 1
says "profiles has no $name"
profiles --install nowhere/bulkhead-warden profiles
ends 1
says 'nowhere/bulkhead-warden is no program'
profiles '/a*/bulkhead-warden'
ends 1
says '/a*/bulkhead-warden: AppArmor gives characters in this path a meaning of their own'
profiles '/a$b/bulkhead-warden'
ends 1
profiles --load
ends 2
says 'there is no option --load'

# In a container that allows it, all works behind the filter that is there already.
denied here filter eval 'y = 2*x' --in x=x.npy --out y=y.npy
ends 0

# /proc that hides processes from ordinary users, and where the kernel refuses another: it shows workers all the
# same, because they were executed in a user namespace that the host owns.
# LeakSanitizer needs /proc, too.
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
denied here hidepid eval 'y = 2*x' --in x=x.npy --out y=y.npy
if [ "$status" -ne 77 ]; then
    ends 0
    denied here hidepid chaos --seed 7 --outside --faults kill --duration 3s
    ends 0
    denied here covered eval 'y = 2*x' --in x=x.npy --out y=y.npy
    ends 0
fi

finish
