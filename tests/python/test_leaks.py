"""Ten thousand rounds leave nothing: neither objects nor memory nor descriptors."""

import contextlib
import gc
import itertools
import sys
import threading

import bulkhead as bh
import numpy as np
import pytest
from conftest import BOUND, descriptors

ROUNDS, WARM = 10_000, 1_000
# Of several thousand rounds: less than a byte each. The allocators keep some pages.
SPARE_BLOCKS, SPARE_BYTES = 300, 4 << 20


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def check_rounds(one_round, rounds=ROUNDS):
    def measure():
        gc.collect()
        return sys.getallocatedblocks(), resident(), len(descriptors())

    for _ in range(WARM):
        one_round()
    before = measure()
    for _ in range(rounds - WARM):
        one_round()
    after = measure()
    grown = [b - a for a, b in zip(before, after)]
    assert grown[0] < SPARE_BLOCKS and grown[1] < SPARE_BYTES and grown[2] <= 0, grown


def test_launches(ctx, stream, kernels):
    x, y = ctx.asarray(np.arange(64, dtype="f4")), ctx.empty(64)

    turns = itertools.count()

    def one_round():
        event = stream.launch(kernels.saxpy, grid=64, X=x, Y=bh.out(y), a=1, n=64)
        if next(turns) % 20 == 0:
            event.wait(BOUND)

    check_rounds(one_round)


def test_buffers_and_views(ctx, stream):
    array = np.arange(64, dtype="f4")

    def one_round():
        x = ctx.asarray(array, stream=stream)
        view = x.numpy()
        memoryview(x.view("u4"))
        again = ctx.asarray(view)
        np.asarray(again)
        again.__dlpack__(max_version=(1, 0))
        x.__dlpack__()
        repr(x), x.state, x.event, x.dtype, x.views

    check_rounds(one_round)


def test_everything_that_is_refused(ctx, stream, kernels):
    x, y = ctx.empty(64), ctx.empty(64)
    view = x.numpy()
    launch = stream.prepare(kernels.saxpy, grid=64, X=x, Y=y, a=1, n=64)

    def one_round():
        for refused in (
            lambda: stream.launch(kernels.saxpy, grid=64, X=y, Y=x, a=1, n=64),
            lambda: stream.launch(kernels.saxpy, grid=64, X=y, Y=y, a="1", n=64),
            lambda: stream.launch(kernels.saxpy, grid=64, X=y, a=1, n=64),
            lambda: stream.launch(kernels.saxpy, grid=64, X=view),
            lambda: stream.launch(kernels.saxpy, grid=64, X=ctx, after=[5]),
            lambda: launch(a="x"),
            lambda: launch(args={"Y": x}),
            lambda: ctx.empty(-1),
            lambda: ctx.asarray(np.ones(2, ">f4")),
            lambda: x.view("f8", 7),
            lambda: stream.submit([bh.copy(y, x)]),
            lambda: stream.submit([launch, 5]),
            lambda: np.frombuffer(x, "f4").setflags(write=True),
            lambda: ctx.from_dlpack(np.ones(2, "c8")),
            lambda: stream.eval("x +", x=y),
            lambda: ctx.stream(deadline=0),
        ):
            with contextlib.suppress(bh.Error, ValueError):
                refused()
                pytest.fail("it was not refused")

    check_rounds(one_round, 3_000)
    del view


def test_events(ctx, stream):
    import asyncio

    buffers = [ctx.empty(1) for _ in range(8)]

    async def await_all():
        for _ in range(100):
            await asyncio.gather(*(wait(stream.fill(b)) for b in buffers))

    async def wait(event):
        await event

    def one_round():
        events = [stream.fill(b) for b in buffers]
        for event in bh.as_completed(events, BOUND):
            event.verdict
        called = threading.Event()  # the thread that calls them is not behind
        events[0].add_done_callback(lambda _: called.set())
        assert called.wait(BOUND)
        hash(events[0]), events[0] == events[1]

    check_rounds(one_round, 3_000)
    asyncio.run(await_all())
    before = sys.getallocatedblocks()
    for _ in range(5):
        asyncio.run(await_all())
    gc.collect()
    assert sys.getallocatedblocks() - before < SPARE_BLOCKS


def test_evaluations(ctx, stream):
    x = ctx.asarray(np.arange(64, dtype="f4"))
    check_rounds(lambda: stream.eval("a*x + 1", x=x, a=2.0).numpy(), 3_000)


def test_streams_and_kernels(ctx, kernels):
    source = kernels.saxpy.name and (b"\x03\x02\x23\x07" + bytes(16))

    def one_round():
        with ctx.kernel(source, name="k") as kernel:
            repr(kernel), kernel.hash

    check_rounds(one_round)


def test_modules(ctx):
    bad, good = "#version 450\nvoid main() { factr; }", "#version 450\nvoid main() {}"
    for source in (bad, good):  # what nobody has looked at is not kept
        module = ctx.compile(source=source, defines={"A": 1})
        module.event.exception(BOUND)
        assert (module.log == "") == (source == good)

    def one_round():
        assert ctx.compile(source=bad, defines={"A": 1}).event.exception(BOUND).log
        module = ctx.compile(source=good, defines={"A": 1})
        repr(module), module.kernel("name").code, module.code, module.log, module.event.verdict
        with contextlib.suppress(bh.Error):
            ctx.compile(source=good, tenant="x" * 64)

    check_rounds(one_round, 3_000)


def test_poisoned_events(ctx, kernels):
    with ctx.stream() as stream:
        x, y = ctx.empty(4), ctx.empty(4)
        bad = stream.launch(kernels.hang, groups=4096, Data=x.view("u4"), deadline="20ms")
        bad.exception(BOUND)

        def one_round():
            event = stream.launch(kernels.square, grid=4, X=x, Y=y)
            assert event.exception(BOUND).code == "DEADLINE"
            with contextlib.suppress(bh.VictimError):
                y.numpy()

        check_rounds(one_round, 3_000)
