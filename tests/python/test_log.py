"""The library's log: levels, threads, and receivers that are slow, raise or close."""

import gc
import logging
import os
import signal
import threading
import weakref

import bulkhead as bh
import pytest
from conftest import BOUND, until


class Lines(logging.Handler):
    """Keeps what a logger has had."""

    def __init__(self, name):
        super().__init__()
        self.records = []
        self.logger = logging.getLogger(name)
        self.logger.setLevel(logging.DEBUG)
        self.logger.propagate = False

    def emit(self, record):
        self.records.append(record)

    def __enter__(self):
        self.logger.addHandler(self)
        return self.records

    def __exit__(self, *what):
        self.logger.removeHandler(self)
        self.logger.propagate = True


def log_threads():
    return [thread for thread in threading.enumerate() if thread.name == "bulkhead-log"]


def kill_worker(stream):
    """A death, which the library logs as a warning."""
    stream.wait_ready(BOUND)
    pid = stream.worker_pid
    os.kill(pid, signal.SIGKILL)
    until(lambda: stream.worker_pid not in (0, pid), "the next worker")


def test_a_logger_has_lines_with_levels():
    with Lines("bulkhead.test") as records:
        with bh.Context(spares=0, log="bulkhead.test") as ctx, ctx.stream() as stream:
            kill_worker(stream)
        ready = [one for one in records if "is ready" in one.getMessage()]
        died = [one for one in records if "killed by SIGKILL" in one.getMessage()]
        assert [one.levelno for one in ready[:2]] == [logging.INFO] * 2
        assert [one.levelno for one in died] == [logging.WARNING]
        assert {one.threadName for one in records} == {"bulkhead-log"}
        count = len(records)
        with bh.Context(spares=0, log=logging.getLogger("bulkhead.test")) as ctx, ctx.stream() as s:
            s.wait_ready(BOUND)
        assert len(records) > count


def test_a_function_has_all_lines_when_the_context_is_closed():
    said = []
    ctx = bh.Context(spares=0, log=lambda level, line: said.append((level, line)))
    stream = ctx.stream()
    kill_worker(stream)
    ctx.close()
    count = len(said)
    assert [level for level, line in said if "killed by SIGKILL" in line] == [logging.WARNING]
    assert not any("\n" in line for _, line in said)
    assert not log_threads()
    ctx.close()
    assert len(said) == count


def test_the_library_does_not_wait_for_a_slow_function():
    inside, leave, said = threading.Event(), threading.Event(), []

    def slow(level, line):
        inside.set()
        assert leave.wait(BOUND)
        said.append(line)

    with bh.Context(spares=0, log=slow) as ctx:
        for _ in range(3):
            with ctx.stream() as stream:
                stream.wait_ready(BOUND)
                assert stream.eval("x + 1", x=[1.0]).tolist() == [2]
        assert inside.wait(BOUND)
        assert not said
        leave.set()
    assert sum("is ready" in line for line in said) >= 3


def test_a_function_that_raises_does_no_harm():
    calls = []

    def raises(level, line):
        calls.append(line)
        raise SystemExit("no") if len(calls) % 2 else ValueError("no")

    with Lines("bulkhead") as records:
        with bh.Context(spares=0, log=raises) as ctx, ctx.stream() as stream:
            kill_worker(stream)
            assert stream.eval("x + 1", x=[1.0]).tolist() == [2]
        assert len(records) == len(calls) >= 3
        assert {one.levelno for one in records} == {logging.ERROR}
        assert "raises" in records[0].getMessage() and records[0].exc_info


def test_a_function_may_close_its_context():
    made, closed, said = threading.Event(), threading.Event(), []

    def closes(level, line):
        assert made.wait(BOUND)
        said.append(line)
        ctx.close()
        closed.set()

    ctx = bh.Context(spares=0, log=closes)
    for _ in range(3):
        ctx.stream().wait_ready(BOUND)  # each is a line
    made.set()
    assert closed.wait(BOUND)
    until(lambda: not log_threads(), "the thread is there")
    assert ctx.closed and len(said) == 1


def test_a_context_with_a_log_is_collected():
    ctx = bh.Context(spares=0, log=lambda level, line: None)
    ctx.stream().wait_ready(BOUND)
    gone = weakref.ref(ctx)
    del ctx
    gc.collect()
    assert gone() is None
    until(lambda: not log_threads(), "the thread is there")


def test_a_forked_child_leaves_the_log_alone():
    with bh.Context(spares=0, log=lambda level, line: None) as ctx:
        ctx.stream().wait_ready(BOUND)
        pid = os.fork()
        if pid == 0:
            ctx.close()
            os._exit(0 if ctx.closed else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_lines_that_nobody_takes_are_counted():
    log = bh._native.Log()
    for number in range(5000):
        log._put(number % 4, f"line {number}")
    lines = log.take()
    assert lines[:2] == [(0, "line 0"), (1, "line 1")] and lines[4095] == (3, "line 4095")
    assert lines[4096:] == [(1, "904 later lines are lost: the log was not read")]
    log._put(2, "next")
    assert log.take() == [(2, "next")]


def test_other_things_are_refused():
    for wrong in (5, b"name", ["name"]):
        with pytest.raises(bh.InvalidType, match="Context: log: a function, a logger or the name"):
            bh.Context(log=wrong)
    with pytest.raises(bh.EnvironError):
        bh.Context(log="bulkhead", worker_path="/nowhere/worker").stream().wait_ready(BOUND)
    assert not log_threads()
