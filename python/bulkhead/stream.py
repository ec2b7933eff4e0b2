"""Stream: an ordered queue of submissions with a worker of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from . import _native
from .buffer import Buffer, copy, fill
from .dtypes import DType
from .errors import CallerError, Error, InvalidArgument, InvalidType, Poisoned, rename
from .event import Event
from .scope import Scoped
from .values import Size, to_bytes

_EVERY_RANGE = 128 << 20  # bytes that every device binds at once
_IN, _OUT, _PUSH = 1, 2, 4
_ASSIGNMENT = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)")


class Stream(_native.Stream, Scoped):
    """An ordered queue of submissions with a worker of its own. `Context.stream` makes it.

    >>> with ctx.stream(deadline="500ms") as other:
    ...     other.wait_ready()
    ...     other.worker_pid > 0
    True
    """

    __slots__ = ("__weakref__",)

    def submit(
        self,
        commands: Iterable[Any],
        *,
        after: Event | Iterable[Event] | None = None,
        deadline: float | str | None = None,
        alone: bool = False,
        timed: bool = False,
    ) -> Event:
        """Submit several commands, which succeed or fail together. Does not wait.

        A command is a `Launch` (`prepare`), `bulkhead.copy(source, destination)`, or
        `bulkhead.fill(buffer, word)`. They run in order.
        """
        event: Event = self._submit(
            list(commands), after=after, deadline=deadline, alone=alone, timed=timed
        )
        return event

    def copy(self, source: Buffer, destination: Buffer, **manner: Any) -> Event:
        """Submit a copy of all bytes of one buffer into another of the same size."""
        return self._submit_one(
            "copy",
            copy(source, destination),
            manner,
            ("buffer 0 of the commands", "source"),
            ("buffer 1 of the commands", "destination"),
        )

    def fill(self, buffer: Buffer, word: int = 0, **manner: Any) -> Event:
        """Submit a fill of a buffer with a 32-bit word. Poisoned content is good afterwards."""
        return self._submit_one(
            "fill",
            fill(buffer, word),
            manner,
            ("buffer 0 of the commands", "buffer"),
            ("^submit: destination: ", "submit: buffer: "),
        )

    def _submit_one(
        self, what: str, command: Any, manner: dict[str, Any], *names: tuple[str, str]
    ) -> Event:
        try:
            return self.submit([command], **manner)
        except Error as error:
            rename(error, *names, ("^submit: ", f"{what}: "))
            raise

    def join(self, events: Iterable[Event] = (), **manner: Any) -> Event:
        """Submit nothing: the event is READY when everything before it on the stream has ended and
        all `events` are READY.
        """
        try:
            return self.submit([], after=tuple(events), **manner)
        except Error as error:
            rename(error, (r"^submit: after\b", "join: events"), ("^submit: ", "join: "))
            raise

    def eval(
        self,
        expression: str,
        arrays: Mapping[str, Any] | None = None,
        *,
        out: Mapping[str, Buffer] | None = None,
        piece: Size | None = None,
        after: Event | Iterable[Event] | None = None,
        deadline: float | str | None = None,
        alone: bool = False,
        timed: bool = False,
        **named: Any,
    ) -> Buffer:
        """Compute an expression of arrays, and return the buffer of the result.

        Does not wait: `result.event` is the submission. Types and shapes are NumPy's: arrays are
        broadcast. An argument is a Buffer, an array or a number. A number of Python has no size of
        its own, one of NumPy has. Of several statements, such as "t = x - m; t*t", the last one is
        the result. An expression is one kernel; with reductions, such as "x - mean(x, axis=0)", it
        is several in one submission. `out` is {name: buffer}: the result goes there instead of into
        a new buffer. If the last statement has no name, the name is not looked at.

        Arrays that are larger than what the device binds at once are computed in pieces, which are
        one submission; its deadline is multiplied by the number of pieces and kernels. `piece` is
        the most bytes of an array in one.

        >>> t = ctx.asarray([-2.0, 3.0], "float32")
        >>> stream.eval("t > 0 ? t : a*t", t=t, a=0.5).tolist()
        [-1.0, 3.0]
        >>> stream.eval("t + a", t=t, a=ctx.asarray([[10.0], [20.0]], "float32")).tolist()
        [[8.0, 13.0], [18.0, 23.0]]
        """
        given = dict(arrays or {}) | named
        text, result, inserted = _name_result(expression, given)
        if out is not None and not isinstance(out, Mapping):
            raise InvalidType(f"eval: out: a dict of a name and a Buffer, not {type(out)}")
        if out is not None and not out:
            raise InvalidArgument("eval: out: it is empty")
        if out is not None and set(out) != {result}:
            if len(out) != 1 or not result.startswith("result"):
                raise InvalidArgument(f"eval: out: the result is '{result}', not {', '.join(out)}")
            out = {result: next(iter(out.values()))}
        most = to_bytes(piece, "eval: piece")
        arguments = self._arguments(given)
        inputs = [argument for argument in arguments if not isinstance(argument[1], int)]
        numbers = [argument for argument in arguments if isinstance(argument[1], int)]
        roles = [(name, _IN) for name, _, _ in inputs]
        roles += [(result, _OUT), *((name, _PUSH) for name, _, _ in numbers)]
        manner = {"after": after, "deadline": deadline, "alone": alone, "timed": timed}
        try:
            return self._eval(text, result, tuple(roles), inputs, numbers, out, most, manner)
        except Poisoned:
            raise
        except Error as error:
            rename(error, ("^empty: ", "eval: "))
            _move_column(error, text, inserted, len(f"{result} = "))
            raise

    def _eval(
        self,
        text: str,
        result: str,
        roles: tuple[tuple[str, int], ...],
        inputs: list[tuple[str, Any, Any]],
        numbers: list[tuple[str, Any, Any]],
        out: Mapping[str, Buffer] | None,
        most: int | None,
        manner: dict[str, Any],
    ) -> Buffer:
        template = self.context._template(text, roles)
        if out is not None:
            target = out[result]
            if not isinstance(target, Buffer):
                raise InvalidType(f"eval: {result}: a Buffer, not {type(target)}")
        else:
            unmade = [*inputs, (result, None, True), *numbers]
            dtype, shape = template.output(unmade, result)
            target = _native.buffer_create(self.context, dtype, shape, None, 0, False)
        arguments = [*inputs, (result, target, True), *numbers]
        template.launch(self, arguments, manner, *self._pieces(arguments, most))
        return target

    def _pieces(self, arguments: list[tuple[str, Any, Any]], most: int | None) -> tuple[int, int]:
        """(the most bytes of an array to bind at once, or 0 for all; where a piece may begin)"""
        buffers = [what for _, what, _ in arguments if isinstance(what, Buffer)]
        whole = max((one.nbytes for one in buffers), default=0)
        if whole <= (most or _EVERY_RANGE):
            return 0, 1
        if not self.device:
            self.wait_ready()
        longest, alignment = self.context._binds(self.device)
        return min(most or longest, longest or most or 0), alignment

    def _arguments(self, given: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
        """As the native module takes them: (name, Buffer, False), or (name, dtype, number)."""
        arguments: dict[str, tuple[str, Any, Any]] = {}
        for name, value in given.items():
            if isinstance(value, (str, bytes)) or value is None:
                raise InvalidType(f"eval: {name}: an array or a number, not {type(value)}")
            if isinstance(value, Buffer):
                arguments[name] = name, value, False
            elif getattr(value, "shape", None) == () and hasattr(value, "dtype"):
                arguments[name] = name, DType(value.dtype).code, value.item()  # one of NumPy
            elif not isinstance(value, (bool, int, float)):
                arguments[name] = name, self.context.asarray(value), False
        types = {what.dtype for _, what, _ in arguments.values() if isinstance(what, Buffer)}
        for name, value in given.items():
            if name not in arguments:
                arguments[name] = name, _weak_type(name, value, types).code, value
        return [arguments[name] for name in given]

    def _leave(self) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            pid, device = self.worker_pid, self.device
        except CallerError as error:
            return f"<bulkhead.Stream, {error.code.lower()}>"
        where = f" on {device}" if device else ""
        return f"<bulkhead.Stream{where}, {f'worker {pid}' if pid else 'no worker'}>"


def _weak_type(name: str, value: bool | int | float, arrays: set[DType]) -> DType:
    """The type of a number of Python, which takes that of the arrays (NEP 50)."""
    if isinstance(value, bool):
        return DType("bool")
    floats = sorted((t for t in arrays if t.startswith("float")), key=lambda t: t.itemsize)
    integers = sorted((t for t in arrays if "int" in t), key=lambda t: t.itemsize)
    if isinstance(value, float):
        return floats[-1] if floats else DType("float64")
    if floats and not integers:
        return floats[-1]
    dtype = integers[-1] if integers else DType("int64")
    bits = 8 * dtype.itemsize
    least, most = (
        (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )
    if not least <= value <= most:
        raise InvalidArgument(f"eval: {name}: {value} does not fit {dtype}")
    return dtype


def _name_result(expression: str, given: Mapping[str, Any]) -> tuple[str, str, int]:
    """(the expression with a name for its result, the name, where that was put in or -1)"""
    if not isinstance(expression, str):
        raise InvalidType(f"eval: expression: a text, not {type(expression)}")
    statements = re.split(r"([;\n])", expression.rstrip().rstrip(";"))
    match = _ASSIGNMENT.match(statements[-1])
    if match:
        return expression, match[1], -1
    name = "result"
    while name in given or re.search(rf"\b{name}\b", expression):
        name += "_"
    last = statements[-1].lstrip()
    before = "".join(statements)[: -len(last) or None]
    return f"{before}{name} = {last}", name, len(before)


def _move_column(error: Error, text: str, inserted: int, length: int) -> None:
    """Correct the column in a message about `text`, in which `length` characters were put in."""
    begin = text.rfind("\n", 0, max(inserted, 0)) + 1
    line = text.count("\n", 0, begin) + 1

    def move(match: re.Match[str]) -> str:
        column = int(match[2])
        if inserted >= 0 and int(match[1] or 1) == line and column > inserted - begin:
            column = max(column - length, inserted - begin + 1)
        return match[0].removesuffix(match[2]) + str(column)

    message = re.sub(r"^eval: (?:line (\d+), )?column (\d+)", move, str(error))
    error.args = (message,)
