"""What expressions compute, to the bit, held against NumPy."""

import os

import numpy as np
import pytest
import random_expressions

NIGHTLY = "BULKHEAD_TEST_NIGHTLY" in os.environ


def check(stream, text, given, want):
    with np.errstate(all="ignore"):
        got = stream.eval(text, given).numpy()
    if not random_expressions.same(got, want):
        shown = {name: (str(value.dtype), value.tolist()) for name, value in given.items()}
        pytest.fail(f"{text} of {shown} is {got.dtype} {got.tolist()}, not {want.tolist()}")


def test_a_double_is_rounded_once_to_a_half(stream):
    """Halfway between two halves, and by less than a float sees beside that."""
    halves = np.array([0, 1, 2, 0x3FF, 0x400, 0x3C00, 0x3C01, 0x7BFE, 0x7BFF], "u2").view("f2")
    low = halves.astype("f8")
    high = np.append(low[1:], 65536)
    high[[2, 4, 6]] = (halves[[2, 4, 6]].view("u2") + np.uint16(1)).view("f2")
    middle = (low + high) / 2
    x = np.concatenate([middle, middle * (1 + 2**-40), middle * (1 - 2**-40), [1e300, 1e-300, 0]])
    x = np.concatenate([x, -x, [np.inf, -np.inf, np.nan]])
    with np.errstate(all="ignore"):
        check(stream, "f16(x)", {"x": x}, x.astype("f2"))


@pytest.mark.parametrize("part", range(4))
def test_random_expressions(stream, part):
    with np.errstate(all="ignore"):
        for number in range(500 if NIGHTLY else 4):
            random = np.random.default_rng([part, number])
            check(stream, *random_expressions.expression(random, depth=3 + part % 3))


@pytest.mark.parametrize("part", range(2))
def test_random_reductions(stream, part):
    for number in range(500 if NIGHTLY else 4):
        random = np.random.default_rng([part, number])
        text, given, want, slack = random_expressions.reduction(random)
        with np.errstate(all="ignore"):
            got = stream.eval(text, given).numpy()
        if not random_expressions.near(got, want, slack):
            shown = {name: (str(value.dtype), value.tolist()) for name, value in given.items()}
            pytest.fail(f"{text} of {shown} is {got.dtype} {got.tolist()}, not {want.tolist()}")
