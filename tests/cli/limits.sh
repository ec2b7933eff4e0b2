#!/usr/bin/env bash
# --compile-deadline, --grace and --tenant take effect in run, eval and batch: what the verdict says
# has the value that was given, or the tenant has a file of its own.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# The place of the fault has to be reached before the deadline passes.
ms() { echo $(($1 * slowness)) ms; }
option='; --compile-deadline raises it'
option_or_key='; "compile_deadline" or --compile-deadline raises it'
driver=(--compile-deadline $((310 * slowness))ms)
source_=(--compile-deadline $((320 * slowness))ms)
parser=(--compile-deadline $((330 * slowness))ms)
limits=(--deadline $((100 * slowness))ms --grace $((40 * slowness))ms)

"$NPY" make x.npy 'f32[16]' ramp 0 1
run=(run "$SHADERS/square.spv" --groups 1 --in 0=x.npy --out '1=y.npy:f32[16]')
eval_=(eval 'y=2*x' --in x=x.npy --out y=y.npy)
echo "{\"id\":\"a\",\"kernel\":\"$SHADERS/square.spv\",\"groups\":1,\"in\":{\"0\":\"x.npy\"},\
\"out\":{\"1\":\"y.npy:f32[16]\"}}" > kernel.jsonl
sed 's/}$/,"reinterpret":true}/' kernel.jsonl > bytes.jsonl
echo '{"id":"a","eval":"y=2*x","in":{"x":"x.npy"},"out":{"y":"y.npy"}}' > eval.jsonl
printf '#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n' > source.comp
echo '{"id":"a","kernel":"source.comp","groups":1}' > source.jsonl

# message NAME FAULTS COMMAND...: what the object says of it.
message() {
    case_name=$1
    with_faults "$2" cli "${@:3}" --json
    expect_status 1
    expect_json --arg code "$code" --arg says "$says" \
        '(.failures[0] // .) | (.code == $code and (.message | contains($says)))'
}
batch() { # JOBS
    rm -rf "$1.state"
    echo "batch $1 --retry 0 --streams 1"
}

# The driver's compiler, and that of sources: the fault is where each begins. Nothing else has to end
# within the deadline: arrays that are bound as bytes need no parser. Under load the deadline may pass
# before the fault (so `?`): what is said is the same, and without either there would be no verdict.
code=COMPILE_FAILED
# A driver that slept would have four times as long.
busy='?*:compile:*=spin' slow='?*:compile:*=hang'
says="the compile deadline of $(ms 310) passed; "
message "run: the driver" "$busy" "${run[@]}" --reinterpret "${driver[@]}"
# shellcheck disable=SC2046 # words
message "batch: the driver" "$busy" $(batch bytes.jsonl) "${driver[@]}"
says="the compile deadline of $(ms 320) passed before the compiler ended$option"
message "run: a source" "$slow" run source.comp --groups 1 "${source_[@]}"
message "eval: an expression" "$slow" "${eval_[@]}" "${source_[@]}"
says="the compile deadline of $(ms 320) passed before the compiler ended$option_or_key"
# shellcheck disable=SC2046
message "batch: a source" "$slow" $(batch source.jsonl) "${source_[@]}"
# shellcheck disable=SC2046
message "batch: an expression" "$slow" $(batch eval.jsonl) "${source_[@]}"
# What a kernel declares is asked of a compiler's worker, too.
says="the compile deadline of $(ms 330) passed before the compiler ended"
message "run: what it declares" '?*:reflect:*=hang' "${run[@]}" "${parser[@]}"
says="the compile deadline of $(ms 330) passed before the compiler ended"
# shellcheck disable=SC2046
message "batch: what it declares" '?*:reflect:*=hang' $(batch kernel.jsonl) "${parser[@]}"

case_name="inspect: what it declares"
says="the compile deadline of $(ms 330) passed before the compiler ended$option"
with_faults '?*:reflect:*=hang' cli inspect "$SHADERS/square.spv" "${parser[@]}"
expect_status 1
expect_stderr "$says"

# A worker that no longer answers is killed when the grace is over.
code=DEADLINE
says="it did not stop within the grace time of $((40 * slowness)) ms"
stuck='*:submitted:*=hang'
message "run: the grace" "$stuck" "${run[@]}" "${limits[@]}"
message "eval: the grace" "$stuck" "${eval_[@]}" "${limits[@]}"
# shellcheck disable=SC2046
message "batch: the grace" "$stuck" $(batch kernel.jsonl) "${limits[@]}"

# Compiled pipelines are a tenant's own.
for kind in run eval batch; do
    case_name="$kind: the tenant"
    for tenant in kim lee; do
        # shellcheck disable=SC2046
        case $kind in
        run) cli "${run[@]}" --cache-dir "cache-$kind" --tenant $tenant ;;
        eval) cli "${eval_[@]}" --cache-dir "cache-$kind" --tenant $tenant ;;
        batch) cli $(batch kernel.jsonl) --cache-dir "cache-$kind" --tenant $tenant ;;
        esac
        expect_status 0
    done
    files=("cache-$kind"/*.cache)
    if [ ${#files[@]} -eq 2 ]; then passed=$((passed + 1)); else fail "${#files[@]} files of 2 tenants"; fi
done

finish
