"""Ranks generated variants of a kernel by their time on the device.

Most generated kernels are wrong: some do not compile, some crash or hang, some write where they
must not, some compute something else. Each is run in a worker of its own, so none harms another
and the blame is certain. What is wrong is counted by its reason, what is right is ranked.

Usage: evaluator.py [COUNT]     COUNT variants (200) of y = x*x + 1; a tenth is broken in each of
                                six ways
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from dataclasses import dataclass

import bulkhead as bh
import numpy as np

SIZE = 4096
SHELL = """#version 450
// variant {number}
layout(local_size_x = {local}) in;
layout(set = 0, binding = 0) {access} buffer X {{ float x[]; }};
layout(set = 0, binding = 1) buffer Y {{ float y[]; }};
shared float scratch[64];
void main() {{
    for (uint i = gl_GlobalInvocationID.x; i < x.length(); i += {step}) {{ {body} }}
}}
"""
RIGHT = ("y[i] = x[i] * x[i] + 1.0;", "y[i] = fma(x[i], x[i], 1.0);", "y[i] = 1.0 + x[i] * x[i];")
ENDLESS = "while (y[i] < 2e9) for (int k = 0; k < 60000; k++) y[i] = sin(y[i]) - sqrt(abs(y[i]));"
BROKEN = {
    "does not compile": "y[i] = x[i] * z[i];",
    "wrong": "y[i] = x[i] * x[i] - 1.0;",
    "half": "if (i < x.length() / 2) y[i] = x[i] * x[i] + 1.0;",
    "endless": ENDLESS,
    "writes its input": "x[i] += 1.0; y[i] = x[i] * x[i] + 1.0;",
    "crashes": "uint k = 0x0FFFFF00u + i * 0x1001u; scratch[k] = x[i]; y[i] = scratch[k + 64];",
}


@dataclass
class Variant:
    """A generated kernel, and what it is meant to be."""

    meant: str
    source: str
    trusted: bool = False
    seconds: float | None = None
    result: str = ""


def generate(count: int, seed: int = 1) -> list[Variant]:
    """Make variants: a tenth of them broken in each way, the others right."""
    rng = random.Random(seed)
    variants = []
    for number in range(count):
        kind = list(BROKEN)[number % 10] if number % 10 < len(BROKEN) else "right"
        body = rng.choice(RIGHT) if kind == "right" else BROKEN[kind]
        local = rng.choice((1, 8, 32, 64))
        access = "" if kind == "writes its input" else "readonly"
        source = SHELL.format(number=number, local=local, access=access, step=SIZE, body=body)
        # The guard keeps such a write inside; without it the driver crashes.
        variants.append(Variant(kind, source, trusted=kind == "crashes"))
    rng.shuffle(variants)
    return variants


def evaluate(
    ctx: bh.Context,
    variants: list[Variant],
    streams: int = 2,
    compile_deadline: str = "10s",
    **options: object,
) -> None:
    """Run each variant, and set what came of it."""
    given = np.linspace(-2, 2, SIZE, dtype=np.float32)
    x = ctx.asarray(given)
    expected = given * given + 1
    settings = {"deadline": "1s", "memory": "512M", "isolation": "kernel"} | options
    pool = [ctx.stream(f"evaluator-{n}", tenant="generated", **settings) for n in range(streams)]
    running: dict[bh.Event, tuple[bh.Stream, Variant, bh.Buffer]] = {}

    def finish(event: bh.Event) -> None:
        stream, variant, y = running.pop(event)
        pool.append(stream)
        error = event.exception()
        if error is not None:
            variant.result = error.code
        elif not np.allclose(y.numpy(), expected, atol=1e-5):
            variant.result = "WRONG"
        else:
            variant.result = "OK"
            variant.seconds = event.result().device_ns / 1e9

    for variant in variants:
        try:
            kernel = ctx.kernel(
                source=variant.source, trusted=variant.trusted, deadline=compile_deadline
            )
            if not pool:
                finish(next(bh.as_completed(running)))
            y = ctx.empty(SIZE)
            stream = pool.pop()
            # x is given to read: what a variant writes there changes nothing for the others.
            event = stream.launch(kernel, grid=SIZE, X=bh.read(x), Y=y, timed=True)
            running[event] = stream, variant, y
        except bh.KernelError as error:
            variant.result = error.code
    for event in bh.as_completed(list(running)):
        finish(event)
    for stream in pool:
        stream.close()


def main(count: int) -> None:
    """Generate, evaluate, print."""
    variants = generate(count)
    with bh.Context(quarantine_deaths=0) as ctx:
        evaluate(ctx, variants)
    for (meant, result), number in sorted(Counter((v.meant, v.result) for v in variants).items()):
        print(f"{number:4} {meant:18} {result}")
    right = sorted((v for v in variants if v.seconds is not None), key=lambda v: v.seconds or 0)
    for variant in right[:3]:
        line = next(line for line in variant.source.splitlines() if "for (" in line)
        print(f"{1e6 * (variant.seconds or 0):8.1f} us  {line.strip()}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
