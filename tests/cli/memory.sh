#!/usr/bin/env bash
# --memory of run, eval and batch (D1): the results are the same wherever the arrays are. A processor
# poses as a GPU (tests/hostile/faults.h), so that memory on the device is what a worker makes.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

posing='*:poses_as_gpu:*=fail'
full='?*:make_full:*=fail' # no memory is left on the device
elements=5000000           # 20 MB: more than a piece of a copy
"$NPY" make x.npy "f32[$elements]" random 1 -10 10
"$NPY" make y.npy "f32[$elements]" random 2 -10 10
"$NPY" make small.npy 'f32[1000]' random 3 -10 10

check() { # KERNEL ARGUMENT...
    if "$NPY" check "$@" > .check; then passed=$((passed + 1)); else fail "$(cat .check)"; fi
    rm -f .check
}
ready() { expect_status 0 && expect_empty .stderr; }
square=(run "$SHADERS/square.spv" --groups 16 --in 0=small.npy --out '1=out.npy:f32[1000]')

refuses "'gpu' is none of host, device, auto" "${square[@]}" --memory gpu
refuses "'' is none of host, device, auto" eval 'y=x' --in x=small.npy --out y=out.npy --memory ''

# Which of them is the device's: only there a device without memory is noticed.
full() { # STATUS ARGUMENT...
    case_name="${*:2}, on a device without memory"
    rm -f out.npy
    with_faults "$posing,$full" cli "${@:2}" --json
    expect_status "$1"
    if [ "$1" -eq 0 ]; then
        expect_json '.status == "READY"'
    else
        expect_json '.code == "OUT_OF_DEVICE_MEMORY"'
        expect_stderr "--memory host"
        expect_untouched
    fi
}
full 0 "${square[@]}" --memory host
full 1 "${square[@]}" --memory device
full 1 eval 'y=2*x' --in x=small.npy --out y=out.npy --memory device

# auto: arrays of less than 1 MiB are in host memory, others on a GPU. The machine has one: so it seems.
if [ -n "${GPU_NODE:-}" ]; then
    export LD_PRELOAD=$GPU_NODE
    full 0 "${square[@]}" --memory auto
    full 0 eval 'y=2*x' --in x=small.npy --out y=out.npy
    full 1 eval 'y=2*x' --in x=x.npy --out y=out.npy --memory auto
    case_name="a batch of large and small arrays"
    {
        echo "{\"id\":1,\"kernel\":\"$SHADERS/square.spv\",\"groups\":16,\"in\":{\"0\":\"small.npy\"},\"out\":{\"1\":\"auto1.npy:f32[1000]\"}}"
        echo '{"id":2,"eval":"y=x*x","in":{"x":"x.npy"},"out":{"y":"auto2.npy"}}'
    } > auto.jsonl
    with_faults "$posing,$full" cli batch auto.jsonl --streams 1 --retry 0 --json
    expect_status 1
    expect_json '.done == 1 and .failures[0].code == "OUT_OF_DEVICE_MEMORY"'
    check square small.npy auto1.npy
    with_faults "$posing" cli batch auto.jsonl --state auto --streams 1 --json
    expect_status 0
    check square x.npy auto2.npy
    unset LD_PRELOAD
fi

case_name="saxpy of files in device memory, in pieces"
with_faults "$posing" cli run "$SHADERS/saxpy.spv" --groups $(((elements + 255) / 256)) --in 0=x.npy \
    --inout 1=y.npy:out.npy --push "f32:2.5,u32:$elements" --memory device
ready
check saxpy 2.5 x.npy y.npy out.npy

case_name="from a pipe to a pipe, in device memory"
through_pipes() {
    timeout $((60 * slowness)) "$BULKHEAD" run "$SHADERS/square.spv" \
        --groups 16 --in 0=- --out '1=-:f32[1000]' --memory device < <(cat small.npy) 2> .stderr |
        cat > piped.npy
    status=${PIPESTATUS[0]}
}
with_faults "$posing" through_pipes
ready
check square small.npy piped.npy

case_name="an expression in pieces, in device memory"
with_faults "$posing" cli eval 'y=x*x' --in x=x.npy --out y=out.npy --piece 4M --memory device
ready
check square x.npy out.npy

case_name="nothing in it"
"$NPY" make none.npy 'f32[0]' ramp 0 1
with_faults "$posing" cli eval 'y=x*x' --in x=none.npy --out y=out.npy --memory device
ready

# Two kinds of streams read the same file: what is on the one's device is not the other's.
case_name="a batch in device memory"
for i in 1 2 3 4; do
    limit=$([ $((i % 2)) -eq 0 ] || echo ',"memory":"2G"')
    echo "{\"id\":$i,\"kernel\":\"$SHADERS/square.spv\",\"groups\":16,\"in\":{\"0\":\"small.npy\"},\"out\":{\"1\":\"out$i.npy:f32[1000]\"}$limit}"
done > jobs.jsonl
echo '{"id":5,"eval":"y=x*x","in":{"x":"x.npy"},"out":{"y":"out5.npy"}}' >> jobs.jsonl
with_faults "$posing" cli batch jobs.jsonl --streams 1 --memory device --json
expect_status 0
expect_json '.done == 5'
for i in 1 2 3 4; do check square small.npy "out$i.npy"; done
check square x.npy out5.npy

case_name="a batch on a device without memory"
with_faults "$posing,$full" cli batch jobs.jsonl --state other --streams 1 --retry 0 --memory device --json
expect_status 1
expect_json '.failures[0].code == "OUT_OF_DEVICE_MEMORY"'

case_name="the driver's own device, which is the processor"
cli "${square[@]}" --memory device
ready
check square small.npy out.npy
finish
