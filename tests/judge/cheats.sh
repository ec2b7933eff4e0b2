#!/usr/bin/env bash
# bulkhead judge: kernels that cheat (cheats.table), each caught by its verdict, and honest ones beside them, which
# never are. What cheats about time by taking over its worker is in forgeries.sh.
# shellcheck disable=SC2016,SC2154 # jq's variables; what tests/cli/lib.sh sets
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/judge/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
table=$(dirname "${BASH_SOURCE[0]}")/cheats.table

# A folder for each task, and `wanted`: task, file, class and verdict of each cheat.
awk '
/^@/ {
    close(file)
    kind = substr($1, 2)
    if (kind == "task") system("mkdir " $2)
    name = kind == "task" ? "task.json" : kind == "head" ? "head" : kind == "honest" ? "honest.comp" : $3 (kind == "plan" ? ".json" : ".comp")
    file = $2 "/" name
    if (kind == "honest" || kind == "cheat") {
        while ((getline line < ($2 "/head")) > 0) print line > file
        close($2 "/head")
    }
    if (NF == 5) print $2, name, $4, $5 > "wanted"
    next
}
file { print > file }' "$table"
mkfifo scan/pipe.comp
ln -s . scan/link

tasks=$(cut -d' ' -f1 wanted | uniq)
for task in $tasks; do
    mapfile -t files < <(awk -v task="$task" '$1 == task && $3 != "timed" { print $2 }' wanted)
    cp "$task/honest.comp" "$task/reference.comp"
    cd "$task" || exit 1
    jq ".limits.deadline = \"$((2 * slowness))s\"" task.json > quick.json
    LIMIT=300 cli judge quick.json honest.comp "${files[@]}" --seed 77 --json
    cp .stdout .stderr "$folder"
    cd "$folder" || exit 1
    case_name=$task
    expect_status 1
    says honest.comp CORRECT
    jq -r '.candidates[] | "\(.file) \(.verdict)"' .stdout > got
    while read -r file verdict; do
        read -r class wanted < <(awk -v task="$task" -v file="$file" '$1 == task && $2 == file { print $3, $4 }' wanted)
        case_name="$task: $file ($class)"
        if [[ $file == honest.comp || $verdict =~ ^($wanted)$ ]]; then
            passed=$((passed + 1))
        else
            fail "it is $verdict, not $wanted"
        fi
    done < got
    case_name=$task
    expect_json --argjson count $((1 + ${#files[@]})) '.candidates | length == $count'
done

# They know by what is in memory that time is taken, and do less then, at least in seven runs of eight.
for task in $tasks; do
    mapfile -t files < <(awk -v task="$task" '$1 == task && $3 == "timed" { print $2 }' wanted)
    [ ${#files[@]} -gt 0 ] || continue
    cd "$task" || exit 1
    jq '.sizes |= .[:1] | del(.check_sizes, .hidden_sizes) | .in |= map_values(.fills = [])' task.json > timed.json
    LIMIT=300 cli judge timed.json "${files[@]}" --seed 77 --time --repeat 5 --json
    cp .stdout .stderr "$folder"
    cd "$folder" || exit 1
    for file in "${files[@]}"; do
        case_name="$task: $file (timed)"
        says "$file" WRONG '(.message | endswith(", a timed run)"))'
    done
done

case_name="a name cannot forge a line of the report"
cd scan || exit 1
cli judge task.json forged_*.comp --seed 77
cp .stdout .stderr "$folder"
cd "$folder" || exit 1
expect_status 1
if [ "$(grep -c . .stdout)" -eq 5 ] && ! grep -q $'[\e\r]' .stdout; then passed=$((passed + 1)); else fail "lines"; fi

case_name="a task that allows accesses behind its arrays"
kernel honest.comp <<< 'if (i < n) z[i] = a * x[i] + y[i];'
kernel next_input.comp <<< 'if (i < n) z[i] = a * x[i] + y[i] + (i + 1 == n ? y[n] : 0.0);'
kernel no_bound.comp <<< 'if (i < n + 64) z[i] = a * x[i] + y[i];'
task robust.json '.robust = true'
LIMIT=120 cli judge robust.json next_input.comp no_bound.comp honest.comp --seed 77 --json
says next_input.comp CORRECT
says no_bound.comp CORRECT
says honest.comp CORRECT

case_name="inputs that generators hardly ever make"
kernel ties.comp <<< 'if (i < n) z[i] = n > 1u && x[0] == x[1] ? 0.0 : a * x[i] + y[i];'
kernel sorted.comp <<< 'if (i < n) z[i] = n > 5u && x[0] < x[1] && x[1] < x[2] && x[2] < x[3] && x[3] < x[4] && x[4] < x[5] ? 0.0 : a * x[i] + y[i];'
kernel reversed.comp <<< 'if (i < n) z[i] = n > 5u && x[0] > x[1] && x[1] > x[2] && x[2] > x[3] && x[3] > x[4] && x[4] > x[5] ? 0.0 : a * x[i] + y[i];'
kernel ends.comp <<< 'if (i < n) z[i] = a * x[i] + (abs(y[i]) == 1.0 ? 0.0 : y[i]);'
kernel loud.comp <<< 'if (i < n) z[i] = exp(a * x[i]) > 1e38 ? 0.0 : a * x[i] + y[i];'
fills=(ties sorted reversed ends)
task task.json
LIMIT=120 cli judge task.json "${fills[@]/%/.comp}" honest.comp --seed 77 --json
for fill in "${fills[@]}"; do
    says "$fill.comp" WRONG ".fill == \"${fill/ties/equal}\" and (.message | endswith(\", inputs: ${fill/ties/equal})\"))"
done
says honest.comp CORRECT '.fill == null'
task none.json '.fills = []'
LIMIT=120 cli judge none.json sorted.comp reversed.comp --seed 77 --json
says sorted.comp CORRECT
says reversed.comp CORRECT
task loud.json '.in.X.fills = [{uniform: [40, 60]}]'
LIMIT=120 cli judge loud.json loud.comp honest.comp --seed 77 --json
says loud.comp WRONG '.fill == "uniform"'
says honest.comp CORRECT
finish
