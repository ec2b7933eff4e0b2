#!/usr/bin/env bash
# What a job says of its worker: the device and the memory. Jobs that say the same share workers.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
# shellcheck source=tests/batch/jobs.sh
. "$(dirname "${BASH_SOURCE[0]}")/jobs.sh"

"$NPY" make x.npy 'f32[1000]' ramp 0 1
"$NPY" make d.npy 'u32[64]' ramp 0 0
cli devices --json
selector=$(jq -r '.devices[0].selector // .[0].selector' .stdout)
name=$(jq -r '(.devices // .)[0].name' .stdout | cut -c1-6)

case_name="a limit of memory is a job's own"
bomb() { # ID [MORE]
    echo "{\"id\":\"$1\",\"kernel\":\"$SHADERS/memory_bomb.spv\",\"groups\":1,\"trusted\":true,\"retries\":0,
\"inout\":{\"0\":\"d.npy:$1.npy\"}${2:-}}" | tr -d '\n'
    echo
}
{
    bomb small ',"memory":"256M"'
    square plain x.npy plain.npy
    square part x.npy part.npy ",\"device\":\"$name\""
    square whole x.npy whole.npy ",\"device\":\"$selector\",\"memory\":\"512M\""
    square other x.npy other.npy ',"device":"abacus"'
} > jobs.jsonl
cli run "$SHADERS/square.spv" --groups 16 --in 0=x.npy --out '1=y.npy:f32[1000]' --device abacus --json
expect_status 3
said=$(jq -r '"\(.code) \(.message)"' .stdout)
cli batch jobs.jsonl --streams 1 --json
expect_status 1
expect_sql "SELECT id, state FROM jobs" "small|failed
plain|done
part|done
whole|done
other|failed"
expect_json '.failures[] | select(.id == "small") | .code == "COMPILE_FAILED" and
    (.message | contains("its memory limit of 256 MiB"))'
expect_json '.failures[] | select(.id == "other") | .code == "NO_DEVICE" and
    (.message | contains("see bulkhead devices"))'
expect_json --arg said "${said/--device/device abacus}" \
    '.failures[] | select(.id == "other") | "\(.code) \(.message)" == $said'
# Four kinds: each has a stream of its own.
expect_sql "SELECT count(DISTINCT stream) FROM attempt WHERE started" 4
for id in part whole; do
    if cmp -s "$id.npy" plain.npy; then passed=$((passed + 1)); else fail "$id is wrong"; fi
done

case_name="any device: of a driver that has two"
driver=$(mktemp -d)
chmod 755 "$driver"
cp "$TWO_DEVICES" "$driver/libvulkan_lvp.so.fake"
echo "{\"file_format_version\":\"1.0.0\",\"ICD\":{\"library_path\":\"$driver/libvulkan_lvp.so.fake\",
\"api_version\":\"1.3.0\"}}" > "$driver/two_icd.json"
{
    for i in 1 2 3; do square "any$i" x.npy "any$i.npy"; done
    square own x.npy own.npy ',"device":"any"'
    square second x.npy second.npy ',"device":"1"'
} > jobs.jsonl
export VK_DRIVER_FILES=$driver/two_icd.json
cli devices --json
expect_json '[(.devices // .)[].selector] == ["lavapipe:0", "lavapipe:1"]'
cli batch jobs.jsonl --streams 2 --state any --device any --json --html any.html
expect_status 0
# Each stream of the first kind has had jobs; one job was for the second device.
expect_json '.device == "any" and (.devices | keys) == ["lavapipe:0", "lavapipe:1"] and
    (.devices | add) == 5'
[ "$(sqlite3 any/batch.db "SELECT device FROM attempt JOIN job ON number = job WHERE id = 'second'")" = lavapipe:1 ] ||
    fail "the record of the job for the second device"
grep -Eq 'lavapipe:[01] [0-9], lavapipe:[01] [0-9]' any.html || fail "the page does not say where jobs ran"
cli batch jobs.jsonl --state any --device any --resume
expect_status 0
cli run "$SHADERS/square.spv" --groups 16 --in 0=x.npy --out '1=run.npy:f32[1000]' --device any
expect_status 0
cli run "$SHADERS/square.spv" --groups 16 --in 0=x.npy --out '1=run.npy:f32[1000]' --device 1 --json
expect_status 0
expect_json '.device == "lavapipe:1"'
cli eval 'z = x * x' --in x=x.npy --out z=eval.npy --device any
expect_status 0
unset VK_DRIVER_FILES
rm -r "$driver"
for id in any1 any2 any3 own second run eval; do
    if cmp -s "$id.npy" plain.npy; then passed=$((passed + 1)); else fail "$id is wrong"; fi
done

case_name="no more kinds than can be kept"
for i in $(seq 16); do square "j$i" x.npy "$i.npy" ",\"memory\":\"$((1000 + i))M\""; done > jobs.jsonl
cli batch jobs.jsonl --streams 1 --state many --json
expect_status 1
expect_json '.done == 15 and .failed == 1 and (.failures[0].message |
    contains("more than 16 kinds of device and memory"))'
finish
