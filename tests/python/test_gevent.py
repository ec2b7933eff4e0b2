"""Under gevent's monkey patching one thread runs all greenlets: what waits lets the others run."""

import subprocess
import sys

import pytest
from conftest import BOUND

HELD = f"""
from gevent import monkey
monkey.patch_all()
import gevent, gevent.event
import bulkhead as bh

ctx = bh.Context(spares=0)
hang = ctx.kernel(bh.shaders() / "hang.spv")
stream = ctx.stream()
event = stream.launch(hang, groups=4096, deadline={BOUND}, Data=ctx.empty(64, "uint32"))
"""


def run(program):
    subprocess.run([sys.executable, "-c", program], check=True, timeout=3 * BOUND)


def test_a_callback_waits_for_its_event_alone():
    run(
        HELD
        + """
called = gevent.event.Event()
event.add_done_callback(lambda e: called.set())
gevent.sleep(0)
assert event.state == "PENDING" and not called.is_set()
event.cancel()
called.wait()
assert event.exception().code == "CANCELLED"
"""
    )


@pytest.mark.parametrize(
    "wait",
    [
        "assert next(bh.as_completed([event])) is event",
        "(error,) = bh.map(hang, [{}], groups=4096, Data=ctx.empty(64, 'u4'), on_error='collect',"
        " after=event)",
    ],
)
def test_others_run_during_a_wait(wait):
    run(
        HELD
        + f"""
canceller = gevent.spawn(event.cancel)
{wait}
assert canceller.ready() and event.exception().code == "CANCELLED"
"""
    )


def test_a_log_is_read_while_others_run():
    run(
        """
from gevent import monkey
monkey.patch_all()
import gevent
import bulkhead as bh

lines = []
with bh.Context(spares=0, log=lambda level, line: lines.append(line)) as ctx:
    gevent.sleep(0)
    before = len(lines)
    ctx._delivery.source._put(2, "a line")
    while len(lines) == before:
        gevent.sleep(0)
    ctx._delivery.source._put(2, "the last line")
assert lines[-1] == "the last line"
"""
    )


def test_a_signal_ends_a_wait():
    run(
        HELD
        + """
import signal

def stop(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
try:
    event.wait()
except KeyboardInterrupt:
    signal.setitimer(signal.ITIMER_REAL, 0)
assert event.state == "PENDING"
event.cancel()
"""
    )
