"""What the tests share. A test that is skipped has failed: each of them can run everywhere."""

import contextlib
import gc
import os
import threading
import time
from pathlib import Path

import bulkhead as bh
import pytest

BUILD = Path(os.environ["BULKHEAD_TEST_BUILD"])
SOURCE = Path(os.environ["BULKHEAD_TEST_SOURCE"])
SHADERS = BUILD / "share" / "bulkhead" / "shaders"
SLOWNESS = int(os.environ.get("BULKHEAD_TEST_SLOWNESS", "1"))
BOUND = 60 * SLOWNESS  # seconds: for what takes a moment unless something is wrong


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped"


def descriptors():
    """What is open, but for files, which pytest opens and closes."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the folder itself
            target = os.readlink(f"/proc/self/fd/{name}")
            if "memfd:" in target or not target.startswith("/"):
                found.append(target)
    return sorted(found)


def children():
    found = []
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/children") as file:
            found += file.read().split()
    return found


before = descriptors()


def pytest_sessionfinish(session):
    """A file of tests leaves neither descriptors nor processes."""
    bh.context._close_all()
    gc.collect()
    left = [one for one in descriptors() if one not in before]
    if any(thread.name == "bulkhead-callbacks" for thread in threading.enumerate()):
        left.remove("anon_inode:[eventfd]")  # it lives as long as the process
    # The traceback of a failure keeps what it shows.
    if not session.testsfailed and (left or children()):
        print(f"\nFAILED: these are left: {left}, processes {children()}")
        session.exitstatus = 1


@pytest.fixture(autouse=True)
def said(monkeypatch):
    """Every message of an exception that a test raises is in words of Python."""
    make, foreign = bh.Error.__init__, []

    def record(self, message="", **more):
        make(self, message, **more)
        if "bh_" in message.lower():
            foreign.append(message)

    monkeypatch.setattr(bh.Error, "__init__", record)
    yield
    assert foreign == []


@pytest.fixture(scope="module")
def ctx():
    # On a slow machine a kernel may not stop in time, and be quarantined for killing its worker.
    with bh.Context(spares=0, quarantine_deaths=0) as context:
        yield context


@pytest.fixture(scope="module")
def stream(ctx):
    with ctx.stream(grace=f"{250 * SLOWNESS}ms") as made:
        yield made


@pytest.fixture(scope="module")
def kernels(ctx):
    """The kernels that ship, by name."""

    class Kernels:
        def __getattr__(self, name):
            kernel = ctx.kernel(SHADERS / f"{name}.spv")
            setattr(self, name, kernel)
            return kernel

    return Kernels()


@pytest.fixture
def held(ctx, kernels):
    """A submission that is pending until the test ends: (its event, the buffer that it writes)."""
    with ctx.stream(grace=f"{250 * SLOWNESS}ms") as stream:
        data = ctx.empty(64, "uint32")
        event = stream.launch(kernels.hang, groups=4096, deadline=BOUND, Data=data)
        yield event, data
        event.cancel()
        assert event.exception(BOUND) is not None


SQUARE = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) buffer Y { float y[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < x.length()) y[i] = x[i] * x[i];
}
"""


def squares(fill=1.5, **changes):
    """A task of y = x*x, for which SQUARE is right."""
    return {
        "name": "square",
        "sizes": [{"n": 64}, {"n": 1000}],
        "in": {"X": {"dtype": "f32", "shape": ["n"], "fill": {"uniform": [fill, fill]}}},
        "out": {"Y": {"dtype": "f32", "shape": ["n"], "ulp": 1}},
        "groups": ["ceildiv(n, local_x)"],
        "reference": {"eval": "Y = X*X"},
        "limits": {"deadline": f"{10 * SLOWNESS}s"},
    } | changes


def until(condition, what):
    """Wait for something that happens by itself, in bounded time."""
    end = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.001)


def in_thread(function):
    """Run a function in a thread; returns what waits for it and gives its result."""
    box = []

    def run():
        try:
            box.append((function(), None))
        except BaseException as error:
            box.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()

    def join():
        thread.join(BOUND)
        assert not thread.is_alive()
        result, error = box[0]
        if error is not None:
            raise error
        return result

    return join
