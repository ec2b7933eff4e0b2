"""Reports: the judgements of several candidates."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass

from .judgement import Judgement, Timing

_WIDTH = 79
_FIXED = "same inputs in each run: a kernel that only stores the results is CORRECT, too"


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
    def failures(self) -> tuple[Judgement, ...]:
        """The judgements of the others."""
        return tuple(one for one in self.judgements if not one.correct)

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


    def _repr_html_(self) -> str:
        """A table for notebooks. Names and messages come from candidates: they are text in it."""
        timed = any(one.timings for one in self)
        heads = ["candidate", "verdict", "runs", "largest error", *["ratio"] * timed, "message"]
        rows = [_row("th", heads)]
        for one in self:
            error = "" if one.max_error is None else f"{one.max_error:.3g}"
            ratios = [_to_ratio(timing) for timing in one.timings]
            note = "not deterministic" if one.deterministic is False else one.message
            cells = [one.name, one.verdict, str(one.runs), error, *[", ".join(ratios)] * timed, note]
            rows.append(_row("td", cells))
        lines = [f"{len(self.correct)} correct of {len(self)}"]
        lines += ["hidden seeds: " + ", ".join(map(str, self.seeds))]
        lines += [_FIXED] * self.fixed_inputs + [f"weak task: {one}" for one in self.weak]
        title = _escape(self.task or "judging")
        foot = "<br/>".join(map(_escape, lines))
        return f"<table><caption>{title}</caption>{''.join(rows)}</table><p>{foot}</p>"


def _to_ratio(timing: Timing) -> str:
    ratio = "unknown" if timing.ratio is None else f"{timing.ratio:.3f}"
    return f"{timing.size}: {ratio}" + (f" ({timing.doubt})" if timing.doubt else "")


def _row(tag: str, cells: list[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{_escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _escape(text: str) -> str:
    """What cannot be printed, such as half a surrogate pair, becomes a question mark."""
    return html.escape("".join(one if one.isprintable() else "?" for one in text))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
