"""Events in the order in which they end, and callbacks."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from . import _native
from .errors import InvalidType, Timeout
from .greenlets import await_readable
from .values import to_seconds

if TYPE_CHECKING:
    from .event import Event

_log = logging.getLogger("bulkhead")


def take(queue: Any, seconds: float | None = None) -> list[int]:
    """Wait for what has ended, and take it out; [] after `seconds`."""
    ended: list[int] = queue.take(0 if await_readable(queue, seconds) else seconds)
    return ended


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
        ended = take(queue, left)
        if not ended and deadline is not None and time.monotonic() >= deadline:
            raise Timeout(f"{len(pending)} of {count} events have not ended in time")
        for number in ended:
            yield pending.pop(number)


class _Callbacks:
    """The thread that runs callbacks, or hands them to loops. It starts with the first one."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a finalizer or a signal handler may add one, too
        self._queue: Any = None
        self._numbers = itertools.count()
        self._waiting: dict[int, tuple[Event, Callable[[Any], object], Any]] = {}
        self._numbers_of: dict[Event, list[int]] = {}

    def add(self, event: Event, function: Callable[[Any], object]) -> None:
        with self._lock:
            if self._queue is None:
                queue = _native.Queue()
                threading.Thread(
                    target=self._run, args=(queue,), name="bulkhead-callbacks", daemon=True
                ).start()
                self._queue = queue  # not before there is a thread that takes from it
            number = next(self._numbers)
            self._waiting[number] = event, function, asyncio._get_running_loop()
            self._numbers_of.setdefault(event, []).append(number)
            try:
                self._queue.add(event, number)
            except BaseException:
                self._pop(number)
                raise

    def remove(self, event: Event, function: Callable[[Any], object]) -> int:
        with self._lock:
            numbers = self._numbers_of.get(event, ())
            found = [number for number in numbers if self._waiting[number][1] == function]
            for number in found:
                self._pop(number)
            return len(found)

    def _pop(self, number: int) -> tuple[Event, Callable[[Any], object], Any] | None:
        with self._lock:
            popped = self._waiting.pop(number, None)
            if popped is not None:
                numbers = self._numbers_of[popped[0]]
                numbers.remove(number)
                if not numbers:
                    del self._numbers_of[popped[0]]
            return popped

    def _run(self, queue: Any) -> None:
        while True:
            for number in take(queue):
                popped = self._pop(number)
                if popped is None:  # it was removed
                    continue
                event, function, loop = popped
                try:
                    if loop is None:
                        function(event)
                    else:
                        loop.call_soon_threadsafe(function, event)
                except BaseException:  # sys.exit(), too, ends no thread of ours
                    _log.exception("a callback of %r raised", event)
                del popped, event, function, loop


_callbacks = _Callbacks()


def add_callback(event: Event, function: Callable[[Any], object]) -> None:
    """Have `function` called with the event when it has ended, by the running loop if there is
    one.
    """
    _callbacks.add(event, function)


def remove_callback(event: Event, function: Callable[[Any], object]) -> int:
    """Have it not called; return how often it had been added."""
    return _callbacks.remove(event, function)


def _after_fork() -> None:
    global _callbacks
    _callbacks = _Callbacks()  # the thread is the parent's


os.register_at_fork(after_in_child=_after_fork)
