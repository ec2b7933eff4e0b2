"""Reductions: stages, parts and pieces, held against NumPy."""

import numpy as np
import pytest
import bulkhead as bh

LONG = np.random.default_rng(7).standard_normal(70000).astype("f4")
ROWS = LONG[:60000].reshape(300, 200)


def near(got, want):
    got, want = got.numpy(), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-5)


def test_long_sums_are_left_in_parts_and_these_are_reduced(stream):
    near(stream.eval("sum(x)", x=LONG), LONG.sum())
    near(stream.eval("mean(x, axis=0)", x=ROWS), ROWS.mean(axis=0))
    near(stream.eval("mean(f16(x))", x=LONG), np.float16(LONG.astype("f2").astype("f4").mean()))
    assert stream.eval("argmax(x)", x=LONG).numpy() == LONG.argmax()


def test_a_sum_is_as_near_as_numpys(stream):
    ones = np.full(1 << 22, 0.1, "f4")
    exact = float(ones[0]) * ones.size
    assert abs(float(stream.eval("sum(x)", x=ones).numpy()) - exact) <= 4 * abs(
        float(ones.sum()) - exact
    ) + exact * 2**-23


def test_a_softmax_is_several_kernels(stream):
    e = np.exp(ROWS - ROWS.max(axis=1, keepdims=True))
    text = """e = exp(x - max(x, axis=1, keepdims=true))
              e / sum(e, axis=1, keepdims=true)"""
    near(stream.eval(text, x=ROWS), e / e.sum(axis=1, keepdims=True))
    near(stream.eval("mean(exp(x - max(x, axis=1, keepdims=1)), axis=1)", x=ROWS), e.mean(axis=1))


def test_the_same_bytes_each_time(stream):
    results = {stream.eval("sum(x * 1.7)", x=LONG).numpy().tobytes() for _ in range(3)}
    assert len(results) == 1


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("mean(x, axis=0)", ROWS.mean(axis=0)),
        ("argmax(x)", ROWS.argmax()),
        ("max(x, axis=1)", ROWS.max(axis=1)),
    ],
)
def test_pieces(stream, text, want):
    near(stream.eval(text, x=ROWS, piece=32768), want)


def test_integers_wrap_and_nan_is_numpys(stream):
    large = np.full(5, 2**62, "i8")
    assert stream.eval("sum(x)", x=large).numpy() == large.sum()
    holes = np.float32([1, np.nan, 3, np.nan])
    assert np.isnan(stream.eval("max(x)", x=holes).numpy())
    assert stream.eval("argmin(x)", x=holes).numpy() == 1


def test_without_elements(stream):
    none = np.zeros((0, 3), "f4")
    assert stream.eval("sum(x, axis=0)", x=none).tolist() == [0, 0, 0]
    assert stream.eval("prod(x, axis=0)", x=none).tolist() == [1, 1, 1]
    assert stream.eval("all(x)", x=none).tolist() is True
    assert stream.eval("max(x, axis=1)", x=none).tolist() == []
    with pytest.raises(bh.InvalidArgument, match="column 5: argmax of .0,3.: there is no argmax"):
        stream.eval("1 + argmax(x, axis=0)", x=none)


def test_an_output_that_is_still_read_is_refused(ctx, stream):
    x = ctx.asarray(LONG)
    near(stream.eval("x = x - mean(x)", x=x, out={"x": x}), LONG - LONG.mean())
    row = ctx.asarray(LONG[:9].reshape(1, 9))
    with pytest.raises(bh.InvalidArgument, match="output 'z' overlaps 'x'"):
        stream.eval("z = sum(x, axis=0, keepdims=true)", x=row, out={"z": row})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x - sum(x, axis=2)", "column 5: sum: there is no axis 2 of .300,200."),
        ("sum(x, axis=(0, -2))", "column 1: sum: axis -2 of .300,200. is given twice"),
        ("1 + sum(x & 1)", "column 11: & needs integers"),
    ],
)
def test_columns_are_those_of_the_text(stream, text, why):
    with pytest.raises(bh.InvalidArgument, match=why):
        stream.eval(text, x=ROWS)
