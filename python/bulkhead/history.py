"""History: what a program asked for, saw and answered, for `bulkhead chaos --check`."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from types import TracebackType
from typing import Any

from . import _native
from .event import Event
from .values import Duration, to_ns


def _digest(data: Any) -> str:
    return hashlib.blake2b(memoryview(data).cast("B"), digest_size=16).hexdigest()


class History:
    """A journal of requests, which `bulkhead chaos --check` judges (docs/chaos.md).

    Use it as a context manager. The file is complete when the block ends without an exception;
    otherwise it says that it is torn. `patience`: a request that is answered later than that after
    its first attempt is late. `submitted` takes each event with its request, a number from 1 on.
    Each method may be called in any thread.

    >>> with bh.History("/dev/null", patience="60s") as history:
    ...     numbers = ctx.empty(4, "uint32")
    ...     event = stream.fill(numbers, 7)
    ...     history.submitted(1, event, expected=bytes([7, 0, 0, 0] * 4))
    ...     good = event.exception() is None
    ...     history.saw(event)
    ...     if good:
    ...         history.used(event, numbers.numpy())
    ...     history.answered(1, good)
    """

    def __init__(self, path: str | os.PathLike[str], *, patience: Duration = "60s") -> None:
        patience_ns = to_ns(patience, "History: patience")
        self._lock = threading.Lock()
        self._began_ns = time.monotonic_ns()
        self._file = open(path, "w", encoding="ascii", buffering=1)  # noqa: SIM115
        self._write(
            bulkhead_chaos=1,
            version=_native.version(),
            seed=0,
            duration_ns=0,
            faults_asked=0,
            streams=1,
            faults=[],
            rate=0.0,
            outside=True,
            accelerator=False,
            patience_ns=(1 << 63) - 1 if patience_ns is None else patience_ns,
            recovery_ns=1,
            device="",
            driver="",
        )

    def _write(self, **line: Any) -> None:
        with self._lock:
            self._file.write(json.dumps(line) + "\n")

    def _since(self, ns: int) -> int:
        return max(ns - self._began_ns, 0)

    def _note(self, kind: str, **line: Any) -> None:
        self._write(kind=kind, at_ns=self._since(time.monotonic_ns()), **line)

    def submitted(
        self, request: int, event: Event, *, expected: Any = None, once: bool = False
    ) -> None:
        """`event` was submitted for `request`, and its result must be the bytes of `expected`.

        `once`: it may not be attempted again unless this attempt has not run.
        """
        self._note(
            "attempt",
            op=event.id,
            request=request,
            once=once,
            expects=expected is not None,
            expected=_digest(b"" if expected is None else expected),
        )

    def saw(self, event: Event) -> None:
        """The program has looked at the verdict of `event`, which is written with it."""
        verdict = event.verdict
        self._note(
            "end",
            op=event.id,
            lost=False,
            state=event.state.lower(),
            status=verdict.code if verdict else "PENDING",
            executed=verdict.executed.value if verdict else "no",
            signal=verdict.signal if verdict else 0,
            worker_pid=verdict.worker_pid if verdict else 0,
            origin=verdict.origin if verdict else 0,
            hops=verdict.hops if verdict else 0,
            submitted_ns=self._since(verdict.submitted_ns) if verdict else 0,
            started_ns=self._since(verdict.started_ns) if verdict else 0,
            ended_ns=self._since(verdict.ended_ns) if verdict else 0,
            blame=verdict.blame.value if verdict else "none",
            changed=False,
        )

    def used(self, event: Event, data: Any) -> None:
        """The program uses the bytes of `data` as the result of `event`."""
        self._note("result", op=event.id, status="OK", digest=_digest(data))

    def answered(self, request: int, good: bool) -> None:
        """`request` was answered: with its result if it is `good`, otherwise with a failure."""
        self._note("answer", request=request, good=good)

    def rested(self) -> None:
        """Nothing is in flight: count the descriptors, for leaks."""
        count = len(os.listdir("/proc/self/fd"))
        self._note("sample", descriptors=count, processes=0, files=0, rss_bytes=0, idle=True)

    def __enter__(self) -> History:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self._write(kind="complete")
        self._file.close()
