"""bulkhead.judge: references that are functions, and baselines."""

import os
import signal
import sys
import threading
import time
import types

import bulkhead as bh
import numpy as np
import pytest
from bulkhead import references
from conftest import BOUND, SQUARE, in_thread, squares

# Y = a X + W, and W = W + 1
KERNEL = """#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer W { int w[]; };
layout(set = 0, binding = 2) buffer Y { float y[]; };
layout(push_constant) uniform Push { float a; uint n; };
void main() { uint i = gl_GlobalInvocationID.x;
    if (i < 2 * n) { y[i] = a * x[i] + float(w[i]); w[i] = w[i] + 1; } }
"""
WRONG = KERNEL.replace("y[i] =", "y[i] = i == 70 ? -1e6 :")
MORE, LESS = (KERNEL.replace("float(w[i]);", f"float(w[i]) {by};") for by in ("+ 0.375", "- 0.375"))


def task(**changes):
    small = {"integers": [-9, 9]}
    return {
        "sizes": [{"n": 50, "m": 2}],
        "in": {"X": {"dtype": "f32", "shape": ["m", "n"], "fill": "normal"}},
        "inout": {"W": {"dtype": "i32", "shape": ["m", "n"], "fill": small}},
        "out": {"Y": {"dtype": "f32", "shape": ["m", "n"], "abs": 0.5}},
        "push": {"a": {"uniform": [1, 2]}, "n": "n"},
        "groups": ["ceildiv(2*n, local_x)"],
        "limits": {"deadline": f"{10 * BOUND}s"},
    } | changes


def reference(X, W, *, a):
    return W + 1, a * X + W.astype(np.float32)


def squared(X):
    return X * X


def no_reference(**changes):
    plain = squares(**changes)
    del plain["reference"]
    return plain


RAMP = np.arange(64, dtype="f4")


def computed(function):
    """What the extension module gets for Y = f(X)."""
    f32 = bh.DType("f32").code
    arrays = [
        ("X", f32, (64,), RAMP.tobytes(), False, None, None),
        ("Y", f32, (64,), None, True, None, None),
    ]
    return references.of(function)(arrays, [("n", "64")], [], "n=64, seed 1")


def small(function, name):
    code = bh.DType(name).code
    bits = np.arange(4, dtype=f"u{bh.DType(name).itemsize}").tobytes()
    arrays = [("X", code, (4,), bits, False, None, None), ("Y", code, (4,), None, True, None, None)]
    return references.of(function)(arrays, [], [], "the only size, seed 1")


def test_small_floats_are_those_of_ml_dtypes_or_their_bits(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)  # it is not there
    assert small(lambda X: X + np.uint16(1), "bf16") == [np.arange(1, 5, dtype="u2").tobytes()]
    assert small(lambda X: X + np.uint8(1), "f8_e4m3") == [bytes([1, 2, 3, 4])]
    with pytest.raises(bh.InvalidType, match="is float32, and the task wants uint16"):
        small(lambda X: X.astype("f4"), "bf16")
    monkeypatch.setitem(sys.modules, "ml_dtypes", types.SimpleNamespace(bfloat16=np.dtype("f2")))
    assert small(lambda X: 2 * X, "bf16") == [np.uint16([0, 2, 4, 6]).tobytes()]
    with pytest.raises(bh.InvalidType, match=r"wants float16: return array.astype\('float16'\)"):
        small(lambda X: X.view("u2"), "bf16")


def test_what_a_task_of_small_floats_wrote():
    small_task = task(
        **{"in": {"X": {"dtype": "bf16", "shape": [64], "fill": "bits"}}},
        inout={},
        out={"Y": {"dtype": "bf16", "shape": [64], "nan": "any"}},
        sizes=[{}],
        push={},
        groups=[1],
    )
    kernel = """#version 450
    #extension GL_EXT_shader_16bit_storage : require
    layout(local_size_x = 64) in;
    layout(set = 0, binding = 0) readonly buffer X { uint16_t x[]; };
    layout(set = 0, binding = 1) buffer Y { uint16_t y[]; };
    void main() { uint i = gl_LocalInvocationID.x;
        if (i < 64) y[i] = uint16_t(uint(x[i]) ^ 0x8000u); }"""
    report = bh.judge(small_task, [kernel, kernel.replace("0x8000u", "1u")], reference=negated)
    assert [judgement.verdict for judgement in report] == ["CORRECT", "WRONG"]
    x, y = report[1].inputs()["X"], report[1].actual()["Y"]
    assert x.itemsize == 2 and (x.view("u2") ^ 1 == y.view("u2")).all()


def negated(X):
    return (X.view("u2") ^ np.uint16(0x8000)).view(X.dtype)


def test_a_function_says_what_is_right():
    seen = []

    def look(X, W, *, a, n, m, other=7, **rest):
        assert (X.shape, X.dtype, W.shape, W.dtype) == ((2, 50), np.float32, (2, 50), np.int32)
        assert isinstance(a, float) and 1 <= a <= 2 and (n, m, other, rest) == (50, 2, 7, {})
        assert threading.get_ident() == main
        with pytest.raises(ValueError, match="read-only"):
            W += 1
        seen.append(X)
        return {"Y": (a * X + W).astype("f4"), "W": W + 1}

    main = threading.get_ident()
    report = bh.judge(task(), {"right": KERNEL, "wrong": WRONG}, reference=look)
    assert [one.verdict for one in report] == ["CORRECT", "WRONG"]
    assert len(seen) == 7  # one size with two seeds, and five fills: once each
    assert not np.array_equal(seen[0], seen[1])  # they are the function's, for good
    assert bh.judge(task(), KERNEL, reference=reference).ok
    join = in_thread(lambda: bh.judge(task(), KERNEL, reference=reference).ok)
    assert join()


@pytest.mark.parametrize(
    "function",
    [
        squared,
        lambda **all: all["X"] * all["X"],
        lambda X, /, n: (X * X,),
        lambda X, Y=None: {"Y": X * X},
        lambda *none, X: X * X,
        np.square,
    ],
)
def test_what_a_function_may_take_and_return(function):
    assert computed(function) == [(RAMP * RAMP).tobytes()]


def test_numbers_have_their_types():
    seen = []

    def look(X, f, i, b):
        seen.append((f, i, b))
        return X * X

    push = {"f": 2.5, "i": -3, "b": True}
    assert bh.judge(no_reference(push=push), SQUARE, reference=look).ok
    assert set(map(repr, seen)) == {"(2.5, -3, True)"}


@pytest.mark.parametrize(
    "function, kind, said",
    [
        (lambda X: X.astype("f8"), bh.InvalidType, "output 'Y' is float64, and the task wants float32"),
        (lambda X: X[1:], bh.InvalidArgument, "output 'Y' has the shape (63,), and the task wants (64,)"),
        (lambda X: None, bh.InvalidType, "output 'Y' is object"),
        (lambda X: (X, X), bh.InvalidArgument, "returns 2 outputs; the task has 'Y' (n=64"),
        (lambda X: {}, bh.InvalidArgument, "output 'Y': it does not return it (n=64"),
        (lambda X: {"Y": X, "Z": X}, bh.InvalidArgument, "output 'Z': it returns it; there is none"),
        (lambda Z: Z, bh.InvalidArgument, "a parameter 'Z'; the task has 'n', 'X'"),
    ],
)
def test_what_a_function_returns_is_checked(function, kind, said):
    with pytest.raises(kind) as caught:
        computed(function)
    assert said in str(caught.value)


class Odd(Exception):
    pass


@pytest.mark.parametrize("thread", [False, True])
def test_an_exception_of_a_function_is_that_of_the_call(thread):
    raised = Odd("no oracle today")

    def fails(X):
        if X.size == 1000:
            raise raised
        return X * X

    def check():
        with bh.Judge(no_reference(), reference=fails) as judge:
            for call in (judge.prepare, lambda: judge.run(SQUARE)):
                with pytest.raises(Odd) as caught:
                    call()
                assert caught.value is raised
                assert [one.name for one in caught.traceback][-1] == "fails"
                cause = caught.value.__cause__
                assert isinstance(cause, bh.InvalidArgument)
                assert "cannot judge: its callback fails (n=1000, seed 1)" in str(cause)
        return True

    assert in_thread(check)() if thread else check()


def test_an_exception_keeps_its_own_cause():
    def fails(X):
        raise Odd from ZeroDivisionError("nothing")

    with pytest.raises(Odd) as caught:
        bh.judge(no_reference(), SQUARE, reference=fails)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def checked_task():
    out = {"Y": {"dtype": "f32", "shape": ["m", "n"], "compare": "check"}}
    return task(out=out)


def test_a_check_says_what_is_wrong():
    seen = []

    def check(inputs, outputs, expected):
        assert list(inputs) == ["n", "m", "a", "X", "W"] and inputs["n"] == 50
        assert list(outputs) == list(expected) == ["W", "Y"]
        assert np.array_equal(outputs["W"], expected["W"]) and not outputs["Y"].flags.writeable
        seen.append(outputs["Y"])
        worst = np.abs(outputs["Y"] - expected["Y"]).max()
        return None if worst < 1 else f"off by {worst:.1e}:\nmuch"

    given = {"right": LESS, "wrong": WRONG}
    right, wrong = bh.judge(checked_task(), given, reference=reference, check=check)
    assert right.correct and [one.output for one in right.errors] == ["W"], right
    assert wrong.message == "Y: off by 1.0e+06: much (n=50, m=2, seed 1)"
    assert wrong.wrong == bh.Wrong("Y", (), "", "", 0, 100, 100)
    assert len(seen) == right.runs + 2 and seen[0].shape == (2, 50)  # one more look at what is wrong


def test_arrays_of_0_elements_have_their_shape():
    sizes = []

    def empties(X, W, *, a, n):
        sizes.append(n)
        assert X.shape == W.shape == (2, n)
        return reference(X, W, a=a)

    def check(inputs, outputs, expected):
        assert outputs["Y"].shape == expected["Y"].shape == (2, inputs["n"])
        return "nothing is wrong" if inputs["n"] == 0 and inputs["m"] == 2 else None

    with_zero = {"check_sizes": [{"n": 0, "m": 2}]}
    right = bh.judge(task(**with_zero), KERNEL, reference=empties)[0]
    assert right.correct and sizes.count(0) == 2, right
    wrong = bh.judge(checked_task() | with_zero, KERNEL, reference=empties, check=check)[0]
    assert wrong.message == "Y: nothing is wrong (n=0, m=2, seed 1)"
    for part in wrong.inputs(), wrong.expected(), wrong.actual():
        assert all(array.shape == (2, 0) for array in part.values()), part


def test_checks_of_several_workers():
    """A check that one call of it waits for another is called by several threads at once."""
    both, seen = threading.Barrier(2, timeout=BOUND), set()

    def check(inputs, outputs, expected):
        if threading.get_ident() not in seen:
            seen.add(threading.get_ident())
            both.wait()
        return None if np.abs(outputs["Y"] - expected["Y"]).max() < 1 else "off"

    given = {"right": KERNEL, "less": LESS, "wrong": WRONG}
    report = bh.judge(checked_task(), given, reference=reference, check=check, workers=2)
    assert [one.verdict for one in report] == ["CORRECT", "CORRECT", "WRONG"]
    assert len(seen) >= 2


def test_an_exception_of_a_check_is_that_of_the_call():
    def fails(inputs, outputs, expected):
        raise Odd

    with bh.Judge(checked_task(), reference=reference, check=fails) as judge:
        with pytest.raises(Odd) as caught:
            judge.run(KERNEL)
        assert "the check fails (n=50, m=2, seed 1)" in str(caught.value.__cause__)

    def says(inputs, outputs, expected):
        return False

    with pytest.raises(bh.InvalidType, match=r"the check: None or a message, not .*bool"):
        bh.judge(checked_task(), KERNEL, reference=reference, check=says)


def test_a_task_wants_a_check():
    with pytest.raises(bh.InvalidArgument, match='output "Y" is compared by "check"'):
        bh.judge(checked_task(), KERNEL, reference=reference)
    with pytest.raises(bh.InvalidArgument, match="options.check needs an output"):
        bh.judge(task(), KERNEL, reference=reference, check=print)
    with pytest.raises(bh.InvalidType, match="check: a function, not"):
        bh.judge(checked_task(), KERNEL, reference=reference, check="all")


def test_an_interrupt_ends_a_function():
    def sleeps(X):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(BOUND)
        raise AssertionError("it was not interrupted")

    with bh.Judge(no_reference(), reference=sleeps) as judge:
        with pytest.raises(KeyboardInterrupt):
            judge.prepare()
        with pytest.raises(bh.Cancelled):
            judge.run(SQUARE)


def test_a_function_cannot_use_the_judge_that_waits_for_it():
    def asks(X):
        with pytest.raises(bh.Error, match="waits for the function that calls it"):
            judge.run(SQUARE)
        return X * X

    with bh.Judge(no_reference(), reference=asks) as judge:
        assert judge.run(SQUARE).correct


def test_a_task_has_one_reference():
    with pytest.raises(bh.InvalidArgument, match='^task: there is no "reference"'):
        bh.judge(no_reference(), SQUARE)
    with pytest.raises(bh.InvalidArgument, match="excludes the .reference. that the task has"):
        bh.judge(squares(), SQUARE, reference=squared)
    with pytest.raises(bh.InvalidType, match="reference: a function, not"):
        bh.judge(no_reference(), SQUARE, reference=7)
    with pytest.raises(bh.InvalidArgument, match="options.timed needs a reference that takes time"):
        bh.judge(no_reference(), SQUARE, reference=squared, time=True)


def test_a_baseline(tmp_path):
    """Both are near the reference. They are not near each other, which is of no account."""
    times = {"reference": reference, "time": True, "warm": True, "timed_runs": 5}
    path = tmp_path / "more.comp"
    path.write_text(MORE)
    (less,) = bh.judge(task(), LESS, baseline=path, **times)
    assert less.correct and less.timings[0].reference > 0, less
    with pytest.raises(bh.InvalidArgument, match=r"^the baseline baseline is WRONG: Y\[1,20\] is"):
        bh.judge(task(), LESS, baseline=WRONG, **times)
    with pytest.raises(bh.InvalidArgument, match="options.baseline needs timed"):
        bh.judge(task(), LESS, reference=reference, baseline=MORE)
    for bad in (7, b"", "\0"):
        with pytest.raises((bh.InvalidType, bh.InvalidArgument), match="judge: baseline: "):
            bh.judge(task(), LESS, baseline=bad, **times)


def test_an_exception_in_a_timed_run_is_that_of_the_call():
    calls = []

    def fails_later(X, W, a):
        calls.append(a)
        if len(calls) > 7:
            raise Odd
        return reference(X, W, a=a)

    times = {"reference": fails_later, "time": True, "warm": True, "timed_runs": 5}
    with pytest.raises(Odd):
        bh.judge(task(), LESS, baseline=MORE, **times)
