"""Repeating the run that ended the judging of a candidate, for its arrays."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _native
from .dtypes import BY_CODE, for_numpy
from .errors import InvalidArgument, KernelError

if TYPE_CHECKING:
    import numpy as np

Parts = tuple[list[Any], list[Any], list[Any]]
# A candidate as the native module takes it: its name, path, code, language, source and constants.
Given = tuple[bytes, "bytes | None", "bytes | None", int, tuple[Any, ...], list[tuple[int, int, int]]]


class Repeat:
    """How a candidate was judged. Makes a judge of its own where that one was closed."""

    told: bytes
    """The judgement, as the library has it."""

    def __init__(
        self,
        judge: _native.Judge,
        options: dict[str, Any],
        seeds: tuple[int, ...],
        candidate: Given,
        functions: tuple[Any, Any],
    ) -> None:
        self._judge: weakref.ref[_native.Judge] | None = weakref.ref(judge)
        self._options = options
        self._seeds = seeds
        self._candidate = candidate
        self._functions = functions  # reference and check, as the native module takes them
        self._arrays: list[dict[str, np.ndarray[Any, Any]]] | None = None
        self._error: KernelError | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_judge": None, "_arrays": None, "_functions": (None, None)}

    def part(self, index: int) -> dict[str, np.ndarray[Any, Any]]:
        """Inputs (0), what was expected (1), or what the candidate wrote (2)."""
        if self._arrays is None:
            with self._open() as judge:
                self._arrays = [_to_arrays(part) for part in self._run(judge)]
        if index == 2 and self._error is not None:
            raise self._error
        if not self._arrays[index]:
            raise InvalidArgument("actual: the candidate has not run to its end")
        return {name: array.copy() for name, array in self._arrays[index].items()}

    def _run(self, judge: _native.Judge) -> Parts:
        try:
            return judge._repeat(*self._candidate, self.told, True)
        except KernelError as error:
            self._error = error
            return judge._repeat(*self._candidate, self.told, False)

    @contextlib.contextmanager
    def _open(self) -> Iterator[_native.Judge]:
        judge = self._judge() if self._judge is not None else None
        if judge is not None and not judge.closed:
            yield judge
            return
        with contextlib.closing(self._anew()) as judge:
            yield judge


    def _anew(self) -> _native.Judge:
        return _native.Judge(self._options, list(self._seeds), *self._functions, None)


def _to_arrays(part: list[Any]) -> dict[str, np.ndarray[Any, Any]]:
    import numpy as np

    return {
        name: np.frombuffer(elements, for_numpy(BY_CODE[dtype])).reshape(shape)
        for name, dtype, shape, elements in part
    }


def settled(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a judge that only repeats runs, wherever the program is by then."""
    kept = {key: options.get(key) for key in ("task_path", "task_text", "device", "folder")}
    if kept["task_path"] is not None:
        kept["task_path"] = os.path.abspath(kept["task_path"])
    else:
        kept["folder"] = os.path.abspath(kept["folder"] or b".")
    return kept
