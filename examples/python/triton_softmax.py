"""Finds the fastest of 60 configurations of a Triton softmax; some hang, some read out of bounds.

PyTorch's tensors stay as they are: the kernels run in workers. A configuration that hangs costs its
deadline, one that reads out of bounds costs its worker. Triton compiles in processes of their own.
Its source is Python that runs there, and their answers are pickled: for sources of others see
docs/cuda.md.

Usage: triton_softmax.py [COUNT]     COUNT configurations (60); of each twelve one hangs, one reads
                                     out of bounds. Needs PyTorch and Triton 3.3 or later
"""

from __future__ import annotations

import multiprocessing
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import bulkhead as bh
import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget

ROWS, COLUMNS = 4096, 781
RIGHT, STRAYS, HANGS = 0, 1, 2


@triton.jit
def softmax(out, inp, flag, stride, columns, BLOCK: tl.constexpr, FAULT: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    source = inp + row * stride + at
    if FAULT == 1:
        source += 1 << 38  # a tebibyte behind the array
    x = tl.load(source, mask=mask, other=-float("inf"))
    if FAULT == 2:
        turns = 0
        while tl.atomic_add(flag, 0) == 0:
            turns += 1
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(out + row * stride + at, x / tl.sum(x, axis=0), mask=mask)


@dataclass
class Variant:
    """A configuration, and what came of it."""

    block: int
    warps: int
    stages: int
    fault: int
    result: str = ""
    seconds: float | None = None


def generate(count: int) -> list[Variant]:
    """Make configurations; of each twelve one hangs, and one reads out of bounds."""
    faults = {5: HANGS, 9: STRAYS}
    space = [(b, w, s) for b in (1024, 2048, 4096) for w in (1, 2, 4, 8, 16) for s in (1, 2, 3, 4)]
    return [Variant(*space[n % len(space)], faults.get(n % 12, RIGHT)) for n in range(count)]


def compile_one(variant: Variant, arch: int) -> dict[str, Any]:
    """Compile a configuration; in a process of its own, without the GPU."""
    names = {"out": "*fp32", "inp": "*fp32", "flag": "*i32", "stride": "i32", "columns": "i32"}
    made = triton.compile(
        triton.compiler.ASTSource(
            fn=softmax,
            signature=names | {"BLOCK": "constexpr", "FAULT": "constexpr"},
            constexprs={"BLOCK": variant.block, "FAULT": variant.fault},
        ),
        target=GPUTarget("cuda", arch, 32),
        options={"num_warps": variant.warps, "num_stages": variant.stages},
    )
    facts = "name shared num_warps num_ctas global_scratch_size profile_scratch_size".split()
    return {
        "asm": {kind: made.asm[kind] for kind in ("cubin", "ptx")},
        "metadata": {k: getattr(made.metadata, k) for k in facts if hasattr(made.metadata, k)},
        "signature": dict(made.src.signature),
    }


def tune(ctx: bh.Context, given: torch.Tensor, variants: list[Variant], deadline: str) -> None:
    """Run each configuration, and set what came of it."""
    arch = 10 * torch.cuda.get_device_capability()[0] + torch.cuda.get_device_capability()[1]
    right = torch.softmax(given, dim=1)
    spawn = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    with ctx.stream(device="cuda", deadline=deadline) as stream, ProcessPoolExecutor(
        8, mp_context=spawn
    ) as pool:
        on = {"stream": stream, "memory": "device"}
        x, flag = bh.read(ctx.asarray(given, **on)), ctx.empty(1, "int32", **on)
        y = ctx.empty(tuple(given.shape), "float32", **on)
        compiled = [pool.submit(compile_one, variant, arch) for variant in variants]
        for variant, future in zip(variants, compiled):
            try:
                kernel = bh.triton_kernel(ctx, future.result())
                launch = stream.prepare(
                    kernel,
                    grid=given.shape[0],
                    args=(bh.out(y), x, bh.out(flag), given.stride(0), given.shape[1]),
                    timed=True,
                )
                times = [launch().result().device_ns for _ in range(10)]
            except bh.KernelError as error:  # hangs, crashes, needs more than the GPU has
                variant.result = error.code
                stream.submit([bh.fill(y, 0), bh.fill(flag, 0)]).wait()
                continue
            except Exception as error:  # does not compile
                variant.result = type(error).__name__
                continue
            good = torch.allclose(torch.from_dlpack(y), right, atol=1e-6)
            variant.result = "OK" if good else "WRONG"
            variant.seconds = min(times) / 1e9 if good else None


def main(count: int) -> int:
    """Generate, tune, print."""
    given = torch.randn(ROWS, COLUMNS, device="cuda")
    kept = given.clone()
    variants = generate(count)
    with bh.Context(spares=2, quarantine_deaths=0) as ctx:
        # The driver takes 150 ms to report an illegal address.
        tune(ctx, given, variants, deadline="500ms")
    kinds = {RIGHT: "right", STRAYS: "strays", HANGS: "hangs"}
    found = Counter((kinds[one.fault], one.result) for one in variants)
    for (kind, result), number in sorted(found.items()):
        print(f"{number:4} {kind:8} {result}")
    untouched = torch.equal(given, kept)
    print(f"PyTorch's tensor is {'untouched' if untouched else 'CHANGED'}")
    good = [one for one in variants if one.seconds]
    if not good:
        print("no configuration is right")
        return 1
    best = min(good, key=lambda one: one.seconds or 0)
    print(
        f"the fastest: BLOCK={best.block}, {best.warps} warps, {best.stages} stages: "
        f"{1e6 * (best.seconds or 0):.1f} us"
    )
    expected = {RIGHT: {"OK"}, STRAYS: {"DEVICE_FAULT"}, HANGS: {"DEADLINE"}}
    return 0 if untouched and all(one.result in expected[one.fault] for one in variants) else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 60))
