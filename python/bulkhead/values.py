"""Durations and sizes, as the command line takes them: '500ms', '512M', 'none'."""

from __future__ import annotations

import datetime
import difflib
import functools
import inspect
import math
import re
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from .errors import InvalidArgument, InvalidType

FOREVER = 2**64 - 1
Duration = float | str | datetime.timedelta | None
"""Seconds, a text with a unit (ns, us, ms, s, m), 'none', or None where a default is meant."""
Size = int | str
"""Bytes, or a text such as '512M' (K, M, G, T: powers of 1024), or 'none'."""

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def with_hints(
    what: str,
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """For a function with options: one that it does not have is refused with the nearest name."""

    def decorate(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        there = list(inspect.signature(function).parameters)

        @functools.wraps(function)
        def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
            for name in kwargs:
                if name not in there:
                    near = difflib.get_close_matches(name, there, 1)
                    hint = f"it has {', '.join(there[1:])}"
                    if near:
                        hint = f"did you mean '{near[0]}'?"
                    raise InvalidType(f"{what}: there is no option '{name}'; {hint}")
            return function(*args, **kwargs)

        return call

    return decorate


def to_seconds(value: Any, name: str) -> float | None:
    """Seconds of a duration, for the argument `name`; None for 'none'.

    >>> to_seconds("1.5s", "timeout")
    1.5
    """
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if not isinstance(value, str):
        try:
            return float(value)
        except (TypeError, ValueError):
            raise InvalidType(
                f"{name}: a duration in seconds, or such as '500ms', not {value!r}"
            ) from None
        except OverflowError:
            raise InvalidArgument(f"{name}: the number is too large") from None
    if value == "none":
        return None
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)([a-z]*)", value)
    if not match:
        raise InvalidArgument(f"{name}: '{value}' is not a duration such as 500ms")
    number, unit = match.groups()
    if not unit:
        raise InvalidArgument(f"{name}: '{value}' has no unit: write '{value}ms' or '{value}s'")
    if unit not in _SECONDS:
        raise InvalidArgument(f"{name}: '{value}': unknown unit '{unit}'; use ns, us, ms, s or m")
    return float(number) * _SECONDS[unit]


def to_ns(value: Duration, name: str, *, zero: bool = False) -> int | None:
    """Nanoseconds of a duration; None for None. `zero` allows 0."""
    if value is None:
        return None
    seconds = to_seconds(value, name)
    if seconds is None:
        return FOREVER
    if math.isnan(seconds) or seconds < 0 or (seconds == 0 and not zero):
        raise InvalidArgument(f"{name}: {value!r} is not above 0; 'none' means no limit")
    if seconds > 1e9:
        raise InvalidArgument(f"{name}: {value!r} is too long; 'none' means no limit")
    ns = int(seconds * 1e9)
    if ns == 0 and not zero:
        raise InvalidArgument(f"{name}: {value!r} is too short")
    return ns


def to_bytes(value: Size | None, name: str) -> int | None:
    """Bytes of a size; None for None, 0 for 'none'."""
    if value is None:
        return None
    if isinstance(value, str):
        if value == "none":
            return 0
        match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)([KMGT]?)(?:iB)?", value)
        if not match:
            raise InvalidArgument(f"{name}: '{value}' is not a size such as 512M")
        return int(float(match[1]) * 1024 ** _POWERS[match[2]])
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidType(f"{name}: bytes, or a size such as '512M', not {value!r}")
    if value < 0:
        raise InvalidArgument(f"{name}: {value} is below 0")
    return value
