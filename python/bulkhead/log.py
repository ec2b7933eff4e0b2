"""The lines of the library's log, for a function or a logger."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Union

from . import _native
from .errors import InvalidType
from .greenlets import await_readable

if TYPE_CHECKING:
    Log = Union[Callable[[int, str], object], str, logging.Logger, "logging.LoggerAdapter[Any]"]

_LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)  # bh_log_level
_log = logging.getLogger("bulkhead")


def _to_function(log: Log) -> Callable[[int, str], object]:
    logger = logging.getLogger(log) if isinstance(log, str) else log
    if isinstance(logger, (logging.Logger, logging.LoggerAdapter)):
        write = logger.log
        return lambda level, line: write(level, "%s", line)
    if not callable(logger):
        raise InvalidType(
            f"Context: log: a function, a logger or the name of one, not {type(log)}"
        )
    return logger


class Delivery:
    """The thread that hands the lines of one context over. It must not refer to the context."""

    def __init__(self, log: Log) -> None:
        self.source = _native.Log()
        self._function = _to_function(log)
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="bulkhead-log", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        while (lines := self._take()) is not None:
            for level, line in lines:
                if self._stopped:
                    return
                try:
                    self._function(_LEVELS[level], line)
                except BaseException:
                    _log.exception("log=%r raised", self._function)

    def _take(self) -> list[tuple[int, str]] | None:
        await_readable(self.source)
        return self.source.take()

    def finish(self) -> None:
        """The context is closed: return when the last line was handed over."""
        if threading.current_thread() is self._thread:
            self._stopped = True  # the function itself has closed the context
            return
        try:
            self._thread.join()
        except BaseException:  # Ctrl-C, while the function is busy
            self._stopped = True
            raise
