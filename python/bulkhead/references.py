"""References and checks of a judge that are Python functions on NumPy arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Union

from .dtypes import BY_CODE, for_numpy
from .errors import InvalidArgument, InvalidType

if TYPE_CHECKING:
    import numpy as np

Function = Callable[..., Any]
"""Computes what is right: `def reference(X, Y, *, a, n): return a * X + Y`."""
Check = Callable[..., Union[str, None]]
"""Says what is wrong, if something is: `def check(inputs, outputs, expected): return None`. Each is a dict
of what the task calls so; `inputs` also has push constants and sizes.
"""


def _to_number(text: str) -> bool | int | float:
    if text in ("true", "false"):
        return text == "true"
    return float(text) if "." in text or "e" in text else int(text)


class Case:
    """What the extension module tells of a case (python/judge_case.c)."""

    def __init__(
        self,
        arrays: list[tuple[Any, ...]],
        sizes: list[tuple[str, str]],
        pushes: list[tuple[str, str]],
        text: str,
    ) -> None:
        import numpy as np

        self.text = text
        self.inputs: dict[str, np.ndarray[Any, Any]] = {}
        self.outputs: dict[str, tuple[Any, tuple[int, ...]]] = {}
        self.after: dict[str, np.ndarray[Any, Any]] = {}
        self.expected: dict[str, np.ndarray[Any, Any]] = {}
        for name, code, shape, before, computed, after, expected in arrays:
            dtype = for_numpy(BY_CODE[code])
            for content, into in (
                (before, self.inputs),
                (after, self.after),
                (expected, self.expected),
            ):
                if content is not None:
                    into[name] = np.frombuffer(content, dtype).reshape(shape)
            if computed:
                self.outputs[name] = dtype, shape
        numbers = {name: _to_number(text) for name, text in [*sizes, *pushes]}
        self.values: dict[str, Any] = {**numbers, **self.inputs}


def _call(function: Function, case: Case) -> Any:
    """Call it with what its parameters name; one that has no signature, such as `numpy.add`, with the inputs."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return function(*case.inputs.values())
    left = dict(case.values)
    places, names = [], {}
    for one in parameters:
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            continue
        if one.name not in left:
            if one.default is not one.empty:
                continue
            raise InvalidArgument(
                f"judge: the reference has a parameter {one.name!r}; the task has "
                f"{', '.join(map(repr, case.values))}"
            )
        if one.kind == one.POSITIONAL_ONLY:
            places.append(left.pop(one.name))
        else:
            names[one.name] = left.pop(one.name)
    takes_rest = any(one.kind == one.VAR_KEYWORD for one in parameters)
    return function(*places, **names, **(left if takes_rest else {}))


def _by_name(returned: Any, case: Case) -> dict[str, Any]:
    wanted = list(case.outputs)
    if isinstance(returned, Mapping):
        for name in [*wanted, *returned]:
            if name not in returned or name not in case.outputs:
                what = "does not return it" if name in case.outputs else "returns it; there is none"
                raise InvalidArgument(f"judge: the reference: output {name!r}: it {what} ({case.text})")
        return dict(returned)
    several = returned if isinstance(returned, tuple) else (returned,)
    if len(several) != len(wanted):
        raise InvalidArgument(
            f"judge: the reference returns {len(several)} outputs; the task has "
            f"{', '.join(map(repr, wanted))} ({case.text})"
        )
    return dict(zip(wanted, several))


def _to_bytes(name: str, array: Any, case: Case) -> bytes:
    import numpy as np

    dtype, shape = case.outputs[name]
    made = np.asarray(array)
    if made.dtype != dtype:
        raise InvalidType(
            f"judge: the reference: output {name!r} is {made.dtype}, and the task wants "
            f"{np.dtype(dtype)}: return array.astype({str(np.dtype(dtype))!r}) ({case.text})"
        )
    if made.shape != shape:
        raise InvalidArgument(
            f"judge: the reference: output {name!r} has the shape {made.shape}, and the task wants "
            f"{shape} ({case.text})"
        )
    return made.tobytes()


def check_of(function: Check) -> Callable[..., str | None]:
    """What the extension module calls."""

    def check(*told: Any) -> str | None:
        case = Case(*told)
        message = function(case.values, case.after, case.expected)
        if message is not None and not isinstance(message, str):
            raise InvalidType(
                f"judge: the check: None or a message, not {type(message)} ({case.text})"
            )
        return message

    return check


def of(function: Function) -> Callable[..., list[bytes]]:
    """What the extension module calls."""

    def compute(*told: Any) -> list[bytes]:
        case = Case(*told)
        returned = _by_name(_call(function, case), case)
        return [_to_bytes(name, returned[name], case) for name in case.outputs]

    return compute
