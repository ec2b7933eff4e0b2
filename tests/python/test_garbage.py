"""Everything that takes an argument, with every kind of thing that is none: it is refused by an
exception of the package or of Python's own kind for it, or it is taken. (Under ASan and UBSan this
finds what reads past something.)
"""

import contextlib
import datetime
import gc

import bulkhead as bh
import numpy as np
import pytest
from conftest import BOUND, SHADERS


class Raises:
    """Whatever is asked of it raises."""

    def fail(self, *_):
        raise ArithmeticError("from the argument")

    __float__ = __index__ = __len__ = __getitem__ = __bool__ = __iter__ = __fspath__ = fail
    __dlpack__ = __dlpack_device__ = fail


class Endless:
    """A sequence of a length that it does not have."""

    def __len__(self):
        return 2**62

    def __getitem__(self, index):
        return 1


GARBAGE = [
    *(None, 0, 1, -1, 2**31, 2**32, 2**63, 2**64, 10**30, 1.5, 1e300, float("inf"), float("nan")),
    *("", "float32", "i8", "500ms", "\0", "\udc80", "x" * 2000, b"", b"abc", bytearray(8)),
    *([], [1, 2], [[1], [2, 3]], (), (2, 3), (0,), (2**62, 2**62), {}, {"X": 1}, {1: 2}, {1, 2}),
    *(Raises(), [Raises()], {"a": Raises()}, Endless(), object(), len, int, range(3)),
    *(np.float32(2), np.bool_(True), np.array(2.0), np.ones((2, 4), "f4").T, np.zeros(0, "f4")),
    *(np.ones(3, ">f4"), np.array([None]), np.zeros(2, [("a", "i4")]), np.ones(2, "c8")),
    *(memoryview(b"abcd"), datetime.timedelta(seconds=1), bh.Status.OK, True, np.float16),
]
ALLOWED = (bh.Error, TypeError, ValueError, OSError, ArithmeticError, BufferError, MemoryError)


def calls(ctx, stream, kernels):
    """Name: a call with one argument."""
    x, y = ctx.asarray(np.ones(8, "f4")), ctx.empty(8)
    given = {"grid": 8, "X": x, "Y": y, "a": 1, "n": 8}
    launch = stream.prepare(kernels.saxpy, **given)
    event = stream.fill(ctx.empty(1))
    event.wait(BOUND)
    source = "#version 450\nvoid main() {}"
    module = ctx.compile(source=source)
    module.event.wait(BOUND)
    found = {
        "compile": ctx.compile,
        "compile tenant": lambda v: ctx.compile(source=source, tenant=v),
        "compile memory": lambda v: ctx.compile(source=source, memory=v),
        "compile include": lambda v: ctx.compile(source=source, include=v),
        "module kernel": module.kernel,
        "module constants": lambda v: module.kernel(constants=v),
        "launch": lambda v: stream.launch(v, grid=1),
        "submit": lambda v: stream.submit([v]),
        "fill": lambda v: stream.fill(v, 1),
        "fill word": lambda v: stream.fill(y, v),
        "copy": lambda v: stream.copy(v, y),
        "join": lambda v: stream.join(v) if not isinstance(v, Endless) else None,
        "expression": lambda v: stream.eval(v, x=x),
        "eval": lambda v: stream.eval("2*x", x=v),
        "eval out": lambda v: stream.eval("2*x", x=x, out={"o": v}),
        "eval piece": lambda v: stream.eval("2*x", x=x, piece=v),
        "as_completed": lambda v: list(bh.as_completed([v], 0)),
        "map": lambda v: bh.map(v, [{}]),
        "map input": lambda v: bh.map(kernels.square, [v], Y=bh.like("X"), grid=1, streams=1),
        "out": bh.out,
        "read": bh.read,
        "DType": bh.DType,
        "from_dlpack": ctx.from_dlpack,
        "empty_like": ctx.empty_like,
        "dtype": lambda v: ctx.empty(1, v),
        "view": x.view,
        "view shape": lambda v: x.view(shape=v) if not isinstance(v, Endless) else None,
        "write": lambda v: x.write(v) if not isinstance(v, Endless) else None,
        "numpy timeout": lambda v: x.numpy(timeout=v),
        "dlpack device": lambda v: x.__dlpack__(dl_device=v),
        "wait": event.wait,
        "equal": lambda v: event == v,
        "quarantine_release": ctx.quarantine_release,
        "quarantine_release kernel": lambda v: ctx.quarantine_release(None, v),
        "from_memfd": lambda v: ctx.from_memfd(v, 1) if v is not True and v != 1 else None,
        "load tensor": lambda v: ctx.load(SHADERS / "saxpy.spv", v),
        "load size": lambda v: ctx.load(SHADERS / "saxpy.spv", size=v),
        "kernel entry": lambda v: ctx.kernel(SHADERS / "saxpy.spv", entry=v),
        "kernel constants": lambda v: ctx.kernel(SHADERS / "saxpy.spv", constants=v),
        "kernel language": lambda v: ctx.kernel(source=source, language=v) if v else None,
        "kernel trusted": lambda v: ctx.kernel(SHADERS / "saxpy.spv", trusted=v),
        "spares": lambda v: bh.Context(spares=v) if not isinstance(v, (bool, int)) else None,
    }
    for name in (*given, "groups", "args", "after", "deadline", "alone", "timed", "no"):
        less = {key: value for key, value in given.items() if name != "groups" or key != "grid"}

        def launch_with(v, name=name, less=less):
            if not isinstance(v, Endless) or name != "after":
                stream.launch(kernels.saxpy, **less | {name: v})
                launch(**{name: v})

        found[f"launch {name}"] = launch_with
    for name in ("name", "tenant", "deadline", "grace", "memory", "isolation"):
        found[f"stream {name}"] = lambda v, name=name: ctx.stream(**{name: v}).close()
    return found


@pytest.mark.filterwarnings("ignore")  # NumPy's, of odd conversions
def test_it_is_refused_or_taken(ctx, stream, kernels):
    odd = []
    for name, call in calls(ctx, stream, kernels).items():
        for value in GARBAGE:
            try:
                call(value)
            except ALLOWED as error:
                if isinstance(error, bh.Error) and not isinstance(error, bh.Poisoned):
                    assert str(error), (name, value)
            except Exception as error:
                odd.append((name, repr(value)[:40], repr(error)[:80]))
    assert odd == [], "\n".join(map(str, odd))
    gc.collect()
    with contextlib.suppress(bh.Poisoned):  # of what was taken
        stream.synchronize(BOUND)
    stream.reset()
    assert stream.eval("x + 1", x=np.float32([1, 2])).tolist() == [2, 3]
