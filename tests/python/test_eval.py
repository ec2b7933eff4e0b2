"""Expressions."""

import gc
import signal

import bulkhead as bh
import numpy as np
import pytest
from conftest import BOUND


def test_types_are_numpys(ctx, stream):
    for left, right in (("f2", "f4"), ("i2", "u2"), ("i4", "f4")):
        x, y = np.arange(4).astype(left), np.arange(4).astype(right)
        z = stream.eval("x + y", x=x, y=ctx.asarray(y))
        assert z.numpy().dtype == np.result_type(x, y)
        np.testing.assert_array_equal(z.numpy(), x + y)


def test_numbers_of_python_have_no_size(ctx, stream):
    for dtype, number in (("float16", 0.5), ("float64", 2), ("uint16", 2)):
        assert stream.eval("a*x", x=np.arange(4).astype(dtype), a=number).dtype == dtype
    assert stream.eval("a*x", x=np.arange(4, dtype="i4"), a=0.5).dtype == "float64"
    # One of NumPy has its own.
    assert stream.eval("a*x", x=np.arange(4, dtype="f2"), a=np.float32(0.5)).dtype == "float32"
    assert stream.eval("x ? y : -y", x=True, y=np.float32([1, 2])).tolist() == [1, 2]
    with pytest.raises(bh.InvalidArgument, match="eval: a: 300 does not fit uint8"):
        stream.eval("a*x", x=np.arange(4, dtype="u1"), a=300)


def test_statements(ctx, stream):
    x = ctx.asarray(np.float32([1, 2, 3]))
    assert stream.eval("t = x - m; t*t", x=x, m=2.0).tolist() == [1, 0, 1]
    assert stream.eval("t = x - m\nz = t*t", x=x, m=2.0).tolist() == [1, 0, 1]
    assert stream.eval("x == 2 ? 1.0 : 0.0", x=x).tolist() == [0, 1, 0]
    assert stream.eval("result + 1", result=x).tolist() == [2, 3, 4]
    assert stream.eval("x + 1;", {"x": x}).tolist() == [2, 3, 4]
    out = ctx.empty(3)
    assert stream.eval("z = 2*x", x=x, out={"z": out}) is out and out.tolist() == [2, 4, 6]
    assert stream.eval("3*x", x=x, out={"any": out}) is out and out.tolist() == [3, 6, 9]
    matrix = stream.eval("x*y", x=np.ones((2, 3), "f4"), y=np.float32([[2]]))
    assert matrix.shape == (2, 3) and matrix.event.state in ("PENDING", "READY")


@pytest.mark.parametrize(
    ("expression", "given", "error", "says"),
    [
        ("x + * 2", {"x": [1.0]}, bh.InvalidArgument, "eval: column 5: '*' where"),
        ("x + y", {"x": [1.0]}, bh.InvalidArgument, "eval: column 5: there is no input 'y'"),
        ("z = x + y", {"x": [1.0]}, bh.InvalidArgument, "eval: column 9: there is no input 'y'"),
        ("t = y; t", {"x": [1.0]}, bh.InvalidArgument, "eval: column 5: there is no input 'y'"),
        ("t = x;  y", {"x": [1.0]}, bh.InvalidArgument, "eval: column 9: there is no input 'y'"),
        ("t = x\n  t+y", {"x": [1.0]}, bh.InvalidArgument, "eval: line 2, column 5: there is no"),
        ("t = y\nt", {"x": [1.0]}, bh.InvalidArgument, "eval: line 1, column 5: there is no"),
        ("2*x", {"x": [1.0], "out": [1]}, bh.InvalidType, "eval: out: a dict of a name and a Buff"),
        ("2*x", {"x": [1.0], "out": {}}, bh.InvalidArgument, "eval: out: it is empty"),
        ("x + y", {"x": np.ones(3), "y": np.ones(4)}, bh.InvalidArgument, "x is [3] and y is [4]"),
        ("2*x", {"x": "text"}, bh.InvalidType, "eval: x: an array or a number"),
        ("2*x", {"x": None}, bh.InvalidType, "eval: x: an array or a number"),
        ("2*x", {"x": np.ones(2, "c8")}, bh.InvalidType, "no such type"),
        ("300*x", {"x": np.ones(2, "u1")}, bh.InvalidArgument, "out of the range of u8"),
        (5, {"x": [1.0]}, bh.InvalidType, "eval: expression: a text"),
        ("", {"x": [1.0]}, bh.InvalidArgument, ""),
        ("x", {f"x{i}": 1.0 for i in range(80)}, bh.InvalidArgument, "more than 64"),
        ("2*x", {"x": [1.0], "after": [5]}, bh.InvalidType, "after: an Event"),
        (
            "2*x",
            {"x": [1.0], "out": {"a": 1, "b": 2}},
            bh.InvalidArgument,
            "eval: out: the result is",
        ),
    ],
)
def test_what_is_wrong_is_named(stream, expression, given, error, says):
    with pytest.raises(error) as raised:
        stream.eval(expression, **given)
    assert says in str(raised.value)


def test_wrong_outputs(ctx, stream):
    x = ctx.asarray(np.float32([1, 2]))
    for out in (ctx.empty(3), ctx.empty(2, "f8")):
        with pytest.raises(bh.InvalidArgument, match="out"):
            stream.eval("2*x", x=x, out={"out": out})
    for wrong in (np.ones(2), -1, 2, 2**70, None):
        with pytest.raises(bh.InvalidType, match="eval: result: a Buffer, not"):
            stream.eval("2*x", x=x, out={"result": wrong})
    template = ctx._template("z = a*x", (("x", 1), ("z", 2), ("a", 4)))
    for code in (-1, 0, 99, 2**70):
        with pytest.raises(bh.InvalidType, match="eval: a: .* is no type"):
            template.output([("x", x, False), ("a", code, 1.0)], "z")
    # In place is allowed.
    stream.eval("2*x", x=x, out={"y": x})
    assert x.tolist() == [2, 4]


def test_pieces(ctx, stream):
    x = np.arange(10_000, dtype="f4")
    for piece in ("4K", 1000, 1, "1T", "none"):
        y = stream.eval("a*x + one", x=x, a=2.0, one=np.float32([[1]]), piece=piece)
        np.testing.assert_array_equal(y.numpy(), [2 * x + 1])
    # In place, a shorter last piece, types of several sizes, a number before the arrays.
    out = ctx.asarray(x)
    stream.eval("a*x", {"a": 3.0, "x": out}, out={"y": out}, piece="1K")
    np.testing.assert_array_equal(out.numpy(), 3 * x)
    y = np.arange(10_000, dtype="u2")[::-1]
    np.testing.assert_array_equal(stream.eval("x > y", x=x, y=y, piece=512).numpy(), x > y)
    assert stream.eval("x + 1", x=np.empty(0, "f4"), piece="1K").size == 0
    with pytest.raises(bh.InvalidArgument, match="eval: piece: 'few' is not a size"):
        stream.eval("x", x=x, piece="few")


def test_an_array_larger_than_the_device_binds(ctx):
    # One more than lavapipe binds. On a device that binds more it is one piece.
    x = ctx.empty((128 << 20) + 1, "uint8")
    x.write(np.resize(np.arange(251, dtype="u1"), x.size))
    with ctx.stream(deadline=BOUND) as stream:  # it has no worker yet
        y = stream.eval("x ^ 1", x=x)
        y.event.wait(BOUND)
    a, b = x.numpy(), y.numpy()
    for part in (slice(0, 4096), slice((128 << 20) - 4096, None)):
        np.testing.assert_array_equal(b[part], a[part] ^ 1)


def test_each_piece_has_the_whole_deadline(ctx):
    x = ctx.asarray(np.arange(1 << 22, dtype="f4"))
    sines = "sin(" * 30 + "{}" + ")" * 30
    long = f"s = {sines.format('x')}; t = {sines.format('s')}; {sines.format('t')}"
    with ctx.stream(deadline="200us") as stream:
        for deadline, ns in ((None, 200_000), ("100us", 100_000)):
            y = stream.eval(long, x=x, piece="2M", deadline=deadline)
            error = y.event.exception(BOUND)
            assert error.code == "DEADLINE"
            assert abs(error.verdict.limit - 8 * ns) < 100  # 200us is no number of binary digits


def test_poison_flows_through(ctx, stream, kernels):
    x = ctx.empty(64, "uint32")
    stream.launch(kernels.hang, groups=4096, Data=x, deadline="50ms").exception(BOUND)
    y = stream.eval("x + 1", x=x)
    with pytest.raises(bh.VictimError):
        y.numpy()
    with pytest.raises(bh.Poisoned):
        y.event.wait(BOUND)


def test_an_expression_is_compiled_once(ctx, stream):
    x = ctx.asarray(np.float32([1, 2]))
    for text, wanted in {"7*x": [7, 14], "x - mean(x)": [-0.5, 0.5]}.items():
        stream.eval(text, x=x).event.wait(BOUND)
        before = ctx.stats()["kernels_introduced"]
        for n in range(20):
            assert stream.eval(text, x=x).tolist() == wanted
        assert ctx.stats()["kernels_introduced"] == before
    for n in range(1, 35):  # a plan forgets the oldest of its kernels: each length has its own
        x = np.ones(500 * n, "f4")
        assert stream.eval("sum(x)", x=x).numpy() == 500 * n
    for n in range(80):  # the context forgets the oldest expressions
        ctx._template(f"result = {n} + x", (("x", 1), ("result", 2)))
    assert len(ctx._templates) == 64


def test_one_memory_as_several_types(ctx, stream):
    x = np.arange(1, 4097, dtype="f4")
    b = ctx.asarray(x)
    for piece in (None, "4K"):
        # The bits of each float beside the float.
        z = stream.eval("c > 1065353216 ? a : -a", a=b, c=b.view("u4"), piece=piece)
        np.testing.assert_array_equal(z.numpy(), np.where(x.view("u4") > 1065353216, x, -x))
        # Two ranges of it; the first was not described for another argument.
        low, high = ctx.asarray(b.numpy()[:2048]), ctx.asarray(b.numpy()[2048:])
        gc.collect()
        z = stream.eval("h - l", h=high, l=low, piece=piece)
        np.testing.assert_array_equal(z.numpy(), np.full(2048, 2048, "f4"))
    # In place, as another type.
    stream.eval("a + 1", a=b.view("i4"), out={"o": b.view("i4")})
    np.testing.assert_array_equal(b.view("i4").numpy(), x.view("i4") + 1)
    part = ctx.asarray(b.numpy().view("?")[:4096])
    gc.collect()
    with pytest.raises(bh.InvalidArgument, match="output 'o' overlaps 'a'"):
        stream.eval("o = a > 1", a=b, out={"o": part})


def test_small_floats_are_computed_as_float32(ctx, stream):
    small = {"bf16": np.uint16([0x3F80, 0xC040]), "f8e4m3": np.uint8([0x38, 0xC4]), "f8e5m2": np.uint8([0x3C, 0xC2])}
    for name, bits in small.items():
        z = stream.eval("x + 1", x=ctx.asarray(bits).view(name))
        assert z.dtype == "float32" and z.tolist() == [2, -2]


def test_a_handler_may_evaluate_too(ctx, stream, monkeypatch):
    """What runs in the middle of an evaluation, a handler or a finalizer, can evaluate, too."""
    x = ctx.asarray(np.float32([1, 2]))
    seen, pieces = [], bh.Stream._pieces

    def in_the_middle(*arguments):
        if not seen:
            seen.append(None)
            signal.raise_signal(signal.SIGUSR1)
        return pieces(*arguments)

    def handler(*_):
        seen.append(stream.eval("x + 40", x=x).tolist())

    def late(*_):
        raise AssertionError("it waits for itself")

    before = [signal.signal(signal.SIGUSR1, handler), signal.signal(signal.SIGALRM, late)]
    monkeypatch.setattr(bh.Stream, "_pieces", in_the_middle)
    signal.setitimer(signal.ITIMER_REAL, BOUND)
    try:
        assert stream.eval("x + 1", x=x).tolist() == [2, 3]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGUSR1, before[0])
        signal.signal(signal.SIGALRM, before[1])
    assert seen == [None, [41, 42]]
