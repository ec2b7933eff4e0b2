#!/usr/bin/env bash
# bulkhead judge on a real CUDA device: examples/judge/saxpy_cuda. The first line of each kernel has the verdict that it
# gets. Where there is no NVRTC, the kernels are those that gpu_cuda_ptx.sh has compiled to the folder $PTX.
# shellcheck disable=SC2016 # jq's variables
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/judge/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

device=${DEVICE:-cuda:0}
example=$(dirname "${BASH_SOURCE[0]}")/../../examples/judge/saxpy_cuda
kind=cu
cli compile "$example/right.cu" -o right.ptx
if [ "$status" -ne 0 ]; then
    kind=ptx
    case_name="there is neither NVRTC, nor PTX in $PTX"
    cp "$PTX"/*.ptx .
    status=$?
    expect_status 0
fi
cp "$example"/*.cu .
candidates=()
for source in "$example"/*.cu; do
    file=$(basename "$source" .cu).$kind
    # What does not compile has no PTX.
    [ "$file" = "reference.$kind" ] || [ ! -e "$file" ] || candidates+=("$file")
done
case_name="as many kernels as there are"
status=${#candidates[@]}
if [ "$status" -ge 20 ]; then passed=$((passed + 1)); else fail "there are $status"; fi

# No kernel takes a second; the deadline is for what does not end.
jq ".reference.kernel = \"reference.$kind\" | .limits.deadline = \"$((2 * slowness))s\"" \
    "$example/task.json" > task.json
case_name="candidates"
LIMIT=300 cli judge task.json "${candidates[@]}" --device "$device" --seed 7 --json
expect_status 1
expect_json --arg device "$device" '.device == $device and .weak == [] and (.fixed_inputs | not)'
for file in "${candidates[@]}"; do
    case_name=$file
    wanted=$(sed -n '1s|^// \([A-Z_]*\).*|\1|p' "${file%.*}.cu")
    says "$file" "$wanted"
done

# It is fair to itself, and seen to be: no number is asked for, but that the times are the device's and confirmed.
case_name="times"
cp "reference.$kind" "itself.$kind"
LIMIT=300 cli judge task.json "itself.$kind" "right_vectors.$kind" --device "$device" --seed 7 --time --repeat 20 --json
expect_status 0
says "itself.$kind" CORRECT '(.timing | length == 2) and all(.timing[]; .device and .cold and .median_ns > 0 and .reference_ns > 0)'
says "right_vectors.$kind" CORRECT '.timing | length == 2'
jq -c '.candidates[] | [.file, (.timing[]? | [.size.n, .ratio, .low, .high, .doubt])]' .stdout

# For a page that wants to show it.
case_name="the table"
LIMIT=300 cli judge task.json "${candidates[@]}" --device "$device" --seed 7
cat .stdout
finish
