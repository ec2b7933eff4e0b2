"""A forked child has a clear error for everything that is its parent's, and can begin anew."""

import asyncio
import gc
import os
import signal
import time
import traceback

import bulkhead as bh
import numpy as np
import pytest
from bulkhead import aio
from conftest import BOUND, SHADERS, SLOWNESS, in_thread


def in_child(function):
    """Run a function in a forked child; its exception is a failure here."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reader)
            function()
            status = 0
        except BaseException:
            os.write(writer, traceback.format_exc().encode())
        finally:
            os._exit(status)
    os.close(writer)
    with open(reader, "rb") as file:
        text = file.read().decode()
    assert os.waitpid(pid, 0)[1] == 0, text


def test_what_is_the_parents(ctx, stream, kernels, held):
    event, data = held
    x = ctx.asarray(np.float32([1, 2]))
    done = stream.fill(ctx.empty(1))
    done.wait(BOUND)
    view = x.numpy()
    launch = stream.prepare(kernels.square, grid=2, X=x, Y=ctx.empty(2))
    module = ctx.compile(source="#version 450\nvoid main() { factr; }")
    assert module.event.exception(BOUND).log

    def child():
        for use in (
            lambda: ctx.empty(1),
            lambda: ctx.stream(),
            lambda: stream.fill(x),
            launch,
            lambda: stream.launch(kernels.square, grid=2, X=x, Y=x),
            data.numpy,
            x.numpy,
            lambda: memoryview(x),
            lambda: ctx.kernel(SHADERS / "saxpy.spv"),
            lambda: ctx.compile(source=""),
            module.kernel,
            lambda: module.log,
            event.wait,
            event.result,
            event.cancel,
            lambda: next(bh.as_completed([event])),
            stream.synchronize,
            ctx.synchronize,
            lambda: stream.worker_pid,
            lambda: event.add_done_callback(print),
            lambda: x.write([1, 2]),
            lambda: stream.eval("x + 1", x=x),
            lambda: ctx.load(SHADERS / "saxpy.spv"),
        ):
            with pytest.raises(bh.Forked, match="make one of your own") as raised:
                use()
            assert isinstance(raised.value, bh.CallerError)
        with pytest.raises(bh.Error):
            np.asarray(x)
        # What had ended can be asked.
        assert done.done() and done.verdict.ready and done.result().ready
        assert module.event.exception().code == "COMPILE_FAILED"
        assert not event.done() and event.verdict is None
        assert view.tolist() == [1, 2]
        repr((ctx, stream, x, event, done, kernels.square, launch, module))

    in_child(child)
    assert not event.done() and view.tolist() == [1, 2]


def test_dropping_does_nothing(kernels):
    ctx = bh.Context(spares=0)
    stream = ctx.stream()
    x = ctx.asarray(np.arange(4))
    event = stream.fill(ctx.empty(1))
    things = [ctx, stream, x, event, x.numpy(), memoryview(x), ctx.compile(source="")]

    def child():
        nonlocal ctx, stream, x, event
        ctx.close()
        stream.close()
        x.release()
        things.clear()
        del ctx, stream, x, event
        gc.collect()

    in_child(child)
    event.wait(BOUND)
    assert x.tolist() == [0, 1, 2, 3]
    del things
    ctx.close()


def test_a_context_of_its_own(ctx, stream):
    called = []
    stream.fill(ctx.empty(1)).add_done_callback(called.append)

    def child():
        with bh.Context(spares=0) as own, own.stream() as mine:
            assert mine.eval("x + 1", x=own.asarray([1.0], "f4")).tolist() == [2]
            import threading

            ended = threading.Event()
            mine.fill(own.empty(1)).add_done_callback(lambda _: ended.set())
            assert ended.wait(BOUND)

    in_child(child)
    assert stream.eval("x + 1", x=ctx.asarray([1.0], "f4")).tolist() == [2]


def test_a_fork_while_threads_work(ctx, kernels):
    """Locks that other threads hold at the fork are not waited for in the child."""
    import threading

    stop = threading.Event()

    def work():
        with ctx.stream() as own:
            x, y = ctx.empty(4), ctx.empty(4)
            launch = own.prepare(kernels.square, grid=4, X=x, Y=y)
            while not stop.is_set():
                launch().wait(BOUND)
                y.numpy()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(5):
            in_child(lambda: pytest.raises(bh.Forked, ctx.empty, 1))
    finally:
        stop.set()
        thread.join()


def test_a_child_of_a_thread_handles_signals(kernels):
    """The thread that forks is the child's main thread: Ctrl-C ends its waits."""

    def child():
        def raise_it(*_):
            raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, raise_it)
        with bh.Context(spares=0) as own, own.stream(grace=f"{250 * SLOWNESS}ms") as mine:
            hang = own.kernel(SHADERS / "hang.spv")
            data = own.empty(64, "uint32")
            event = mine.launch(hang, groups=4096, deadline=BOUND, Data=data)
            began = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                event.wait(BOUND / 2)
            assert time.monotonic() - began < BOUND / 4
            event.cancel()

    in_thread(lambda: in_child(child))()


def test_a_lock_that_a_thread_had_at_the_fork(ctx):
    """asyncio in the child does not wait for a thread of the parent."""

    def child():
        async def main():
            with bh.Context(spares=0) as own, own.stream() as mine:
                return (await mine.fill(own.empty(1))).code

        assert asyncio.run(asyncio.wait_for(main(), BOUND)) == "OK"

    with aio._lock:
        in_child(child)
