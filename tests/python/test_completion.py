"""Many events: asyncio, as_completed, callbacks, map."""

import asyncio
import concurrent.futures
import contextlib
import gc
import logging
import sys
import threading

import bulkhead as bh
import numpy as np
import pytest
from bulkhead import completion
from conftest import BOUND, descriptors, in_thread


def test_await(ctx, stream, kernels):
    async def main():
        x = ctx.asarray(np.float32([1, 2, 3]))
        y = ctx.empty_like(x)
        verdict = await stream.launch(kernels.square, grid=3, X=x, Y=y)
        assert verdict.ready and y.tolist() == [1, 4, 9]
        done = y.event
        assert (await done) == verdict == (await done)
        with pytest.raises(bh.DeadlinePassed):
            await stream.launch(
                kernels.hang, groups=4096, Data=ctx.empty(64, "u4"), deadline="50ms"
            )

    asyncio.run(main())


def test_the_loop_runs_meanwhile(ctx, held):
    event, _ = held

    async def main():
        task = asyncio.ensure_future(wait())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not task.done()
        event.cancel()
        assert isinstance(await task, bh.Cancelled)

    async def wait():
        try:
            await event
        except bh.Cancelled as error:
            return error

    asyncio.run(main())


def test_the_loop_runs_though_all_have_ended(ctx, stream, held):
    """As if each launch were refused at once: the other tasks have their turns all the same."""
    ready, (poisoned, _) = stream.fill(ctx.empty(1)), held
    ready.wait(BOUND)
    poisoned.cancel()
    poisoned.exception(BOUND)

    async def tick():
        for _ in range(5):
            await asyncio.sleep(0)

    async def main():
        for event in (ready, poisoned):
            ticking = asyncio.ensure_future(tick())
            for _ in range(10):
                try:
                    await event
                except bh.Cancelled:
                    assert event is poisoned
            assert ticking.done()

    asyncio.run(main())


def test_many_events_have_one_descriptor(ctx, stream):
    async def main():
        first = stream.fill(ctx.empty(1))
        await first
        buffers = [ctx.empty(1, "uint32") for _ in range(300)]
        before = descriptors().count("anon_inode:[eventfd]")
        waits = [asyncio.ensure_future(wait(stream.fill(b, n))) for n, b in enumerate(buffers)]
        await asyncio.sleep(0)
        assert descriptors().count("anon_inode:[eventfd]") <= before + 1
        verdicts = await asyncio.gather(*waits)
        assert all(verdict.ready for verdict in verdicts)
        assert [b.tolist() for b in buffers] == [[n] for n in range(300)]

    async def wait(event):
        return await event

    asyncio.run(main())


def test_a_task_that_is_cancelled(ctx, stream, held):
    event, _ = held

    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(wait(), 0.01)
        assert event.state == "PENDING"  # the submission goes on
        event.cancel()
        with pytest.raises(bh.Cancelled):
            await event
        await stream.fill(ctx.empty(1))

    async def wait():
        await event

    asyncio.run(main())


@pytest.mark.parametrize(
    "wait",
    [
        lambda events: asyncio.wait(events),
        lambda events: asyncio.wait(events, return_when=asyncio.FIRST_EXCEPTION),
        lambda events: asyncio.gather(*events, return_exceptions=True),
        lambda events: asyncio.wait_for(asyncio.gather(*events, return_exceptions=True), BOUND),
        lambda events: all_of(asyncio.as_completed(events)),
        lambda events: asyncio.wait([asyncio.shield(one) for one in events]),
    ],
    ids=["wait", "wait_first_exception", "gather", "wait_for", "as_completed", "shield"],
)
def test_asyncio_waits_for_events_as_they_are(ctx, stream, held, wait):
    event, _ = held

    async def main():
        waiting = asyncio.ensure_future(wait([event, stream.fill(ctx.empty(1))]))
        await asyncio.sleep(0)
        assert not waiting.done()
        event.cancel()
        await asyncio.wait_for(waiting, BOUND)
        assert event.done() and event.cancelled()

    asyncio.run(main())


async def all_of(futures):
    for future in futures:
        with contextlib.suppress(bh.Cancelled):
            await future


def test_asyncio_wait_says_what_is_pending(ctx, stream, held):
    event, _ = held
    quick = [stream.fill(ctx.empty(1)) for _ in range(3)]
    called = []

    async def main():
        done, pending = await asyncio.wait([event, *quick], return_when=asyncio.FIRST_COMPLETED)
        assert event in pending and done | pending == {event, *quick} and done
        done, pending = await asyncio.wait([event, *quick], timeout=0.01)
        assert event in pending and event.state == "PENDING"
        assert not completion._callbacks._numbers_of.get(event)  # it took its callbacks out
        # A callback that is added in a coroutine is called by its loop.
        quick[0].add_done_callback(lambda e: (called.append(e), asyncio.get_running_loop()))
        while not called:
            await asyncio.sleep(0.001)
        assert not event.cancelled() and not quick[0].cancelled()

    asyncio.run(main())
    assert called == [quick[0]]
    for wait in (concurrent.futures.wait, concurrent.futures.as_completed):
        with pytest.raises(AttributeError, match="bulkhead.as_completed"):
            list(wait([event]))


def test_a_callback_that_is_removed_is_not_called(ctx, stream, held):
    event, _ = held
    called, ended = [], threading.Event()
    for function in (called.append, called.append, called.extend):
        event.add_done_callback(function)
    assert event.remove_done_callback(called.append) == 2
    assert event.remove_done_callback(called.append) == 0
    assert event.remove_done_callback(called.extend) == 1
    event.add_done_callback(lambda e: ended.set())
    event.cancel()
    assert ended.wait(BOUND) and called == []


def test_a_loop_that_ends_early(ctx, stream, kernels):
    with ctx.stream() as own:
        event = own.launch(kernels.hang, groups=4096, Data=ctx.empty(64, "u4"), deadline=BOUND)
        loop = asyncio.new_event_loop()

        async def wait():
            await event

        task = loop.create_task(wait())
        loop.run_until_complete(asyncio.sleep(0))
        task.cancel()
        loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        loop.close()
        del loop, task
        gc.collect()
        event.cancel()  # its end is told to a queue that nobody reads
        event.exception(BOUND)


def test_several_loops(ctx, stream):
    async def work(number):
        for _ in range(20):
            buffer = ctx.empty(1, "uint32")
            await stream.fill(buffer, number)
            assert buffer.tolist() == [number]
        return number

    threads = [in_thread(lambda n=n: asyncio.run(work(n))) for n in range(3)]
    assert [thread() for thread in threads] == [0, 1, 2]


def test_as_completed(ctx, stream, held):
    event, _ = held
    quick = [stream.fill(ctx.empty(1)) for _ in range(5)]
    order = bh.as_completed([event, *quick, quick[0]], BOUND)
    assert {next(order) for _ in range(5)} == set(quick)
    event.cancel()
    assert next(order) is event and next(order, None) is None
    assert list(bh.as_completed([])) == []
    with pytest.raises(TypeError):
        list(bh.as_completed([5]))


def test_as_completed_times_out(ctx, stream, held):
    event, _ = held
    quick = stream.fill(ctx.empty(1))
    quick.wait(BOUND)
    for _ in range(50):  # one that has ended is yielded, however soon the time is over
        assert next(bh.as_completed([quick], 0)) is quick
    order = bh.as_completed([event, quick], "10ms")
    assert next(order) is quick
    with pytest.raises(bh.Timeout, match="1 of 2 events have not ended in time"):
        next(order)


def test_callbacks(ctx, stream, caplog):
    called, ended = [], threading.Event()

    def bad(event):
        called.append("bad")
        raise ValueError("from a callback")

    event = stream.fill(ctx.empty(1))
    event.add_done_callback(bad)
    event.add_done_callback(lambda e: called.append(e))
    event.wait(BOUND)
    with caplog.at_level(logging.ERROR, "bulkhead"):
        event.add_done_callback(bad)
        event.add_done_callback(
            lambda e: (called.append(threading.current_thread().name), ended.set())
        )
        assert ended.wait(BOUND)
    assert called == ["bad", event, "bad", "bulkhead-callbacks"]
    assert "a callback of <bulkhead.Event" in caplog.text and "from a callback" in caplog.text
    # A callback may wait, and submit.
    ended.clear()
    x = ctx.empty(1, "uint32")
    event.add_done_callback(lambda e: (stream.fill(x, 9).wait(BOUND), ended.set()))
    assert ended.wait(BOUND) and x.tolist() == [9]


def test_map(ctx, kernels):
    inputs = [{"X": np.float32([n, n + 1])} for n in range(20)]
    seen = []
    found = bh.map(
        kernels.square,
        inputs,
        grid=2,
        Y=bh.like("X"),
        streams=3,
        on_result=lambda index, result: seen.append(index),
    )
    assert [one["Y"].tolist() for one in found] == [[n * n, (n + 1) ** 2] for n in range(20)]
    assert sorted(seen) == list(range(20)) and all(set(one) == {"Y"} for one in found)
    found = bh.map(
        kernels.saxpy,
        [{"a": n} for n in range(4)],
        X=np.ones(3, "f4"),
        Y=bh.like("X"),
        grid=lambda given: given["X"].size,
        n=3,
    )
    assert [one["Y"].tolist() for one in found] == [[n] * 3 for n in range(4)]
    assert bh.map(kernels.square, []) == []
    # There are no more streams than there is work for.
    found = bh.map(kernels.square, inputs[:5], grid=2, Y=bh.like("X"), streams=10**9)
    assert [one["Y"].tolist() for one in found] == [[n * n, (n + 1) ** 2] for n in range(5)]


def test_map_collects_what_fails(ctx, kernels):
    data = np.zeros(64, "u4")
    good = data.copy()
    good[0] = 0x600D600D  # the loop ends
    inputs = [{"Data": good if n % 3 else data} for n in range(6)]
    found = bh.map(
        kernels.hang,
        inputs,
        groups=4096,
        streams=2,
        on_error="collect",
        stream_options={"deadline": BOUND},
        deadline="300ms",
    )
    for n, one in enumerate(found):
        if n % 3:
            assert isinstance(one, bh.Poisoned) or one["Data"].numpy()[0] == 0x600D600D
        else:
            assert isinstance(one, bh.DeadlinePassed)
    inputs = [{"Data": good, "deadline": BOUND}, {"Data": data, "deadline": "100ms"}]
    with pytest.raises(bh.DeadlinePassed, match=r"^map: inputs\[1\]: DEADLINE: "):
        bh.map(kernels.hang, inputs, groups=4096, streams=2)
    with pytest.raises(ZeroDivisionError) as raised:
        bh.map(kernels.hang, [{"Data": good}], groups=lambda given: 1 // 0)
    assert raised.value.__notes__ == ["map: inputs[0]"]


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"on_error": "ignore"}, bh.InvalidArgument, "map: on_error: 'ignore'"),
        ({"streams": 0}, bh.InvalidArgument, "map: streams: 0"),
        ({"streams": "3"}, bh.InvalidArgument, "map: streams: '3' is no number above 0"),
        ({"inputs": [5]}, bh.InvalidType, "map: inputs[0]: a dict of arguments, not <class 'int'>"),
        ({"inputs": [{}, {"Y": bh.like("Z")}]}, bh.InvalidArgument, "map: inputs[1]: Y: there is no"),
        ({"inputs": [{}, {"X": np.ones(2, "c8")}]}, bh.InvalidType, "map: inputs[1]: X: its elemen"),
        ({"inputs": [{}, {}, {"Z": 1}]}, bh.InvalidArgument, "map: inputs[2]: the kernel has no"),
        ({"inputs": None}, TypeError, "not iterable"),
    ],
)
def test_map_names_what_is_wrong(ctx, kernels, change, error, says):
    given = {"inputs": [{}], "X": np.ones(2, "f4"), "Y": bh.like("X"), "grid": 2} | change
    with pytest.raises(error) as raised:
        bh.map(kernels.square, given.pop("inputs"), **given)
    assert says in str(raised.value)
    with pytest.raises(bh.InvalidType, match="map: kernel: a Kernel, not <class 'str'>"):
        bh.map("square.spv", [])


def test_an_iterable_that_raises(ctx, kernels):
    def inputs():
        yield {"X": np.ones(2, "f4")}
        raise RuntimeError("from the inputs")

    with pytest.raises(RuntimeError, match="from the inputs"):
        bh.map(kernels.square, inputs(), Y=bh.like("X"), grid=2)

    def on_result(index, result):
        raise RuntimeError("from the callback")

    with pytest.raises(RuntimeError, match="from the callback"):
        bh.map(
            kernels.square, [{"X": np.ones(2, "f4")}], Y=bh.like("X"), grid=2, on_result=on_result
        )


def test_a_callback_that_exits_ends_nothing(ctx, stream, caplog):
    event, ended = stream.fill(ctx.empty(1)), threading.Event()
    event.wait(BOUND)
    with caplog.at_level(logging.ERROR, "bulkhead"):
        event.add_done_callback(lambda e: sys.exit(3))
        event.add_done_callback(lambda e: ended.set())
        assert ended.wait(BOUND)
    assert "SystemExit" in caplog.text


def test_callbacks_may_be_added_while_one_is_added(ctx, stream):
    """A finalizer runs wherever the collector does."""
    event, ended = stream.fill(ctx.empty(1)), threading.Event()

    def nested():
        with completion._callbacks._lock:  # as if it came in the middle of add()
            event.add_done_callback(lambda e: ended.set())

    threading.Thread(target=nested, daemon=True).start()
    assert ended.wait(BOUND)


def test_what_is_no_event(ctx):
    with pytest.raises(bh.InvalidType, match="as_completed: events: each is an Event, not"):
        next(bh.as_completed([1]))
    with pytest.raises(bh.InvalidArgument, match="as_completed: timeout: 'x' is not a duration"):
        next(bh.as_completed([], "x"))
