"""Events in asyncio: one descriptor and one reader for each loop, however many events there are."""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
import weakref
from typing import TYPE_CHECKING

from . import _native

if TYPE_CHECKING:
    from .event import Event


class _Reader:
    """The futures of one loop, and the queue that says which of their events have ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = weakref.ref(loop)
        self._queue = _native.Queue()
        self._numbers = itertools.count()
        self._futures: dict[int, asyncio.Future[None]] = {}

    def future_of(self, loop: asyncio.AbstractEventLoop, event: Event) -> asyncio.Future[None]:
        future: asyncio.Future[None] = loop.create_future()
        number = next(self._numbers)
        if not self._futures:
            # While nothing is awaited, the loop does not know of the descriptor.
            loop.add_reader(self._queue.fileno(), self._drain)
        self._futures[number] = future
        # Also of a future that is cancelled: its event may be pending for long.
        future.add_done_callback(lambda _: self._forget(number))
        try:
            self._queue.add(event, number)
        except BaseException:
            future.cancel()
            raise
        return future

    def _forget(self, number: int) -> None:
        self._futures.pop(number, None)
        loop = self._loop()
        if not self._futures and loop is not None and not loop.is_closed():
            loop.remove_reader(self._queue.fileno())

    def _drain(self) -> None:
        for number in self._queue.take(0):
            future = self._futures.get(number)
            # The task that awaited the event may have been cancelled.
            if future is not None and not future.done():
                future.set_result(None)


_lock = threading.Lock()
_readers: weakref.WeakKeyDictionary[
    asyncio.AbstractEventLoop, _Reader
] = weakref.WeakKeyDictionary()


def future_of(event: Event) -> asyncio.Future[None]:
    """Return a future of the running loop that is done when the event has ended, in whichever
    way.
    """
    loop = asyncio.get_running_loop()
    with _lock:
        reader = _readers.get(loop)
        if reader is None:
            # A loop that was closed in the middle has futures left, which keep it.
            for closed in [one for one in _readers if one.is_closed()]:
                del _readers[closed]
            reader = _readers[loop] = _Reader(loop)
    return reader.future_of(loop, event)


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()  # a thread of the parent may have had it


os.register_at_fork(after_in_child=_after_fork)
