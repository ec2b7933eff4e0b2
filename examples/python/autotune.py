"""Finds the fastest right variant of a reduction.

The kernel adds up an array: each workgroup a part of it, as a tree in workgroup memory. Not every
combination of values is any good. With FOLD=1 the tree never shrinks, so the kernel hangs; where
LOCAL is no power of FOLD, the last step forgets a part, so the sum is wrong. The sweep finds out
which are right, and how long these take.

Usage: autotune.py [CACHE]     keeps results in the file CACHE, where the next run finds them
"""

from __future__ import annotations

import sys

import bulkhead as bh
import numpy as np

SOURCE = """#version 450
layout(local_size_x = LOCAL) in;
layout(constant_id = 0) const uint FOLD = 2;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Sums { float sums[]; };
shared float part[LOCAL];
void main() {
    uint me = gl_LocalInvocationID.x;
    float sum = 0.0;
    for (uint i = gl_GlobalInvocationID.x; i < x.length(); i += LOCAL * gl_NumWorkGroups.x)
        sum += x[i];
    part[me] = sum;
    barrier();
    for (uint width = LOCAL; width > 1; width /= FOLD) {
        if (me < width / FOLD)
            for (uint k = 1; k < FOLD; k++) part[me] += part[me + k * (width / FOLD)];
        barrier();
    }
    if (me == 0) sums[gl_WorkGroupID.x] = part[0];
}
"""
SPACE = {"LOCAL": [64, 96, 256], "FOLD": [1, 2, 4], "GROUPS": [16, 64]}
MOST = 64  # groups
X = np.arange(1 << 18, dtype=np.float32) % 3  # floats hold all sums exactly, in any order


def tune(restrict: str = "LOCAL * GROUPS >= 4096", **options: object) -> bh.Sweep:
    """Try them all, but for small workgroups in small numbers."""

    def check(outputs: dict[str, np.ndarray]) -> None:
        found, expected = (int(one.sum(dtype=float)) for one in (outputs["Sums"], X))
        assert found == expected, f"the sum is {found}, expected {expected}"

    return bh.sweep(
        SOURCE,
        SPACE,
        constants=["FOLD"],  # the others are macros
        groups=lambda values: values["GROUPS"],
        restrict=restrict,
        X=X,
        Sums=np.zeros(MOST, np.float32),
        check=check,
        **options,
    )


if __name__ == "__main__":
    found = tune(cache=sys.argv[1] if len(sys.argv) > 1 else None)
    print(found)
    print("best:", found.best)
