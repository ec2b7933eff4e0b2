"""Judging kernels: which of them compute what a task wants."""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Union, cast

from . import _native, references
from .errors import InvalidArgument, InvalidType
from .judgement import Judgement, to_judgement
from .repeating import Repeat, settled
from .report import Report
from .scope import Scoped
from .source import LANGUAGES, Include, to_defines

Task = Union[Mapping[str, Any], str, os.PathLike[str]]
"""A task as docs/judge.md describes it: a mapping, or the path of a task file."""
Source = Union[str, bytes, os.PathLike[str], Mapping[str, Any]]
"""A kernel. A text with a line end in it is source code, another text and a path-like object name
a file, and bytes are what is in a file: SPIR-V, an image for CUDA or source code. A mapping is a plan of several kernels
(docs/judge.md), each with its `"source"`.
"""


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
        options["task_text"] = _to_json("task", task)
    elif isinstance(task, (str, os.PathLike)):
        options["task_path"] = os.fsencode(task)
    else:
        raise InvalidType(f"judge: task: a mapping or the path of a file, not {type(task)}")
    return options


def _to_json(what: str, value: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(value), indent=1, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidType(f"judge: {what}: it is not JSON: {error}") from None


def _constant_bits(id_: Any, value: Any) -> tuple[int, int]:
    """(bytes, bits)"""
    if not isinstance(id_, int) or not 0 <= id_ < 2**32:
        raise InvalidArgument(f"judge: constants: {id_!r} is no id from 0 to 4294967295")
    try:
        if isinstance(value, (bool, int)):
            packed = struct.pack("<I" if value >= 0 else "<i", value)
        elif type(value) is float:
            packed = struct.pack("<f", value)
        else:
            packed = value.tobytes()
    except (AttributeError, OverflowError, struct.error) as error:
        raise InvalidArgument(f"judge: constants: {id_}: {value!r}: {error}") from None
    return len(packed), int.from_bytes(packed, "little")


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
    return os.fsdecode(cast(str, source)) if _is_path(source) else f"candidate-{number}"


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
    if isinstance(source, Mapping):
        return None, _to_json(what, source).encode()
    if isinstance(source, str) and not _is_path(source):
        return None, source.encode()
    if isinstance(source, (str, os.PathLike)):
        return os.fsencode(source), None
    raise InvalidType(f"judge: {what}: source code, bytes, a path or a plan, not {type(source)}")


def _to_baseline(source: Source | None) -> tuple[bytes, bytes | None, bytes | None] | None:
    if source is None:
        return None
    path, code = _to_code(source, "baseline")
    return (path or b"baseline").replace(b"\0", b"?"), path, code


# -- judging ---------------------------------------------------------------------------------------


_MOST_WORKERS = 64


class Judge(_native.Judge, Scoped):
    """Judges candidates of one task; its reference runs once.

    The parameters are those of `judge`. Several threads may call `run`: `workers` of their
    candidates are judged at the same time. Close it, or use it in a `with` block: it has workers. A
    `KeyboardInterrupt` in `run` or `prepare` ends all its judging, as `cancel` does.

    >>> with bh.Judge(task, seed=42) as judge:
    ...     for number in (1, 2):
    ...         print(judge.run(SQUARE.replace("x[i] *", f"{number}.0 * x[i] *")))
    candidate-1: CORRECT
    candidate-2: WRONG: Y[0] is 4.5, expected 2.25, 8388608 ULP; 64 of 64 are wrong (n=64, seed 1)
    """

    __slots__ = ("__weakref__", "_constants", "_drawn", "_made", "_number", "_functions", "_settled")

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
        share_workers: bool = False,
        reference: references.Function | None = None,
        check: references.Check | None = None,
        baseline: Source | None = None,
        workers: int = 1,
        state: str | os.PathLike[str] | None = None,
        resume: bool = False,
        html: str | os.PathLike[str] | None = None,
        entry: str | None = None,
        defines: Mapping[str, object] | None = None,
        include: Include = None,
        constants: Mapping[int, float] | None = None,
    ) -> None:
        self._number = 0
        for what, function in (("reference", reference), ("check", check)):
            if function is not None and not callable(function):
                raise InvalidType(f"judge: {what}: a function, not {type(function)}")
        if not isinstance(workers, int) or not 1 <= workers <= _MOST_WORKERS:
            raise InvalidArgument(f"judge: workers: {workers!r}: it is 1 to {_MOST_WORKERS}")
        self._made: tuple[Any, ...] = (None, None, entry, None, {}, *to_defines("judge", defines, include), None)
        self._constants = [(id_, *_constant_bits(id_, one)) for id_, one in (constants or {}).items()]
        times = {
            "parallel": workers,
            "state": None if state is None else os.fsencode(state),
            "resume": resume,
            "html": None if html is None else os.fsencode(html),
            "strict": strict,
            "share_workers": share_workers,
            "timed": time,
            "warm": warm,
            "all_processors": all_processors,
            "guard_cost": guard_cost,
            "timed_runs": timed_runs,
            "slower_than": slower_than,
        }
        options = _to_options(task, device, folder, times)
        self._settled = settled(options)
        self._functions = (
            None if reference is None else references.of(reference),
            None if check is None else references.check_of(check),
        )
        try:
            super().__init__(
                options,
                _to_seeds(seed),
                *self._functions,
                _to_baseline(baseline),
            )
        except InvalidArgument as error:
            if not isinstance(task, Mapping):
                raise
            # A mapping has no lines.
            message = re.sub(r"^task:\d+: ", "task: ", str(error))
            raise InvalidArgument(message, status=error.status) from None
        self._drawn = self._seeds()

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
        if language == "cuda" or language not in LANGUAGES:
            raise InvalidArgument(f"judge: language: {language!r}: it is 'spirv', 'glsl' or 'hlsl'")
        path, code = _to_code(candidate, name)
        made = (LANGUAGES[language], self._made, self._constants)
        given = (os.fsencode(name).replace(b"\0", b"?"), path, code, *made)
        told = self._run(*given)
        if path is not None:
            given = (given[0], os.path.abspath(path), code, *made)
        return to_judgement(name, told, Repeat(self, self._settled, self._drawn, given, self._functions))

    def page(self, judgements: Iterable[Judgement], *, rank: str = "time") -> None:
        """Write the page `html`, whole or not at all: a leaderboard of these candidates, by 'time'
        or by 'error', and plots of what was measured. Names and messages are text in it.
        """
        if rank not in ("time", "error"):
            raise InvalidArgument(f"judge: rank: {rank!r}: it is 'time' or 'error'")
        known = [one for one in judgements if one._repeat is not None]
        names = [os.fsencode(one.name).replace(b"\0", b"?") for one in known]
        told = b"".join(one._repeat.told for one in known if one._repeat is not None)
        self._page(names, told, rank == "error")

    def _leave(self) -> None:
        self.close()


def _run_all(
    court: Judge,
    given: list[tuple[str, Source]],
    language: str | None,
    workers: int,
    each: Callable[[Judgement], object] | None,
) -> tuple[Judgement, ...]:
    """Judge all, on as many threads as there are workers. `each` is called on this one."""
    tell = each if each is not None else lambda judgement: None
    if workers == 1 or len(given) <= 1:
        judgements = []
        for name, source in given:
            judgements.append(court.run(source, name=name, language=language))
            tell(judgements[-1])
        return tuple(judgements)
    with ThreadPoolExecutor(workers, "bulkhead-judge") as pool:
        futures = [
            pool.submit(court.run, source, name=name, language=language) for name, source in given
        ]
        try:
            for future in as_completed(futures):
                tell(future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            court.cancel()
            raise
    return tuple(future.result() for future in futures)


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
    share_workers: bool = False,
    reference: references.Function | None = None,
    check: references.Check | None = None,
    baseline: Source | None = None,
    workers: int = 1,
    state: str | os.PathLike[str] | None = None,
    resume: bool = False,
    html: str | os.PathLike[str] | None = None,
    rank: str = "time",
    entry: str | None = None,
    defines: Mapping[str, object] | None = None,
    include: Include = None,
    constants: Mapping[int, float] | None = None,
    each: Callable[[Judgement], object] | None = None,
) -> Report:
    """Say which kernels compute what a task wants; nobody needs to trust them.

    `task` is a mapping, or the path of a task file (docs/judge.md). Files that a mapping names are
    relative to `folder`. `candidates` is one kernel, several, or a mapping from names to kernels.
    A kernel is the path of a file, source code (a text with a line end in it), or bytes, SPIR-V, an
    image for CUDA or source code. `seed` gives hidden seeds: inputs that the task does not show;
    without it there is a random one, which the report names. `device` selects the device: on
    "cuda:0" kernels are CUDA C++, PTX, cubins and fat binaries. `language` ('glsl', 'hlsl', 'cuda',
    'spirv') is for kernels whose name and content do not say it. `each` is called with each
    judgement as soon as it is known.

    `reference` is a function that computes what is right, for a task that has no "reference": it gets
    NumPy arrays, push constants and sizes, by the names of its parameters, and returns the outputs:
    an array, a tuple in the task's order, or a dict. It is called once for each size and seed, in
    the thread that calls `judge`; an exception in it is that of this call. Inputs are read-only.

    `check` is a function that says what is wrong, for outputs with `"compare": "check"`: it gets three dicts, inputs
    (with push constants and sizes), outputs and what is expected, and returns None, or a message, with which
    the candidate is WRONG.

    `time` also measures the candidates that are correct, beside the reference: `timed_runs` runs of
    each size (50), with caches flushed before each unless `warm`. Where the driver runs kernels on
    processors, all timed runs are on one unless `all_processors`: ratios are more exact there.
    `guard_cost` compares with runs without the guard. A candidate that surely takes more than
    `slower_than` times as long as the reference is SLOWER.

    `baseline` is a kernel that they are compared with in place of the reference, which then may be a function. It
    is judged first, and must be correct.
    All kernels are compiled with the macros `defines` and the files `include`, as by
    `Context.kernel`, and with `entry`. `constants` are values of specialization constants by id: an
    int or a float has 32 bits, a NumPy scalar those of its type.

    `workers` candidates, up to 64, are judged at the same time, each by a worker of its own; `each`
    is called in the order in which they end. `state` is a folder that keeps each judgement as soon
    as it is known. With `resume` the judging that the folder has goes on, with its hidden seeds: a
    candidate of the same path, or name if it has none, and content is not judged again. `html` is
    the file of a page with a leaderboard, by `rank`: 'time' or 'error'.

    With `share_workers` candidates are checked on workers that correct ones had before, which is faster on a GPU;
    one that is not correct there is judged on a worker of its own. One that took over its worker could make later
    ones correct.

    `strict` refuses a task that is weak (`Report.weak`), or whose inputs never vary. A candidate
    that crashes or hangs is judged like any other. A task that is wrong raises
    `InvalidArgument`, which names the field.

    >>> print(bh.judge(task, SQUARE, seed=42)[0])
    candidate-1: CORRECT
    """
    given = _to_candidates(candidates)
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
        share_workers=share_workers,
        reference=reference,
        check=check,
        baseline=baseline,
        workers=workers,
        state=state,
        resume=resume,
        html=html,
        entry=entry,
        defines=defines,
        include=include,
        constants=constants,
    ) as court:
        court.prepare()
        judgements = _run_all(court, given, language, workers, each)
        if html is not None:
            court.page(judgements, rank=rank)
        return Report(court.task, court.seeds, judgements, court.fixed_inputs, tuple(court.weak))
