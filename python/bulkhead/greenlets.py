"""Waiting where one thread runs all: gevent and eventlet replace the functions that wait."""

from __future__ import annotations

import inspect
import select
from typing import Any


def await_readable(source: Any, seconds: float | None = None) -> bool:
    """If `select` was replaced, wait for a descriptor while other greenlets run.

    Otherwise return False at once: the library's own wait also handles signals in time.
    """
    if inspect.isbuiltin(select.select):
        return False
    select.select([source], [], [], seconds)
    return True
