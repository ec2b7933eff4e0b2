"""Failures of kernels: what is raised, and what goes on."""

import dataclasses
import inspect
import os
import pickle
import re
import signal
import subprocess
import sys
from types import SimpleNamespace

import bulkhead as bh
import numpy as np
import pytest
from bulkhead import _native
from conftest import BOUND, SHADERS, SLOWNESS, SOURCE, until


def test_the_statuses_are_the_tables():
    table = (SOURCE / "base" / "status.def").read_text()
    rows = re.findall(r'^BH_STATUS\((\w+), (\d+), (\w+), "([^"]*)", "([^"]*)"', table, re.M)
    assert [(s.name, s.value, s.kind.name, s.text) for s in bh.Status] == [
        (name, int(value), kind, text) for name, value, kind, text, _ in rows
    ]
    for status, (*_, advice) in zip(bh.Status, rows, strict=True):
        # What names a function of C is said in Python's words.
        assert "bh_" not in status.advice
        assert status.advice == advice or "bh_" in advice
    assert not [reason for reason in bh.Reason if "bh_" in reason.advice.lower()]
    unshared = (bh.Reason.UNSHARED, bh.Subject.DEVICE, "d", 0, 0)
    said = f"bh_buffer_create: d; {_native.reason_advice(bh.Reason.UNSHARED)}"
    error = bh.errors.make_error(bh.Status.UNSUPPORTED, said, 0, 0, 0, unshared)
    assert str(error) == "empty: d; use 'host' or 'auto'"
    assert [fields[:2] for fields in _native.statuses()] == [(s.value, s.name) for s in bh.Status]


def test_every_status_has_a_class():
    bases = {
        bh.Class.CALLER: bh.CallerError,
        bh.Class.INPUT: bh.InputError,
        bh.Class.GUILTY: bh.GuiltyError,
        bh.Class.VICTIM: bh.VictimError,
        bh.Class.ENVIRON: bh.EnvironError,
    }
    for status in bh.Status:
        if status.kind == bh.Class.NONE:
            continue
        why = (bh.Reason.NO_WORKER, bh.Subject.STREAM, "s", 7, 9)
        error = bh.errors.make_error(status, "m", 2, 0, 0, why)
        poison = bh.errors.make_poison(None, status, "m", why)
        for one in (error, poison):
            assert isinstance(one, bases[status.kind]) and isinstance(one, bh.Error)
            assert one.status == status and one.code == status.name and one.advice == status.advice
            again = pickle.loads(pickle.dumps(one))
            assert type(again) is type(one) and again.status == status
            for each in (one, again):
                assert str(each).split(";")[0] == "m" and each.reason is bh.Reason.NO_WORKER
                assert each.subject is bh.Subject.STREAM and each.subject_name == "s"
                assert (each.value, each.limit) == (7, 9)
        assert isinstance(poison, bh.Poisoned) and not isinstance(error, bh.Poisoned)
        assert poison.executed == "unknown" and poison.blame == "none"
    assert issubclass(bh.NoMemory, MemoryError) and issubclass(bh.SystemFailed, OSError)
    assert issubclass(bh.InvalidArgument, ValueError) and issubclass(bh.InvalidType, TypeError)
    assert issubclass(bh.ViewError, BufferError) and issubclass(bh.Timeout, TimeoutError)
    assert issubclass(bh.InputError, bh.KernelError) and issubclass(bh.GuiltyError, bh.KernelError)
    assert bh.errors.make_error(bh.Status.SYSTEM, "m", 24, 0, 0, ()).errno == 24


def test_the_errno_of_a_poisoned_load(stream, ctx):
    verdict = stream.fill(ctx.empty(1)).result(BOUND)
    for status in (bh.Status.LOAD_FAILED, bh.Status.SYSTEM):
        failed = dataclasses.replace(verdict, status=status, kind=status.kind, errno=5)
        error = bh.errors.make_poison(SimpleNamespace(verdict=failed, _lost=None), 0, "", ())
        assert isinstance(error, bh.Poisoned) and error.errno == 5
        assert pickle.loads(pickle.dumps(error)).errno == 5


def test_a_hang(ctx, kernels):
    with ctx.stream("hanging", tenant="alice", grace=f"{250 * SLOWNESS}ms") as stream:
        data = ctx.empty(64, "uint32")
        event = stream.launch(kernels.hang, groups=4096, Data=data, deadline="200ms")
        with pytest.raises(bh.DeadlinePassed) as raised:
            event.wait(BOUND)
        error = raised.value
        assert isinstance(error, bh.Poisoned) and isinstance(error, bh.GuiltyError)
        assert isinstance(error, bh.KernelError) and not isinstance(error, bh.VictimError)
        assert error.code == "DEADLINE" and error.executed == "unknown" and error.blame == "certain"
        verdict = error.verdict
        assert verdict == event.verdict and error.event is event
        assert verdict.kernel == "hang" and verdict.stream == "hanging" and verdict.hops == 0
        assert verdict.origin == verdict.event == event.id and verdict.limit == 200_000_000
        assert verdict.kernel_hash == kernels.hang.hash and verdict.kind == bh.Class.GUILTY
        assert verdict.device and verdict.seconds > 0.1 and "deadline of 200 ms" in verdict.message
        assert event.exception() == error or type(event.exception()) is type(error)
        assert "POISONED DEADLINE" in repr(event) and "DEADLINE" in str(error)
        # What it was to write is poisoned: each look raises the same verdict.
        for look in (
            data.numpy,
            data.tolist,
            data.tobytes,
            lambda: memoryview(data),
            lambda: np.asarray(data),
            lambda: data.numpy(writable=True),
        ):
            with pytest.raises(bh.DeadlinePassed) as raised:
                look()
            assert raised.value.verdict == verdict and raised.value.event == event
        assert data.state == "POISONED" and "POISONED" in repr(data) and data.event == event
        with pytest.raises(bh.DeadlinePassed):
            stream.synchronize(BOUND)
        stream.reset()
        # So is what reads it, as a victim.
        y = ctx.empty(64, "uint32")
        with pytest.raises(bh.VictimError) as raised:
            stream.submit([bh.copy(data, y)]).wait(BOUND)
        assert raised.value.code == "DEADLINE" and raised.value.verdict.hops == 1
        assert not isinstance(raised.value, bh.KernelError)
        assert raised.value.executed == "no"
        # Until all of it is overwritten.
        data.write(np.zeros(64, "u4"))
        assert data.state == "CLEAN" and not data.numpy().any() and data.event is None


def test_a_crash(ctx, kernels):
    kernel = ctx.kernel(SHADERS / "crash_shared.spv", trusted=True)
    with ctx.stream() as stream, ctx.stream() as neighbour:
        stream.wait_ready(BOUND)
        pid = stream.worker_pid
        data = ctx.empty(64, "uint32")
        event = stream.launch(kernel, groups=16, Data=data)
        with pytest.raises(bh.WorkerDied) as raised:
            event.wait(BOUND)
        assert raised.value.code == "WORKER_SIGNAL"
        assert (
            raised.value.verdict.signal == signal.SIGSEGV and raised.value.verdict.worker_pid == pid
        )
        # The stream goes on with another worker, others never noticed.
        assert stream.eval("x + 1", x=ctx.asarray([1.0], "f4")).tolist() == [2]
        assert stream.worker_pid != pid
        assert neighbour.eval("x + 1", x=ctx.asarray([1.0], "f4")).tolist() == [2]


def test_poisoned_outputs_can_be_promised(ctx, stream, kernels):
    x, y = ctx.asarray(np.float32([1, 2])), ctx.empty(2)
    bad = stream.launch(kernels.hang, groups=4096, Data=y.view("u4"), deadline="50ms")
    bad.exception(BOUND)
    # The kernel stores into Y: what it leaves alone would be the old, bad content.
    whose, out = f"; Y is poisoned by event {bad.id}: write or fill it", ", or bind it by bulkhead."
    launch = stream.prepare(kernels.square, grid=2, X=x, Y=y)
    first = launch()
    assert isinstance(first.exception(BOUND), bh.VictimError)
    assert whose + out in str(first.exception())
    # By now the content is that of the launch.
    assert f"; Y is poisoned by event {first.id}: " in str(launch().exception(BOUND))
    said = str(stream.copy(y, ctx.empty(2)).exception(BOUND))
    assert "; buffer 0 of the commands is poisoned by event " in said and "by bulkhead" not in said
    # It is about what the submission reads.
    given = {"grid": 2, "X": x, "Y": bh.out(y), "after": bad}
    assert "is poisoned by" not in str(stream.launch(kernels.square, **given).exception(BOUND))
    stream.launch(kernels.square, grid=2, X=x, Y=bh.out(y)).wait(BOUND)
    assert y.tolist() == [1, 4]
    with pytest.raises(bh.InvalidArgument, match="X: the kernel only reads it: it is no output"):
        stream.launch(kernels.square, grid=2, X=bh.out(x), Y=y)


def test_what_is_given_to_read_is_not_written(ctx, stream, kernels):
    x, y = ctx.asarray(np.float32([1, 2])), ctx.asarray(np.float32([7, 8]))
    with pytest.raises(bh.InputError) as raised:
        stream.launch(kernels.square, grid=2, X=x, Y=bh.read(y)).wait(BOUND)
    assert raised.value.code == "BINDING_MISMATCH" and raised.value.executed == "no"
    assert y.tolist() == [7, 8]
    for wrong in (bh.out, bh.read):
        with pytest.raises(bh.InvalidType, match=f"{wrong.__name__}: a Buffer, not"):
            wrong(np.ones(2))


def test_a_memory_bomb(ctx, kernels):
    bomb = ctx.kernel(SHADERS / "memory_bomb.spv", trusted=True)
    given = {one.name: ctx.empty(64, "raw") for one in bomb.info.buffers}
    with ctx.stream(memory="256M") as stream:
        with pytest.raises(bh.KernelError) as raised:
            stream.launch(bomb, groups=1, args=given).wait(BOUND)
        assert raised.value.code in ("COMPILE_FAILED", "OUT_OF_HOST_MEMORY")
        assert "memory" in raised.value.verdict.message and raised.value.verdict.limit == 256 << 20
    for buffer in given.values():
        buffer.write(bytes(64))
    # The guard does not let it through.
    with pytest.raises(bh.InputError) as raised, ctx.stream() as stream:
        stream.launch(kernels.memory_bomb, groups=1, args=given).wait(BOUND)
    assert raised.value.code == "LIMIT_EXCEEDED"


def test_a_strict_stream(ctx, kernels):
    with ctx.stream(strict=True) as stream:
        first = stream.launch(kernels.hang, groups=4096, Data=ctx.empty(64, "u4"), deadline="50ms")
        later = stream.fill(ctx.empty(1))
        assert first.exception(BOUND).code == "DEADLINE"
        error = later.exception(BOUND)
        assert isinstance(error, bh.VictimError) and error.code == "STREAM_FAILED"
        stream.reset()
        stream.fill(ctx.empty(1)).wait(BOUND)


def test_cancel(ctx, held):
    event, data = held
    event.cancel()
    with pytest.raises(bh.Cancelled) as raised:
        event.wait(BOUND)
    assert isinstance(raised.value, bh.VictimError) and raised.value.executed in ("no", "unknown")
    event.cancel()
    with ctx.stream() as stream:
        done = stream.fill(ctx.empty(1))
        done.wait(BOUND)
        done.cancel()
        assert done.state == "READY" and done.exception() is None
        stream.cancel()


def test_quarantine():
    with bh.Context(spares=0, quarantine_deaths=1) as ctx, ctx.stream(tenant="bob") as stream:
        kernel = ctx.kernel(SHADERS / "crash_shared.spv", trusted=True)

        def launch():
            return stream.launch(kernel, groups=16, Data=ctx.empty(64, "u4")).exception(BOUND)

        assert launch().code == "WORKER_SIGNAL"
        error = launch()
        assert error.code == "QUARANTINED" and isinstance(error, bh.InputError)
        assert "Context.quarantine_release() ends it earlier" in str(error)
        assert "bh_" not in str(error) + error.advice + error.verdict.advice
        (entry,) = ctx.quarantined()
        assert entry.tenant == "bob" and entry.hash == kernel.hash and entry.deaths == 1
        assert entry.cause == bh.Status.WORKER_SIGNAL and entry.signal == signal.SIGSEGV
        with pytest.raises(bh.InvalidType, match="quarantine_release: kernel: a Kernel, not"):
            ctx.quarantine_release("bob", "crash_shared")
        ctx.quarantine_release("bob", kernel)
        assert not ctx.quarantined() and launch().code == "WORKER_SIGNAL"


def test_the_machine_cannot(tmp_path):
    with pytest.raises(bh.EnvironError) as raised:
        bh.Context(worker_path=tmp_path / "no-worker")
    assert raised.value.code == "UNAVAILABLE" and "no-worker" in str(raised.value)
    with bh.Context(spares=0) as ctx, ctx.stream(device="none:7") as stream:
        with pytest.raises(bh.EnvironError) as raised:
            stream.wait_ready(BOUND)
        assert raised.value.code in ("NO_DEVICE", "UNSUPPORTED", "INVALID_ARGUMENT", "UNAVAILABLE")
        error = stream.fill(ctx.empty(1)).exception(BOUND)
        assert isinstance(error, bh.EnvironError) and isinstance(error, bh.Poisoned)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"deadline": 0}, "stream: deadline: 0 is not above 0"),
        ({"deadline": -1}, "stream: deadline: -1 is not above 0"),
        ({"deadline": "5"}, "stream: deadline: '5' has no unit: write '5ms' or '5s'"),
        ({"deadline": "5 h"}, "stream: deadline: '5 h' is not a duration"),
        ({"deadline": "5h"}, "unknown unit 'h'"),
        ({"deadline": float("nan")}, "stream: deadline: nan"),
        ({"deadline": 1e12}, "too long"),
        ({"memory": "1Q"}, "stream: memory: '1Q' is not a size"),
        ({"memory": -1}, "stream: memory: -1 is below 0"),
        ({"memory": 5}, "stream: memory: it is less than 64 MiB"),
        ({"isolation": "none"}, "stream: isolation: 'none' is none of stream, kernel, submission"),
        ({"tenant": "a\0b"}, "stream: tenant: the text has a NUL"),
        ({"tenant": "x" * 64}, "tenant"),
        ({"processor": -1}, "stream: processor: -1 is not from 0 to 1023"),
        ({"processor": 1024}, "stream: processor: 1024 is not from 0 to 1023"),
        ({"nice": -1}, "stream: nice: -1 is not from 0"),
        ({"nice": 20}, "stream: nice: it is 20, over 19"),
    ],
)
def test_options_of_a_stream(ctx, options, says):
    with pytest.raises(bh.InvalidArgument) as raised:
        ctx.stream(**options)
    assert says in str(raised.value)
    with pytest.raises(bh.InvalidType):
        ctx.stream(deadline=[])
    with pytest.raises(bh.InvalidType):
        ctx.stream(memory=1.5)
    for wrong in ("0", 0.0, True):
        with pytest.raises(bh.InvalidType, match="stream: processor: the number of a processor"):
            ctx.stream(processor=wrong)
    with pytest.raises(bh.InvalidType, match="name: a text"):
        ctx.stream(name=5)
    with pytest.raises(bh.InvalidArgument, match="Context: spares: -1 is not from 0 to 18446744073709551615"):
        bh.Context(spares=-1)
    with pytest.raises(bh.InvalidArgument, match="Context: spare_kernels: it is 33, over 32"):
        bh.Context(spare_kernels=33)
    with pytest.raises(bh.InvalidType, match="Context: spares: an integer, not '3'"):
        bh.Context(spares="3")
    with pytest.raises(bh.InvalidArgument, match="stream: name: UTF-8 has no half"):
        ctx.stream("\udc80")
    for wrong, says in (
        (lambda: bh.Context(nonsense=1), "Context: there is no option 'nonsense'; it has worker_p"),
        (lambda: ctx.stream(deadlin=1), "stream: .* 'deadlin'; did you mean 'deadline'?"),
        (lambda: ctx.kernel(sorce="x"), "kernel: .* 'sorce'; did you mean 'source'?"),
    ):
        with pytest.raises(bh.InvalidType, match=says):
            wrong()


def test_a_limit_of_device_memory_is_named(ctx):
    with ctx.stream(device_memory="64K") as stream:
        with pytest.raises(bh.GuiltyError, match=r"^empty: .* of its limit of 65536 bytes \(device"):
            ctx.empty(1 << 20, stream=stream, memory="device")


def test_the_limit_on_descriptors():
    """The soft one is raised to the hard one; at that one a message names it and what to do."""
    program = """
import resource
import bulkhead as bh

resource.setrlimit(resource.RLIMIT_NOFILE, (100, 200))
with bh.Context(spares=0) as ctx:
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (200, 200)
    kept = []
    try:
        while True:
            kept.append(ctx.empty(1))
    except bh.SystemFailed as error:
        print(error)
    assert len(kept) > 100
"""
    run = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True)
    assert run.stdout == (
        "empty: 4 bytes: Too many open files; open files are limited to 200: raise that (ulimit -n); "
        "release() buffers that you no longer need (a notebook's Out keeps what cells show)\n"
    )


def test_a_stream_on_one_processor(ctx):
    """All threads of its workers run on that one, of a second worker, too."""
    number = min(os.sched_getaffinity(0))
    with ctx.stream(processor=np.int64(number)) as stream:
        for _ in range(2):
            stream.wait_ready(BOUND)
            pid = stream.worker_pid
            threads = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
            assert len(threads) > 2  # its own, the channel's, the driver's
            assert {frozenset(os.sched_getaffinity(t)) for t in threads} == {frozenset({number})}
            os.kill(pid, signal.SIGKILL)
            until(lambda pid=pid: stream.worker_pid != pid, "the worker is not replaced")
    with ctx.stream(processor=1023) as stream:
        with pytest.raises(bh.EnvironError, match="cannot run on processor 1023 alone"):
            stream.wait_ready(BOUND)


@pytest.mark.parametrize(
    ("header", "struct", "function", "names"),
    [
        ("context", "bh_context_options", bh.Context, {"log_user": "log"}),
        ("stream", "bh_stream_options", bh.Context.stream, {"memory_limit": "memory"}),
        (
            "submit",
            "bh_submit_info",
            bh.Stream.launch,
            {
                "commands": "kernel",
                "command_count": "kernel",
                "waits": "after",
                "wait_count": "after",
                "flags": "timed",
            },
        ),
    ],
)
def test_the_options_are_those_of_the_api(header, struct, function, names):
    """Each field of a struct in bulkhead/*.h has its parameter."""
    text = (SOURCE / "include" / "bulkhead" / f"{header}.h").read_text()
    body = re.search(rf"typedef struct {struct} {{(.*?)\n}} {struct};", text, re.S)[1]
    fields = re.findall(r"(\w+);", re.sub(r"/\*.*?\*/", "", body, flags=re.S))
    assert len(fields) > 6
    for field in fields:
        if field != "struct_size":
            name = names.get(field, field.removesuffix("_ns"))
            assert name in inspect.signature(function).parameters, field


def test_what_a_context_says(ctx, stream):
    stream.wait_ready(BOUND)
    assert "stream-" in ctx.describe() and "open" in repr(ctx)
    ctx.trim()
    stream.reset()
    ctx.reset()
    ctx.synchronize(BOUND)
    (first, *_) = ctx.devices()
    assert first["selector"] == stream.device and first["max_storage_range"] >= 1 << 27
    assert "worker" in repr(stream) and stream.device in repr(stream)


def test_timed(ctx, stream):
    event = stream.fill(ctx.empty(1 << 20), 1, timed=True)
    verdict = event.result(BOUND)
    assert 0 < verdict.device_ns <= verdict.ended_ns - verdict.started_ns
    assert stream.fill(ctx.empty(4)).result(BOUND).device_ns == 0


def test_a_dead_worker_is_replaced(ctx):
    with ctx.stream() as stream:
        stream.wait_ready(BOUND)
        pid = stream.worker_pid
        os.kill(pid, signal.SIGKILL)
        until(lambda: stream.worker_pid != pid, "the worker is not replaced")
        stream.fill(ctx.empty(1)).wait(BOUND)


def test_chaos_is_the_options_and_says_so(monkeypatch):
    monkeypatch.setenv("BULKHEAD_CHAOS", "unavailable=100%")
    for options, status in (
        ({}, bh.Status.OK),
        ({"chaos_from_environment": True}, bh.Status.UNAVAILABLE),
        ({"chaos": "out_of_memory=100%"}, bh.Status.OUT_OF_DEVICE_MEMORY),
    ):
        with bh.Context(**options) as ctx, ctx.stream("s") as stream:
            error = stream.launch(ctx.kernel(SHADERS / "empty.spv"), groups=1).exception(BOUND)
            assert (error.verdict.status if error else bh.Status.OK) == status
            assert not error or error.verdict.reason == bh.Reason.INJECTED
