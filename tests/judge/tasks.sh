#!/usr/bin/env bash
# bulkhead judge: the tasks and kernels of examples/judge. The first line of each kernel has the verdicts that
# it may have, and why.
# shellcheck disable=SC2016 # jq's variables
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/judge/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cp -r "$(dirname "${BASH_SOURCE[0]}")/../../examples/judge" judge
cheats=0
for folder_of_task in judge/*/; do
    [[ $folder_of_task != *_cuda/ ]] || continue # for a CUDA device: gpu_cuda.sh
    cd "$folder/$folder_of_task" || exit 1
    task=$(basename "$folder_of_task")
    case_name=$task
    candidates=()
    for file in *.comp; do
        [ "$file" = reference.comp ] || candidates+=("$file")
    done
    for file in */plan.json; do # of several kernels; there may be none
        [ ! -e "$file" ] || candidates+=("$file")
    done
    # No kernel takes a second, so the deadline is for a machine under load, and for what does not end.
    jq ".limits.deadline = \"$((2 * slowness))s\"" task.json > quick.json
    LIMIT=200 cli judge quick.json "${candidates[@]}" --seed 7 --json
    cp .stdout .stderr "$folder"
    expect_status 1
    expect_json '.weak == [] and (.fixed_inputs | not)'
    expect_json --argjson count ${#candidates[@]} '.candidates | length == $count'
    for file in "${candidates[@]}"; do
        case_name=$task/$file
        wanted=$(sed -n '1s|^// \([A-Z_ or]*\):.*|\1|p' "$file")
        wanted=${wanted:-CORRECT}
        [ "$wanted" = CORRECT ] || cheats=$((cheats + 1))
        expect_json --arg file "$file" --arg wanted "$wanted" \
            '.candidates[] | select(.file == $file).verdict | IN($wanted | split(" or ")[])'
    done
done

# Here what computes nothing is right. The report says so, and --strict judges nothing.
careless() { # TASK KERNEL JQ
    case_name="$1: careless"
    cd "$folder/judge/$1" || exit 1
    cli judge careless.json "$2" --seed 7 --json
    cp .stdout .stderr "$folder"
    says "$2" CORRECT
    expect_json "$3"
    cli judge careless.json "$2" --seed 7 --json --strict
    cp .stdout .stderr "$folder"
    expect_status 2
}
careless softmax zeros.comp '[.weak[].output] == ["Y"]'
careless bitonic copy.comp '[.weak[].output] == ["Y"]'
careless scan counts.comp '.fixed_inputs'

case_name="at least forty cheats"
status=$cheats
if [ "$cheats" -ge 40 ]; then passed=$((passed + 1)); else fail "there are $cheats"; fi
cd "$folder" || exit 1
finish
