"""Events in the order in which they end, and callbacks."""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from . import _native
from .errors import InvalidType, Timeout
from .values import to_seconds

if TYPE_CHECKING:
    from .event import Event

_log = logging.getLogger("bulkhead")


def as_completed(events: Iterable[Event], timeout: float | str | None = None) -> Iterator[Event]:
    """Yield each event when it has ended, READY or POISONED: the first that ends first.

    After `timeout` seconds it raises `Timeout`; events that were not yielded can be waited for
    again.

    >>> events = [stream.fill(ctx.empty(4), n) for n in range(3)]
    >>> sorted(e.state for e in bh.as_completed(events, timeout=30))
    ['READY', 'READY', 'READY']
    """
    seconds = None if timeout is None else to_seconds(timeout, "as_completed: timeout")
    deadline = None if seconds is None else time.monotonic() + seconds
    pending = dict(enumerate(dict.fromkeys(events)))
    count = len(pending)
    queue = _native.Queue()
    for number, event in pending.items():
        if not isinstance(event, _native.Event):
            raise InvalidType(f"as_completed: events: each is an Event, not {type(event)}")
        queue.add(event, number)
    while pending:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ended = queue.take(left)
        if not ended:
            raise Timeout(f"{len(pending)} of {count} events have not ended in time")
        for number in ended:
            yield pending.pop(number)


class _Callbacks:
    """The thread that runs callbacks. It starts with the first one."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a finalizer or a signal handler may add one, too
        self._queue: Any = None
        self._numbers = itertools.count()
        self._waiting: dict[int, tuple[Event, Callable[[Any], object]]] = {}

    def add(self, event: Event, function: Callable[[Any], object]) -> None:
        with self._lock:
            if self._queue is None:
                queue = _native.Queue()
                threading.Thread(
                    target=self._run, args=(queue,), name="bulkhead-callbacks", daemon=True
                ).start()
                self._queue = queue  # not before there is a thread that takes from it
            number = next(self._numbers)
            self._waiting[number] = event, function
            try:
                self._queue.add(event, number)
            except BaseException:
                del self._waiting[number]
                raise

    def _run(self, queue: Any) -> None:
        while True:
            for number in queue.take():
                event, function = self._waiting.pop(number)
                try:
                    function(event)
                except BaseException:  # sys.exit(), too, ends no thread of ours
                    _log.exception("a callback of %r raised", event)
                del event, function


_callbacks = _Callbacks()


def add_callback(event: Event, function: Callable[[Any], object]) -> None:
    """Have `function` called with the event when it has ended."""
    _callbacks.add(event, function)


def _after_fork() -> None:
    global _callbacks
    _callbacks = _Callbacks()  # the thread is the parent's


os.register_at_fork(after_in_child=_after_fork)
