"""Event: how one submission ends."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from . import _native, aio, completion, errors
from ._status import Status
from .verdict import Verdict, from_fields

_STATES = ("PENDING", "READY", "POISONED")


class Event(_native.Event):
    """How one submission ends: PENDING, then READY or POISONED for ever.

    An event can be awaited in asyncio: `verdict = await event`. Other tasks run meanwhile, also if
    the event has ended already. `asyncio.wait`, `gather`, `wait_for` and `as_completed` take events
    as they are; `concurrent.futures.wait` does not: there is `bulkhead.as_completed`.
    """

    __slots__ = ("__weakref__",)

    @property
    def state(self) -> str:
        """'PENDING', 'READY' or 'POISONED'."""
        return _STATES[self._state()]

    @property
    def verdict(self) -> Verdict | None:
        """What became of the submission; None while it is pending."""
        fields = self._verdict()
        return None if fields is None else from_fields(fields)

    def result(self, timeout: float | str | None = None) -> Verdict:
        """Wait as `wait` does, and return the verdict, which says READY.

        >>> event = stream.fill(ctx.empty(4), 0)
        >>> event.result().code
        'OK'
        """
        self.wait(timeout)
        verdict = self.verdict
        assert verdict
        return verdict

    def exception(self, timeout: float | str | None = None) -> errors.Poisoned | None:
        """Wait, and return the exception that `wait` raises; None if the event is READY."""
        return None if self._join(timeout) else errors.make_poison(self, 0, "", ())

    def add_done_callback(self, function: Callable[[Event], object]) -> None:
        """Call `function` with the event when it has ended.

        Added in a coroutine it is called by the loop that runs there, as those of asyncio's futures
        are. All others run in one thread of this package, in the order in which their events ended;
        an exception that one raises is logged (`logging`, "bulkhead"). Under gevent's monkey
        patching that thread is a greenlet.
        """
        completion.add_callback(self, function)

    def remove_done_callback(self, function: Callable[[Event], object]) -> int:
        """Have a callback not called any more. Return how often it had been added."""
        return completion.remove_callback(self, function)

    def cancelled(self) -> bool:
        """Whether the event has ended CANCELLED."""
        verdict = self.verdict
        return verdict is not None and verdict.status == Status.CANCELLED

    @property
    def _condition(self) -> Any:
        # concurrent.futures begins with it. There is none, and the message says what to do.
        raise AttributeError(
            "concurrent.futures waits for its own futures only; bulkhead.as_completed() and "
            "asyncio.wait() take events"
        )

    def __await__(self) -> Generator[Any, None, Verdict]:
        if self.done():
            # A task that awaits one event after the other lets others run, even if all have ended.
            yield
        else:
            yield from aio.future_of(self).__await__()
        return self.result()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Event):
            return NotImplemented
        return self.id == other.id and self.context is other.context

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        verdict = self.verdict
        if verdict is None:
            return f"<bulkhead.Event {self.id} PENDING>"
        if verdict.ready:
            return f"<bulkhead.Event {self.id} READY>"
        return f"<bulkhead.Event {self.id} POISONED {verdict.code}: {verdict.message}>"
