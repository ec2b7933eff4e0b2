#!/usr/bin/env python3
"""What a launch costs in Python on a GPU, beside PyTorch's and CuPy's, in one run.

Usage: bench/cuda_launch.py [--slices N] [--rounds N] [--quick] [--strict]
  --slices N   of each side, which alternate (20)
  --rounds N   launches of a slice (500)
  --quick      few: shows that it works
  --strict     exit status 3 if a ratio is over its goal, or nobody is there to compare with

Each launch is waited for: an increment of 32 numbers, by stream.launch(...).wait() and by a
prepared launch, by PyTorch's x.add_(1) and torch.cuda.synchronize(), and by a RawKernel of CuPy's
and its stream's synchronize(). The goals: 1.5 times the quicker of the two, prepared 1.3 times.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

BUILD = Path(os.environ.get("BULKHEAD_BUILD", Path(__file__).resolve().parent.parent / "build"))
sys.path.insert(0, str(BUILD / "python"))

import bulkhead as bh  # noqa: E402

PTX = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry increment(.param .u64 word)
{
    .reg .u32 %i, %v;
    .reg .u64 %a, %o;
    ld.param.u64 %a, [word];
    cvta.to.global.u64 %a, %a;
    mov.u32 %i, %tid.x;
    mul.wide.u32 %o, %i, 4;
    add.u64 %a, %a, %o;
    ld.global.u32 %v, [%a];
    add.u32 %v, %v, 1;
    st.global.u32 [%a], %v;
    ret;
}
"""
CUDA = 'extern "C" __global__ void increment(unsigned *word) { word[threadIdx.x] += 1; }'
GOALS = {"launch": 1.5, "prepared": 1.3}


def torch_side() -> Callable[[], object]:
    """PyTorch's launch and wait."""
    torch = importlib.import_module("torch")
    x = torch.zeros(32, dtype=torch.int32, device="cuda")
    synchronize = torch.cuda.synchronize

    def run() -> None:
        x.add_(1)
        synchronize()

    return run


def cupy_side() -> Callable[[], object]:
    """CuPy's."""
    cupy = importlib.import_module("cupy")
    x = cupy.zeros(32, dtype=cupy.uint32)
    kernel, stream = cupy.RawKernel(CUDA, "increment"), cupy.cuda.get_current_stream()

    def run() -> None:
        kernel((1,), (32,), (x,))
        stream.synchronize()

    return run


def median_us(run: Callable[[], object], rounds: int) -> float:
    """The median of so many runs."""
    times, now = [], time.perf_counter_ns
    for _ in range(rounds):
        began = now()
        run()
        times.append(now() - began)
    return statistics.median(times) / 1000


def main() -> int:
    """Measure, print, compare."""
    assert __doc__
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("--slices", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.slices, options.rounds = 2, 20
    with bh.Context() as ctx, ctx.stream(device="cuda") as stream:
        kernel = ctx.kernel(source=PTX, entry="increment", block=32)
        x = ctx.empty(32, "uint32", stream=stream, memory="device")
        prepared = stream.prepare(kernel, grid=1, args=(x,))
        sides: dict[str, Callable[[], object]] = {
            "launch": lambda: stream.launch(kernel, grid=1, args=(x,)).wait(),
            "prepared": lambda: prepared().wait(),
        }
        for name, side in (("torch", torch_side), ("cupy", cupy_side)):
            try:
                sides[name] = side()
            except Exception as error:  # not there, or without this GPU
                print(f"{name:10} is not compared: {type(error).__name__}: {error}")
        for run in sides.values():
            median_us(run, options.rounds)  # warm
        slices: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(options.slices):
            for name, run in sides.items():
                slices[name].append(median_us(run, options.rounds))
        launches = (1 + options.slices) * options.rounds
        found = x.numpy(copy=True)[0]
        if found != 2 * launches:
            print(f"WRONG: {found} increments of {2 * launches}")
            return 1
    medians = {name: statistics.median(times) for name, times in slices.items()}
    for name, median in medians.items():
        who = "" if name in ("torch", "cupy") else "bulkhead "
        print(f"{who + name:20} {median:8.2f} us")
    peers = [medians[name] for name in ("torch", "cupy") if name in medians]
    over = not peers
    for name, goal in GOALS.items() if peers else ():
        ratio = medians[name] / min(peers)
        over |= ratio > goal
        print(f"{name + ' over the quicker':26} {ratio:.2f}   {goal}{'   OVER' * (ratio > goal)}")
    return 3 if over and options.strict else 0


if __name__ == "__main__":
    sys.exit(main())
