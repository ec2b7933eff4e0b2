"""Judgements: what a candidate was judged to be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ._status import Status
from .errors import InvalidArgument, NotCorrect
from .verdict import Blame

if TYPE_CHECKING:
    import numpy as np

    from .repeating import Repeat

_BLAME = (Blame.NONE, Blame.SUSPECTED, Blame.CERTAIN)
_WRONG = 1  # bh_judge_verdict
_NO_ULP = 2**64 - 1


@dataclass(frozen=True)
class Wrong:
    """The first wrong element of an output; by a norm, the worst; by a check, none: `index` and the texts are
    empty."""

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
    doubt: str | None = None
    """Why the ratio is not known: 'claims', 'drift' or 'load' (docs/judge.md); None: it is known."""

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
    size, runs, median, reference, ratio, low, high, noise, drift, host, guard, flags, why = fields
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
        *(*flags, why or None),
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
    """OK: it is correct; NOT_CORRECT; another: why it did not run to its end."""
    message: str
    """What went wrong, in one line; '' if nothing did."""
    blame: Blame
    """How certain it is that the kernel is the cause, if it failed."""
    runs: int
    """How many of its runs ended well, right or wrong."""
    deterministic: bool | None
    """Whether runs with the same inputs left the same bytes: the first of each size and the task's
    "repeats" of it, every second of them with workgroups in the opposite order (not of CUDA). None:
    it is not correct."""
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
    _repeat: Repeat | None = field(default=None, repr=False, compare=False)

    @property
    def correct(self) -> bool:
        """Whether every output of every run was right."""
        return self.verdict == "CORRECT"

    @property
    def max_error(self) -> float | None:
        """The largest absolute error of all outputs; None: it is not right."""
        return max((error.absolute for error in self.errors), default=None)

    @property
    def doubt(self) -> str | None:
        """Why the ratio of a size is not known: the first `Timing.doubt`; None: there is none."""
        return next((timing.doubt for timing in self.timings if timing.doubt), None)

    def inputs(self) -> dict[str, np.ndarray[Any, Any]]:
        """What the candidate read in the run that ended its judging, by name, as NumPy arrays.

        The first of `inputs`, `expected` and `actual` runs the candidate once more, with the same
        inputs, and the reference where its judge was closed. A timed run cannot be repeated.
        Whoever has the inputs of a hidden seed knows all of them (docs/judge.md).
        """
        return self._part(0)

    def expected(self) -> dict[str, np.ndarray[Any, Any]]:
        """What the reference computed from these inputs."""
        return self._part(1)

    def actual(self) -> dict[str, np.ndarray[Any, Any]]:
        """What the candidate wrote. One that races may write other values this time. Raises what
        ended it if it has not run to its end.

        >>> judgement = bh.judge(task, SQUARE.replace("*", "+"), seed=42)[0]
        >>> x, y = judgement.inputs()["X"], judgement.actual()["Y"]
        >>> bool((y == x + x).all())
        True
        """
        return self._part(2)

    def _part(self, index: int) -> dict[str, np.ndarray[Any, Any]]:
        if self._repeat is None:
            raise InvalidArgument(f"{self.name}: nobody knows any more how it was judged")
        return self._repeat.part(index)

    def check(self) -> None:
        """Raise `NotCorrect`, unless it is correct."""
        if not self.correct:
            error = NotCorrect(str(self), status=self.status)
            error.judgement = self
            raise error

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict}" + (f": {self.message}" if self.message else "")


def to_judgement(name: str, fields: tuple[Any, ...], repeat: Repeat) -> Judgement:
    """Make a judgement of what `Judge._run` tells."""
    judged, status, verdict, message, blame, deterministic, located, hidden = fields[:8]
    runs, seed, size, output, index, expected, got, ulp, count, elements, times = fields[8:19]
    errors, fill, repeat.told = fields[19:]
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
        _repeat=repeat,
    )
