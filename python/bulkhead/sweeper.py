"""Sweeper: compiles, checks and times the variants of one sweep."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from . import _native, kernel as kernels
from .buffer import Buffer, read, take_array
from .context import Context
from .errors import (
    CallerError,
    CompileFailed,
    EnvironError,
    Error,
    InvalidArgument,
    KernelError,
    Poisoned,
    VictimError,
    rename,
)
from .kernel import Kernel
from .mapping import like
from .source import Source
from .stream import Stream
from .sweep_cache import Cache, digest_of
from .variant import Values, Variant

_KEPT = 16  # right variants whose workers wait until they are timed, all in one go


@contextlib.contextmanager
def noting(values: Values) -> Iterator[None]:
    """Say in an exception of the caller's functions of which variant it is."""
    try:
        yield
    except Exception as error:
        error.add_note(f"sweep: with {values}")
        raise


def objection(check: Any, tolerance: tuple[float, float], outputs: dict[str, Any]) -> str:
    """What the check has against outputs; '': nothing."""
    if isinstance(check, Mapping):
        found = (_difference(name, outputs, check[name], tolerance) for name in check)
        return next(filter(None, found), "")
    try:
        said = None if check is None else check(outputs)
        return "" if said is None or said else "check: it returned False"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _difference(
    name: str, outputs: dict[str, Any], expected: Any, tolerance: tuple[float, float]
) -> str:
    import numpy as np

    if name not in outputs:
        return f"{name}: the kernel does not write it"
    got, expected = outputs[name], np.asarray(expected)
    if np.issubdtype(expected.dtype, np.inexact):
        relative, absolute = tolerance
        with np.errstate(invalid="ignore"):
            right = np.isclose(got, expected, rtol=relative, atol=absolute, equal_nan=True)
    else:
        right = got == expected
    if right.all():
        return ""
    first = np.unravel_index(int(np.argmin(right)), right.shape)
    where = ", ".join(map(str, first))
    wrong = int(right.size - np.count_nonzero(right))
    return (
        f"{name}[{where}] is {got[first]}, expected {expected[first]}; "
        f"{wrong} of {right.size} are wrong"
    )


@dataclass
class Trial:
    """A variant on its way."""

    number: int
    values: Values
    macros: Values
    constants: Values
    launch: dict[str, Any]
    """What `Stream.prepare` takes."""
    key: str = ""
    kernel: Kernel | None = None
    stream: Stream | None = None
    outputs: dict[str, Any] = field(default_factory=dict)
    """NumPy arrays, by name."""
    error: Error | None = None

    @property
    def is_victim(self) -> bool:
        """Whether it failed for a reason that is not its own."""
        return isinstance(self.error, (VictimError, EnvironError))

    def close(self) -> None:
        """End its worker."""
        if self.stream is not None:
            self.stream.close()
        self.kernel = self.stream = None
        self.outputs = {}


@dataclass
class Settings:
    """What all variants of a sweep have in common."""

    source: Source
    constants: frozenset[Any]
    launch: dict[str, Any]
    trusted: bool
    check: Any
    tolerance: tuple[float, float]
    repeats: int
    jobs: int
    device: str | None
    memory: str
    stream_options: dict[str, Any]
    each: Callable[[Variant], object] | None
    end: float | None
    """By time.monotonic()."""


class Sweeper:
    """A sweep while it goes on. Its context has no other work."""

    def __init__(self, settings: Settings, context: Context, cache: Cache) -> None:
        self._settings = settings
        self._context = context
        self._cache = cache
        # It keeps the arrays that all variants share, and runs no variant.
        self._home = context.stream("sweep", device=settings.device)
        self._home.wait_ready()
        self.device = self._home.device  # all workers are on this one, even if `device` is 'any'
        self._stream_options: dict[str, Any] = settings.stream_options | {"device": self.device}
        self._arrays = self._take_arrays(settings.launch["args"])
        self._declared: dict[bytes, Any] = {}  # specialization constants, by the module's hash
        self.results: list[Variant] = []
        self._used: set[str] = set()  # parameters that some variant has
        self._refusals: list[CallerError] = []

    # -- what is given

    def _take_arrays(self, args: Mapping[str, Any]) -> dict[Any, Buffer]:
        """The content with which each array begins."""
        options: dict[str, Any] = {"stream": self._home, "memory": self._settings.memory}
        arrays: dict[Any, Buffer] = {}
        for name, value in args.items():
            if not isinstance(value, like) and not _is_number(value):
                arrays[name] = take_array(self._context, "sweep", name, value, **options)
        for name, value in args.items():
            if isinstance(value, like):
                if value.name not in arrays:
                    what = f"there is no array '{value.name}' to be like"
                    raise InvalidArgument(f"sweep: {name}: {what}")
                arrays[name] = self._context.empty_like(arrays[value.name], value.dtype, **options)
        if isinstance(self._settings.check, Mapping):
            self._look_at_expected(arrays)
        return arrays

    def _look_at_expected(self, arrays: dict[str, Buffer]) -> None:
        import numpy as np

        for name, expected in self._settings.check.items():
            if name not in arrays:
                raise InvalidArgument(f"sweep: check: there is no array '{name}'")
            if np.shape(expected) != arrays[name].shape:
                raise InvalidArgument(
                    f"sweep: check: {name}: its shape is {np.shape(expected)}, and the argument's "
                    f"{arrays[name].shape}"
                )

    def plan(self, number: int, values: Values) -> Trial:
        """Say how a variant is made and launched."""
        launch = dict(self._settings.launch)
        with noting(values):
            for name in ("grid", "groups"):
                if callable(launch[name]):
                    launch[name] = launch[name](dict(values))
            launch["args"] = {
                name: value(dict(values)) if callable(value) else value
                for name, value in launch["args"].items()
                if name not in self._arrays
            }
        constants = {name: values[name] for name in values if name in self._settings.constants}
        macros = {name: values[name] for name in values if name not in constants}
        if self._settings.source.kind != "text":
            macros = {}
        return Trial(number, values, macros, constants, launch)

    def name_keys(self, trials: Iterable[Trial]) -> None:
        """Hash for each variant all that its result depends on."""
        (device,) = (one for one in self._context.devices() if one["selector"] == self.device)
        settings, arrays = self._settings, self._arrays
        common = digest_of(
            [
                _native.version(),
                [device[what] for what in ("name", "driver", "driver_info")],
                hashlib.sha256(_to_bytes(settings.source.fields[0])).hexdigest(),
                settings.source.fields[2:],
                settings.trusted,
                settings.check is None,
                settings.repeats,
                settings.memory,
                settings.stream_options,
                {name: [one.dtype, one.shape] for name, one in arrays.items()},
            ]
        )
        for one in trials:
            values = [
                {str(name): str(value) for name, value in known.items()}
                for known in (one.macros, one.constants, one.launch["args"])
            ]
            one.key = digest_of([common, values, one.launch["grid"], one.launch["groups"]])

    # -- one variant

    def _make_kernel(self, trial: Trial) -> Kernel:
        source, trusted = self._settings.source.defining(trial.macros), self._settings.trusted

        def make(specializations: list[tuple[int, int, int]]) -> Kernel:
            made: Kernel = _native.kernel_create(
                self._context, source.fields, source.kind, trusted, specializations, (0, 0, 0), 0
            )
            return made

        kernel = make([])
        if not trial.constants:
            return kernel
        declared = self._declared.get(kernel.hash)
        if declared is None:
            declared = self._declared[kernel.hash] = kernel._inspect()[5]
        return make(kernels.to_specializations(trial.constants, declared))

    def _bind(self, trial: Trial) -> tuple[Any, dict[str, Buffer], list[Any]]:
        """(a launch, new buffers for what the kernel writes, what fills those that it also reads)"""
        assert trial.kernel and trial.stream
        fresh: dict[str, Buffer] = {}
        bound, fills, again = {}, [], []
        for one in trial.kernel.info.buffers:
            begin = self._arrays.get(one.name)
            if begin is None:
                continue  # the launch says what is missing
            if one.access == "read":
                bound[one.name] = read(begin)
                continue
            made = fresh[one.name] = self._context.empty(
                begin.shape,
                begin.dtype,
                stream=trial.stream,
                memory=self._settings.memory,
                uninitialized=True,
            )
            fills.append((begin, made))
            if one.access == "read_write":
                again.append((begin, made))
        trial.stream.submit(fills)
        names = {one.name for one in trial.kernel.info.parameters}
        self._used.update(names)
        # The optimiser may have removed what some variants do not need.
        numbers = {name: one for name, one in trial.launch["args"].items() if name in names}
        manner: dict[str, Any] = trial.launch | {"args": bound | fresh | numbers}
        launch = trial.stream.prepare(trial.kernel, **manner)
        return launch, fresh, again

    def _attempt(self, trial: Trial) -> Trial:
        """Compile a variant and run it once. In a thread of the pool, or while all these rest."""
        trial.error = None
        try:
            # Its worker starts while the source compiles.
            trial.stream = self._context.stream(f"sweep-{trial.number}", **self._stream_options)
            trial.kernel = self._make_kernel(trial)
            launch, fresh, _ = self._bind(trial)
            launch().wait()
            if self._settings.check is not None:
                trial.outputs = {name: one.numpy(copy=True) for name, one in fresh.items()}
        except Error as error:
            trial.error = error
        return trial

    def _judge(self, trial: Trial) -> bool:
        """Whether what came of a variant is right; if not, that is its result."""
        if trial.error is None:
            wrong = objection(self._settings.check, self._settings.tolerance, trial.outputs)
            trial.outputs = {}
            if not wrong:
                return True
            self._end(trial, Variant(trial.number, trial.values, "WRONG", wrong))
            return False
        error = trial.error
        if isinstance(error, CallerError):
            self._refusals.append(error)
        said = error.log.strip() if isinstance(error, CompileFailed) else ""
        if not said and isinstance(error, Poisoned) and error.verdict:
            said = error.verdict.message
        self._end(trial, Variant(trial.number, trial.values, error.code, said or str(error)))
        return False

    def _time(self, trial: Trial) -> None:
        """Time a right variant. Nothing else runs."""
        assert trial.stream
        of_device, of_host = [], []
        try:
            launch, _, again = self._bind(trial)
            for number in range(self._settings.repeats + 1):
                if again:
                    trial.stream.submit(again)
                verdict = launch(timed=True).result()
                if number:  # the first one warms up
                    of_device.append(verdict.device_ns / 1e9)
                    of_host.append(verdict.seconds)
                if self._is_over():
                    return
        except Error as error:
            trial.error = error
            self._judge(trial)
            return
        device = all(of_device)
        times = tuple(of_device if device else of_host)
        self._end(trial, Variant(trial.number, trial.values, "OK", "", times, device))

    def _end(self, trial: Trial, result: Variant) -> None:
        if trial.error is None or isinstance(trial.error, KernelError):
            self._cache.put(trial.key, result)
        trial.close()
        self.tell(result)

    def tell(self, result: Variant) -> None:
        """Take a result."""
        self.results.append(result)
        if self._settings.each is not None:
            self._settings.each(result)

    # -- all variants

    def _left(self) -> float | None:
        return None if self._settings.end is None else self._settings.end - time.monotonic()

    def _is_over(self) -> bool:
        left = self._left()
        return left is not None and left <= 0

    def run(self, todo: deque[Trial], pool: ThreadPoolExecutor) -> None:
        """Try variants at once, and let the right ones wait; when some do, let all others rest, and
        time these one by one.
        """
        flying: set[Future[Trial]] = set()
        waiting: list[Trial] = []
        while (todo or flying or waiting) and not self._is_over():
            while todo and len(flying) < self._settings.jobs and len(waiting) < _KEPT:
                flying.add(pool.submit(self._attempt, todo.popleft()))
            if flying:
                done, flying = wait(flying, self._left(), FIRST_COMPLETED)
                for one in sorted((each.result() for each in done), key=lambda one: one.number):
                    if one.is_victim:
                        one.close()
                    if one.is_victim or self._judge(one):
                        waiting.append(one)
                continue
            for one in sorted(waiting, key=lambda one: one.number):
                if one.is_victim and not self._judge(self._attempt(one)):
                    continue
                self._time(one)
                if self._is_over():
                    return
            waiting.clear()

    def check_call(self) -> None:
        """Raise if the call is to blame: for each failure, or for an argument that none takes."""
        if self._refusals and len(self._refusals) == len(self.results):
            rename(self._refusals[0], ("^(kernel|launch|prepare): ", "sweep: "))
            raise self._refusals[0]
        for name in self._settings.launch["args"]:
            if self._used and name not in self._used:
                there = ", ".join(sorted(self._used))
                raise InvalidArgument(f"sweep: no variant has a parameter '{name}'; there is {there}")


def _is_number(value: Any) -> bool:
    """Whether it is no array: a number, several for a vector, or a function that returns some."""
    of_numpy = getattr(value, "shape", None) == ()
    return of_numpy or callable(value) or isinstance(value, (bool, int, float, list, tuple))


def _to_bytes(code: str | bytes) -> bytes:
    return code.encode() if isinstance(code, str) else code
