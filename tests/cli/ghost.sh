#!/usr/bin/env bash
# Ghost memory, as bulkhead doctor sees it. The driver looks like that of a GPU
# (tests/system/fake_transfer.c), and NVML is a script (fake_nvml.c).
#
# The check looks at all processes there are. So the test has a pid namespace of its own: the dying
# workers of a test beside it would be the first orphans that doctor finds.
# shellcheck shell=bash source=tests/cli/lib.sh
if [ -z "${GHOST_ALONE-}" ]; then
    owner=()
    [ "$(id -u)" = 0 ] || owner=(--user --map-root-user)
    GHOST_ALONE=1 exec unshare "${owner[@]}" --mount --mount-proc --pid --fork --kill-child \
        bash "${BASH_SOURCE[0]}"
fi
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
LIMIT=120

# Where workers of other users can read it.
driver=$(mktemp -d "${TMPDIR:-/tmp}/bulkhead-ghost-XXXXXX")
ghost=
trap '[ -z "$ghost" ] || kill -9 "$ghost"; rm -rf "$folder" "$driver"' EXIT
fake_gpu "$driver"
export VK_DRIVER_FILES=$driver/fake_icd.json LD_LIBRARY_PATH=$NVML${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# So little that workers of others, which come and go meanwhile, do not matter.
export FAKE_NVML_WORKERS=1048576
behind plain doctor --json
FAKE_NVML_USED=3221225472 behind memory doctor --json
of_behind plain

case_name="what is in use, and by whom"
expect_json '.checks | map(select(.name == "device-memory")) | length == 1'
expect_json '.checks[] | select(.name == "device-memory") | .result == "holds" and .group == "driver" and (.required | not)
    and (.text | test("^lavapipe:0: .* of 8.00 GiB in use, 0 % busy: .* by [0-9]+ process(es)? \\(.* worker .*MiB.*\\), .*iB by none$"))'
expect_json '.device_memory | length == 1 and (.[0] | .device == "lavapipe:0" and .pci == "0000:65:00.0"
    and .total == 8589934592 and .free == 6408896512 and .nvml.total == 8589934592 and .nvml.reserved == 536870912
    and .nvml.utilisation == 0 and .not_known == null and (.ghost | not))'
expect_json '.device_memory[0] | [.processes[] | select(.own and .bytes == 1048576 and .title == "worker of doctor")] | length >= 1'

case_name="memory of nobody"
of_behind memory
expect_status 3
expect_json '.holds == false and (.device_memory[0] | .ghost and .unaccounted >= 3000000000 and .slack == 268435456)'
expect_json '.checks[] | select(.name == "device-memory") | .result == "broken"
    and (.text | startswith("lavapipe:0: ghost memory: 3.0")) and (.advice | endswith("nvidia-smi --gpu-reset -i 0000:65:00.0"))'

# A process that calls itself a worker, and whose parent is none of ours: its grandparent's end made it
# so. (GNU tail takes options behind operands.)
case_name="a worker whose host is gone"
touch "worker of ghost"
(exec -a bulkhead-worker tail "worker of ghost" -f > /dev/null 2>&1 & echo $! > pid)
ghost=$(< pid)
cli doctor
expect_status 3
expect_stdout "ghost memory: process $ghost (worker of ghost)"
expect_stdout "-> kill -9 $ghost"
finish
