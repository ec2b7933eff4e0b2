#!/usr/bin/env bash
# Compiles the kernels of examples/judge/saxpy_cuda to PTX, for a machine with a GPU and without NVRTC (gpu_cuda.sh).
# A kernel's plan stays with it.
#
# Usage: gpu_cuda_ptx.sh BULKHEAD FOLDER
# Without NVRTC here the folder stays empty; what does not compile is not there.
set -u
bulkhead=$1 folder=$2
mkdir -p "$folder"
for source in "$(dirname "${BASH_SOURCE[0]}")"/../../examples/judge/saxpy_cuda/*.cu; do
    name=$(basename "$source" .cu)
    entry=$(sed -n 's|^// bulkhead: {.*"entry": "\([a-z]*\)".*|\1|p' "$source") # one of several; all are there
    if "$bulkhead" compile "$source" ${entry:+--entry "$entry"} -o "$folder/made" > /dev/null 2>&1; then
        { grep '^// bulkhead:' "$source"; cat "$folder/made"; } > "$folder/$name.ptx"
    fi
    rm -f "$folder/made"
done
