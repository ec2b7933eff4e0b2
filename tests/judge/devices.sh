#!/usr/bin/env bash
# bulkhead judge --device: one task on a Vulkan device and on the fake CUDA driver, and what a CUDA device needs. Which
# candidates are found there is in cuda_test.c.
# shellcheck disable=SC2016 # jq's variables
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/judge/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

fake_cuda
fake_nvrtc
echo FAKE_CUDA_GRANULARITY=65536 > "$driver/fake_cuda.settings"
cp "$CHEATS" cheats.cubin

case_name="the same task on both devices, with an expression as the reference"
task task.json '.sizes = [{n: 1000}]'
echo '{"kernel": "cheats.cubin", "entry": "honest", "block": 64}' > honest.json
echo '{"kernel": "cheats.cubin", "entry": "swapped", "block": 64}' > swapped.json
kernel honest.comp <<< 'if (i < n) z[i] = a * x[i] + y[i];'
LIMIT=120 cli judge task.json honest.json swapped.json honest.comp --device cuda --seed 4 --json
expect_status 1
expect_json '.device == "cuda:0"'
says honest.json CORRECT
says swapped.json WRONG
says honest.comp INVALID_KERNEL
LIMIT=120 cli judge task.json honest.json honest.comp --seed 4 --json
says honest.json INVALID_KERNEL
says honest.comp CORRECT

case_name="times beside a baseline, of which an expression on another device says what is right"
LIMIT=200 cli judge task.json honest.json --device cuda --time --warm --repeat 5 --baseline honest.json --json
expect_status 0
says honest.json CORRECT '.timing[0] | .runs == 5 and .device and .median_ns > 0'
refuses "bulkhead judge: --time: the reference of task.json is an expression, which runs on another device" \
    judge task.json honest.json --device cuda --time
refuses "bulkhead judge: --guard-cost: task.json runs on a CUDA device" \
    judge task.json honest.json --device cuda --time --guard-cost --baseline honest.json

case_name="sources of the example"
cp -r "$EXAMPLES/saxpy_cuda" example
cd example || exit 1
LIMIT=120 cli judge task.json right.cu right_bounds.cu large_block.cu other_order.cu --device cuda --json
cp .stdout .stderr "$folder"
says right.cu CORRECT
says right_bounds.cu CORRECT
says large_block.cu LIMIT_EXCEEDED
says other_order.cu BINDING_MISMATCH
cd "$folder" || exit 1
refuses "task.json:9: \"parameters\": it is for CUDA kernels" judge example/task.json example/right.cu

case_name="no compiler for CUDA C++"
BULKHEAD_NVRTC=$driver/none LIMIT=60 cli judge example/task.json example/right.cu --device cuda
expect_status 3
expect_stderr NVRTC
finish
