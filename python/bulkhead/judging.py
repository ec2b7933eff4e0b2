"""Judging kernels: which of them compute what a task wants."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Union, cast

from . import _native, references
from ._status import Status
from .errors import InvalidArgument, InvalidType, NotCorrect
from .scope import Scoped
from .source import LANGUAGES
from .verdict import Blame

Task = Union[Mapping[str, Any], str, os.PathLike[str]]
"""A task as docs/judge.md describes it: a mapping, or the path of a task file."""
Source = Union[str, bytes, os.PathLike[str]]
"""A kernel. A text with a line end in it is source code, another text and a path-like object name
a file, and bytes are what is in a file: SPIR-V or source code.
"""

_BLAME = (Blame.NONE, Blame.SUSPECTED, Blame.CERTAIN)
_WRONG = 1  # bh_judge_verdict
_NO_ULP = 2**64 - 1
_WIDTH = 79
_FIXED = "same inputs in each run: a kernel that only stores the results is CORRECT, too"


@dataclass(frozen=True)
class Wrong:
    """The first wrong element of an output."""

    output: str
    """The binding, as the task names it."""
    index: tuple[int, ...]
    expected: str
    """A text, so that no digit is lost; `float(expected)` is the same number."""
    got: str
    ulp: int | None
    """How many numbers of the type lie between both; None: one of them is NaN."""
    count: int
    """How many elements are wrong."""
    elements: int
    """How many the output has."""


@dataclass(frozen=True)
class Largest:
    """The largest errors of an output that is right."""

    output: str
    """The binding, as the task names it."""
    absolute: float
    relative: float
    """Relative to what was expected, where that is not 0."""
    ulp: int
    """How many numbers of the type lie between both."""


@dataclass(frozen=True)
class Timing:
    """Times of one size: candidate and reference took turns (docs/judge.md)."""

    size: str
    """Such as 'n=64, m=3'."""
    runs: int
    """Timed runs of each."""
    seconds: float
    """The median of the candidate."""
    reference: float
    """The median of the reference, in seconds."""
    ratio: float | None
    """The first over the second, from groups of runs; None: not known, because the device did not
    keep its pace or was too busy, or the claims exceeded a bound: then nothing confirms the
    times."""
    low: float
    """The ratio is between `low` and `high` with 95 %."""
    high: float
    noise: float
    """Relative, of the reference's median: 0.005 is 0.5 %."""
    drift: float
    """Relative, of the reference's median, between the halves of the runs."""
    host: float | None
    """Seconds of a run by the host's clock, in warm batches; with `one_processor` by the processor
    time of its worker; None: too short to be seen."""
    guard_ratio: float | None
    """How many times as long it takes with the guard; None: not measured."""
    device: bool
    """Whether the times are the device's; False: the host's, of batches."""
    cold: bool
    """Whether caches were flushed before each run."""
    noisy: bool
    """Whether the noise stayed above 0.5 %."""
    one_processor: bool
    """Whether all runs were on one processor, because the driver runs kernels on processors."""

    def __str__(self) -> str:
        ratio = (
            "unknown"
            if self.ratio is None
            else f"{self.ratio:.3f} ({self.low:.3f} to {self.high:.3f})"
        )
        return (
            f"{self.size}: {1e6 * self.seconds:.3f} us, reference {1e6 * self.reference:.3f} us, "
            f"ratio {ratio}{', noisy' if self.noisy else ''}"
        )


def _to_timing(fields: tuple[Any, ...]) -> Timing:
    size, runs, median, reference, ratio, low, high, noise, drift, host, guard, flags = fields
    return Timing(
        size,
        runs,
        median / 1e9,
        reference / 1e9,
        ratio or None,
        low,
        high,
        noise,
        drift,
        host / 1e9 if host else None,
        guard or None,
        *flags,
    )


@dataclass(frozen=True)
class Judgement:
    """What one candidate was judged to be."""

    name: str
    verdict: str
    """'CORRECT', 'WRONG', 'STRAY_WRITE', 'STRAY_READ', 'TIMING_FORGED', 'SLOWER', or the name of the status with
    which it failed.
    """
    status: Status
    """Why it did not run to its end; OK: it did."""
    message: str
    """What went wrong, in one line; '' if nothing did."""
    blame: Blame
    """How certain it is that the kernel is the cause, if it failed."""
    runs: int
    """How many of its runs ended well, right or wrong."""
    deterministic: bool | None
    """Whether two runs with the same inputs left the same bytes; None: it is not correct."""
    size: str | None
    """The size of the run that ended it, such as 'n=64, m=3'; None: none did."""
    seed: int | None
    """The seed of that run."""
    hidden: bool
    """Whether that seed is a hidden one."""
    wrong: Wrong | None
    """Where its output is wrong; None: it is not WRONG."""
    timings: tuple[Timing, ...] = ()
    """Of each size, if it was timed (`time=True`)."""
    errors: tuple[Largest, ...] = ()
    """Of each output, if it is right."""
    fill: str = ""
    """How the inputs of the run that ended it were made, such as 'sorted' (docs/judge.md)."""

    @property
    def correct(self) -> bool:
        """Whether every output of every run was right."""
        return self.verdict == "CORRECT"

    def check(self) -> None:
        """Raise `NotCorrect`, unless it is correct."""
        if not self.correct:
            error = NotCorrect(str(self), status=self.status)
            error.judgement = self
            raise error

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict}" + (f": {self.message}" if self.message else "")


def _to_judgement(name: str, fields: tuple[Any, ...]) -> Judgement:
    judged, status, verdict, message, blame, deterministic, located, hidden = fields[:8]
    runs, seed, size, output, index, expected, got, ulp, count, elements, times = fields[8:19]
    errors, fill = fields[19:]
    steps = None if ulp == _NO_ULP else ulp
    return Judgement(
        name=name,
        verdict=verdict,
        status=Status(status),
        message=message,
        blame=_BLAME[blame],
        runs=runs,
        deterministic=deterministic if verdict == "CORRECT" else None,
        size=size if located else None,
        seed=seed if located else None,
        hidden=hidden,
        wrong=Wrong(output, index, expected, got, steps, count, elements)
        if judged == _WRONG
        else None,
        timings=tuple(_to_timing(one) for one in times),
        errors=tuple(Largest(*one) for one in errors),
        fill=fill,
    )


@dataclass(frozen=True)
class Report:
    """The judgements of several candidates, in the order in which these were given.

    `print(report)` shows them all. A judgement is found by its number or by the candidate's name.

    >>> report = bh.judge(task, {"right": SQUARE, "wrong": SQUARE.replace("*", "+")}, seed=42)
    >>> report
    <Report of 'square': 1 correct of 2>
    >>> report["wrong"].wrong.index
    (0,)
    >>> [one.name for one in report if one.correct]
    ['right']
    """

    task: str
    """The name of the task; '': it has none."""
    seeds: tuple[int, ...]
    """The hidden seeds: `judge(..., seed=seeds)` repeats the judging."""
    judgements: tuple[Judgement, ...]
    fixed_inputs: bool = False
    """Whether each run of a size had the same inputs: a kernel that only stores the results is
    CORRECT, too (docs/judge.md)."""
    weak: tuple[str, ...] = ()
    """The outputs that a kernel which computes nothing has right, a line for each (docs/judge.md)."""

    @property
    def correct(self) -> tuple[Judgement, ...]:
        """The judgements of the candidates that are correct."""
        return tuple(one for one in self.judgements if one.correct)

    @property
    def ok(self) -> bool:
        """Whether all are correct."""
        return len(self.correct) == len(self.judgements)

    def check(self) -> None:
        """Raise `NotCorrect` for the first candidate that is not correct."""
        for one in self:
            one.check()

    def __len__(self) -> int:
        return len(self.judgements)

    def __iter__(self) -> Iterator[Judgement]:
        return iter(self.judgements)

    def __getitem__(self, key: int | str) -> Judgement:
        if isinstance(key, str):
            for one in self.judgements:
                if one.name == key:
                    return one
            raise KeyError(key)
        return self.judgements[key]

    def __repr__(self) -> str:
        of = f" of {self.task!r}" if self.task else ""
        return f"<Report{of}: {len(self.correct)} correct of {len(self)}>"

    def __str__(self) -> str:
        names = max((len(one.name) for one in self), default=0)
        verdicts = max((len(one.verdict) for one in self), default=0)
        title = f" {self.task or 'judging'}: {_count(len(self), 'candidate')} "
        lines = [title.center(_WIDTH, "=")]
        for one in self:
            runs = _count(one.runs, "run") + (
                ", not deterministic" if one.deterministic is False else ""
            )
            lines.append(f"{one.name:{names}}  {one.verdict:{verdicts}}  {runs}")
            lines += [f"    {timing}" for timing in one.timings]
        for one in self:
            if not one.correct:
                lines += [f" {one.name} ".center(_WIDTH, "-"), one.message or one.verdict]
        if self.fixed_inputs:
            lines += ["-" * _WIDTH, _FIXED]
        lines += [f"weak task: {one}" for one in self.weak]
        wrong = len(self) - len(self.correct)
        seeds = ", ".join(map(str, self.seeds))
        end = f" {len(self.correct)} correct" + (f", {wrong} not" if wrong else "")
        end += f"; hidden seed{'s' if len(self.seeds) > 1 else ''} {seeds} "
        return "\n".join([*lines, end.center(_WIDTH, "=")])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# -- what is given ---------------------------------------------------------------------------------


def _to_options(
    task: Task,
    device: str | None,
    folder: str | os.PathLike[str] | None,
    times: dict[str, Any],
) -> dict[str, Any]:
    options: dict[str, Any] = times | {
        "device": device,
        "folder": None if folder is None else os.fsencode(folder),
    }
    if isinstance(task, Mapping):
        try:
            options["task_text"] = json.dumps(dict(task), indent=1, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InvalidType(f"judge: task: it is not JSON: {error}") from None
    elif isinstance(task, (str, os.PathLike)):
        options["task_path"] = os.fsencode(task)
    else:
        raise InvalidType(f"judge: task: a mapping or the path of a file, not {type(task)}")
    return options


def _to_seeds(seed: int | Iterable[int] | None) -> list[int]:
    if seed is None:
        return []
    if isinstance(seed, Iterable):
        seeds = list(seed)
        if not seeds:
            raise InvalidArgument("judge: seed: there is none in it; None means a random one")
        return seeds
    return [seed]


def _is_path(source: Source) -> bool:
    return isinstance(source, os.PathLike) or (isinstance(source, str) and "\n" not in source)


def _name(source: Source, number: int) -> str:
    return os.fsdecode(source) if _is_path(source) else f"candidate-{number}"


def _to_candidates(
    candidates: Source | Iterable[Source] | Mapping[str, Source],
) -> list[tuple[str, Source]]:
    if isinstance(candidates, Mapping):
        return list(candidates.items())
    if isinstance(candidates, (str, bytes, os.PathLike)):
        return [(_name(candidates, 1), candidates)]
    if not isinstance(candidates, Iterable):
        raise InvalidType(f"judge: candidates: kernels, not {type(candidates)}")
    several = cast("Iterable[Source]", candidates)
    return [(_name(one, number), one) for number, one in enumerate(several, 1)]


def _to_code(source: Source, what: str) -> tuple[bytes | None, bytes | None]:
    """Return the path and the code, one of which is None."""
    if isinstance(source, bytes):
        return None, source
    if isinstance(source, str) and not _is_path(source):
        return None, source.encode()
    if isinstance(source, (str, os.PathLike)):
        return os.fsencode(source), None
    raise InvalidType(f"judge: {what}: source code, bytes or a path, not {type(source)}")


def _to_baseline(source: Source | None) -> tuple[bytes, bytes | None, bytes | None] | None:
    if source is None:
        return None
    path, code = _to_code(source, "baseline")
    return (path or b"baseline").replace(b"\0", b"?"), path, code


# -- judging ---------------------------------------------------------------------------------------


class Judge(_native.Judge, Scoped):
    """Judges candidates of one task, one after the other; its reference runs once.

    The parameters are those of `judge`. Close it, or use it in a `with` block: it has workers. A
    `KeyboardInterrupt` in `run` or `prepare` ends all its judging, as `cancel` does.

    >>> with bh.Judge(task, seed=42) as judge:
    ...     for number in (1, 2):
    ...         print(judge.run(SQUARE.replace("x[i] *", f"{number}.0 * x[i] *")))
    candidate-1: CORRECT
    candidate-2: WRONG: Y[0] is 4.5, expected 2.25, 8388608 ULP; 64 of 64 are wrong (n=64, seed 1)
    """

    __slots__ = ("__weakref__", "_number")

    def __init__(
        self,
        task: Task,
        *,
        seed: int | Iterable[int] | None = None,
        device: str | None = None,
        folder: str | os.PathLike[str] | None = None,
        time: bool = False,
        warm: bool = False,
        all_processors: bool = False,
        guard_cost: bool = False,
        timed_runs: int | None = None,
        slower_than: float | None = None,
        strict: bool = False,
        reference: references.Function | None = None,
        baseline: Source | None = None,
    ) -> None:
        self._number = 0
        if reference is not None and not callable(reference):
            raise InvalidType(f"judge: reference: a function, not {type(reference)}")
        times = {
            "strict": strict,
            "timed": time,
            "warm": warm,
            "all_processors": all_processors,
            "guard_cost": guard_cost,
            "timed_runs": timed_runs,
            "slower_than": slower_than,
        }
        try:
            super().__init__(
                _to_options(task, device, folder, times),
                _to_seeds(seed),
                None if reference is None else references.of(reference),
                _to_baseline(baseline),
            )
        except InvalidArgument as error:
            if not isinstance(task, Mapping):
                raise
            # A mapping has no lines.
            message = re.sub(r"^task:\d+: ", "task: ", str(error))
            raise InvalidArgument(message, status=error.status) from None

    @property
    def seeds(self) -> tuple[int, ...]:
        """The hidden seeds."""
        return self._seeds()

    def run(
        self, candidate: Source, *, name: str | None = None, language: str | None = None
    ) -> Judgement:
        """Judge one candidate.

        Whatever the candidate does, it is a judgement. An exception means that nothing is known
        about it: the task's reference cannot judge (`InvalidArgument`), the machine cannot run it
        (`EnvironError`), or `cancel` was called (`Cancelled`).
        """
        self._number += 1
        name = _name(candidate, self._number) if name is None else name
        if language not in LANGUAGES:
            raise InvalidArgument(f"judge: language: {language!r}: it is 'spirv', 'glsl' or 'hlsl'")
        path, code = _to_code(candidate, name)
        given = os.fsencode(name).replace(b"\0", b"?")
        return _to_judgement(name, self._run(given, path, code, LANGUAGES[language]))

    def _leave(self) -> None:
        self.close()


def judge(
    task: Task,
    candidates: Source | Iterable[Source] | Mapping[str, Source],
    *,
    seed: int | Iterable[int] | None = None,
    device: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    language: str | None = None,
    time: bool = False,
    warm: bool = False,
    all_processors: bool = False,
    guard_cost: bool = False,
    timed_runs: int | None = None,
    slower_than: float | None = None,
    strict: bool = False,
    reference: references.Function | None = None,
    baseline: Source | None = None,
    each: Callable[[Judgement], object] | None = None,
) -> Report:
    """Say which kernels compute what a task wants; nobody needs to trust them.

    `task` is a mapping, or the path of a task file (docs/judge.md). Files that a mapping names are
    relative to `folder`. `candidates` is one kernel, several, or a mapping from names to kernels.
    A kernel is the path of a file, source code (a text with a line end in it), or bytes, SPIR-V or
    source code. `seed` gives hidden seeds: inputs that the task does not show; without it there
    is a random one, which the report names. `device` selects the device. `language` ('glsl',
    'hlsl', 'spirv') is for kernels whose name and content do not say it. `each` is called with each
    judgement as soon as it is known.

    `reference` is a function that computes what is right, for a task that has no "reference": it gets
    NumPy arrays, push constants and sizes, by the names of its parameters, and returns the outputs:
    an array, a tuple in the task's order, or a dict. It is called once for each size and seed, in
    the thread that calls `judge`; an exception in it is that of this call. Inputs are read-only.

    `time` also measures the candidates that are correct, beside the reference: `timed_runs` runs of
    each size (50), with caches flushed before each unless `warm`. Where the driver runs kernels on
    processors, all timed runs are on one unless `all_processors`: ratios are more exact there.
    `guard_cost` compares with runs without the guard. A candidate that surely takes more than
    `slower_than` times as long as the reference is SLOWER.

    `baseline` is a kernel that they are compared with in place of the reference, which then may be a function. It
    is judged first, and must be correct.

    `strict` refuses a task that is weak (`Report.weak`), or whose inputs never vary. A candidate
    that crashes or hangs is judged like any other. A task that is wrong raises
    `InvalidArgument`, which names the field.

    >>> print(bh.judge(task, SQUARE, seed=42)[0])
    candidate-1: CORRECT
    """
    given = _to_candidates(candidates)
    judgements = []
    with Judge(
        task,
        seed=seed,
        device=device,
        folder=folder,
        time=time,
        warm=warm,
        all_processors=all_processors,
        guard_cost=guard_cost,
        timed_runs=timed_runs,
        slower_than=slower_than,
        strict=strict,
        reference=reference,
        baseline=baseline,
    ) as court:
        court.prepare()
        for name, source in given:
            judgements.append(court.run(source, name=name, language=language))
            if each is not None:
                each(judgements[-1])
        return Report(court.task, court.seeds, tuple(judgements), court.fixed_inputs, tuple(court.weak))
