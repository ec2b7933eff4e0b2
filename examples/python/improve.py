"""Improves a kernel by trying variants: the loop for any generator of kernels, such as a model.

Each step changes something in the best kernel so far. Many changes are no good: some kernels do not
compile, some compute something else. A judge says which are right, on sizes and seeds that the
generator has not seen, and how long they take beside the reference. A right one is kept if it is
faster.

Usage: improve.py [STEPS]     tries STEPS variants (30) of a polynomial
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from dataclasses import dataclass, field, replace

import bulkhead as bh

TASK = {
    "name": "polynomial",
    "sizes": [{"n": 65536}],
    "check_sizes": [{"n": 1}, {"n": 1000}, {"n": 4097}],
    "in": {"X": {"dtype": "f32", "shape": ["n"], "fill": {"uniform": [-4, 4]}}},
    "out": {"Y": {"dtype": "f32", "shape": ["n"], "abs": 1e-4, "rel": 1e-5}},
    "push": {"n": "n"},
    "groups": ["ceildiv(n, 8 * local_x)"],
    "reference": {"eval": "Y = ((0.5*X + 1)*X - 2)*X + 3"},
}
SHELL = """#version 450
layout(local_size_x = {local}) in;
layout(binding = 0) readonly buffer X {{ float x[]; }};
layout(binding = 1) buffer Y {{ float y[]; }};
layout(push_constant) uniform Push {{ uint n; }};
void main() {{
    uint me = gl_GlobalInvocationID.x, all = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    {loop} {{ float v = x[i]; y[i] = {form}; }}
}}
"""
FORMS = (
    "((0.5 * v + 1.0) * v - 2.0) * v + 3.0",
    "fma(fma(fma(0.5, v, 1.0), v, -2.0), v, 3.0)",
    "0.5 * v * v * v + v * v - 2.0 * v + 3.0",
    "0.5 * pow(v, 3.0) + v * v - 2.0 * v + 3.0",  # no number where v < 0
    "((0.5 * v + 1) * w - 2.0) * v + 3.0",  # there is no w
)
LOOPS = (
    "for (uint i = me; i < n; i += all)",
    "for (uint k = (n + all - 1) / all, i = me * k; i < min(n, me * k + k); i++)",
    "for (uint k = n / all, i = me * k; i < me * k + k; i++)",  # forgets the rest
)


@dataclass(frozen=True)
class Variant:
    """A kernel, as the generator describes it. Not every one is right."""

    local: int = 1
    loop: int = 1
    form: int = 2

    @property
    def source(self) -> str:
        """Its GLSL."""
        return SHELL.format(local=self.local, loop=LOOPS[self.loop], form=FORMS[self.form])


def mutate(rng: random.Random, variant: Variant) -> Variant:
    """Change one thing, or two."""
    changes = {
        "local": rng.choice((1, 8, 32, 48, 64, 128)),
        "loop": rng.randrange(len(LOOPS)),
        "form": rng.randrange(len(FORMS)),
    }
    return replace(variant, **{what: changes[what] for what in rng.sample(list(changes), 2)})


@dataclass
class Search:
    """What came of a search."""

    best: Variant
    ratio: float
    """Of the best: its time over that of the reference."""
    verdicts: Counter[str] = field(default_factory=Counter)
    steps: list[tuple[Variant, float]] = field(default_factory=list)
    """The best ones, one after the other, with their ratios."""


def improve(judge: bh.Judge, steps: int, seed: int = 1) -> Search:
    """Try `steps` variants, each a change of the best one so far."""
    rng = random.Random(seed)
    variant = Variant()
    search = Search(variant, math.inf)
    for number in range(steps + 1):
        judgement = judge.run(variant.source, name=f"variant-{number}")
        search.verdicts[judgement.verdict] += 1
        # Not known: the machine did not keep its pace, so this variant has lost its chance.
        ratio = judgement.timings[-1].ratio if judgement.correct else None
        if ratio is not None and ratio < search.ratio:
            search.best, search.ratio = variant, ratio
            search.steps.append((variant, ratio))
        variant = mutate(rng, search.best)
    return search


def main(steps: int) -> None:
    """Search, and print what came of it."""
    with bh.Judge(TASK, time=True, timed_runs=20) as judge:
        search = improve(judge, steps)
    for verdict, count in search.verdicts.most_common():
        print(f"{count:4} {verdict}")
    for variant, ratio in search.steps:
        print(f"{ratio:7.3f} times as long as the reference: {variant}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
