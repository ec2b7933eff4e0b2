"""What expressions compute, to the bit, held against NumPy."""

import os

import numpy as np
import pytest
import random_expressions

NIGHTLY = "BULKHEAD_TEST_NIGHTLY" in os.environ


def check(stream, text, given, want):
    with np.errstate(all="ignore"):
        got = stream.eval(text, given).numpy()
    if not random_expressions.same(got.reshape(-1), want):
        shown = {name: (str(value.dtype), value.tolist()) for name, value in given.items()}
        pytest.fail(f"{text} of {shown} is {got.dtype} {got.tolist()}, not {want.tolist()}")


@pytest.mark.parametrize("part", range(4))
def test_random_expressions(stream, part):
    with np.errstate(all="ignore"):
        for number in range(500 if NIGHTLY else 4):
            random = np.random.default_rng([part, number])
            check(stream, *random_expressions.expression(random, depth=3 + part % 3))
