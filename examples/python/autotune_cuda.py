"""Finds the fastest variant of a CUDA kernel, of which some hang, crash or compute something else.

Two workers share the GPU. A variant that hangs costs its deadline, one that crashes costs its
worker; then a spare goes on with the next, and the arrays of the host are as they were.

Usage: autotune_cuda.py [COUNT]     COUNT variants (200) of y = a*x + y; a tenth hangs, a tenth
                                    reads address 0, a tenth computes one half
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass

import bulkhead as bh
import numpy as np

SIZE = 1 << 16
SOURCE = """
extern "C" __global__ void saxpy(const float *x, float *y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
extern "C" __global__ void hang() {
    for (volatile unsigned i = 0;; i++) { }
}
extern "C" __global__ void null_read(unsigned *y) {
    *y = *(volatile unsigned *)0;
}
"""


@dataclass
class Variant:
    """A configuration, and what came of it."""

    entry: str
    block: int
    covered: int
    result: str = ""
    seconds: float | None = None


def generate(count: int) -> list[Variant]:
    """Make variants; of each ten one hangs, one crashes and one is wrong."""
    entries = {3: "hang", 7: "null_read"}
    return [
        Variant(entries.get(n % 10, "saxpy"), 32 << n % 5, SIZE // 2 if n % 10 == 5 else SIZE)
        for n in range(count)
    ]


def tune(ctx: bh.Context, variants: list[Variant], deadline: str = "300ms") -> None:
    """Run each variant, and set what came of it."""
    kernels = {
        entry: ctx.kernel(source=SOURCE, language="cuda", entry=entry)
        for entry in ("saxpy", "hang", "null_read")
    }
    given = np.arange(SIZE, dtype=np.float32)
    x = bh.read(ctx.asarray(given))  # no variant can change it
    free = [ctx.stream(device="cuda", deadline=deadline) for _ in range(2)]
    running: dict[bh.Event, tuple[bh.Stream, Variant, bh.Buffer]] = {}

    def finish(event: bh.Event) -> None:
        stream, variant, y = running.pop(event)
        free.append(stream)
        error = event.exception()
        if error is not None:
            variant.result = error.code
        elif not np.array_equal(y.numpy(), 2 * given + 1):
            variant.result = "WRONG"
        else:
            variant.result = "OK"
            variant.seconds = event.result().device_ns / 1e9

    for variant in variants:
        if not free:
            finish(next(bh.as_completed(running)))
        stream, y = free.pop(), ctx.asarray(np.ones(SIZE, np.float32))
        args = {"saxpy": (x, y, 2, SIZE), "hang": (), "null_read": (y,)}[variant.entry]
        event = stream.launch(
            kernels[variant.entry],
            grid=variant.covered // variant.block,
            block=variant.block,
            args=args,
            timed=True,
        )
        running[event] = stream, variant, y
    for event in bh.as_completed(list(running)):
        finish(event)
    for stream in free:
        stream.close()


def main(count: int) -> None:
    """Generate, tune, print."""
    variants = generate(count)
    with bh.Context(spares=2) as ctx:
        tune(ctx, variants)
    for (entry, result), number in sorted(Counter((v.entry, v.result) for v in variants).items()):
        print(f"{number:4} {entry:10} {result}")
    best = min((v for v in variants if v.seconds), key=lambda v: v.seconds or 0)
    print(f"the fastest has blocks of {best.block}: {1e6 * (best.seconds or 0):.1f} us")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
