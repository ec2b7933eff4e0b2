"""Sweeping: which values of a kernel's parameters make it the fastest that is still right."""

from __future__ import annotations

import html
import itertools
import os
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Union

from . import source as sources
from .context import Context
from .errors import InvalidArgument, InvalidType
from .sweep_cache import Cache
from .sweeper import Settings, Sweeper, Trial, noting
from .values import FOREVER, Duration, to_ns
from .variant import Values, Variant

Restriction = Union[str, Callable[[Values], Any]]
"""An expression of Python in the names of the space, or a function of the values."""


@dataclass(frozen=True)
class Sweep:
    """What became of each variant: the right ones first, by their times, then the others.

    >>> found = bh.sweep(SQUARE.replace("= 64", "= SIZE"), {"SIZE": [32, 2048]}, grid=256,
    ...     X=np.ones(256, np.float32), Y=bh.like("X"), check={"Y": np.ones(256)})
    >>> found
    <Sweep: 1 right of 2>
    >>> found.best.values
    {'SIZE': 32}
    """

    results: tuple[Variant, ...]
    left: int = 0
    """How many variants were not tried, because of `limit` or `deadline`."""
    device: str = ""
    """The device on which they ran, such as 'lavapipe:0'."""

    @property
    def best(self) -> Variant | None:
        """The fastest of the right ones; None: none is right."""
        return self.results[0] if self.results and self.results[0].ok else None

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Variant]:
        return iter(self.results)

    def __getitem__(self, index: int) -> Variant:
        return self.results[index]

    def __repr__(self) -> str:
        left = f", {self.left} left" if self.left else ""
        return f"<Sweep: {sum(one.ok for one in self)} right of {len(self)}{left}>"

    def __str__(self) -> str:
        return "\n".join([*map(str, self), repr(self)])

    def _repr_html_(self) -> str:
        def row(tag: str, cells: Iterable[object]) -> str:
            return f"<tr>{''.join(f'<{tag}>{html.escape(str(one))}</{tag}>' for one in cells)}</tr>"

        names = self.results[0].values if self.results else ()
        rows = [row("th", [*names, "result"])]
        rows += [row("td", [*one.values.values(), one.outcome]) for one in self]
        return f"<table>{''.join(rows)}</table><p>{html.escape(repr(self))}</p>"


# -- the space -------------------------------------------------------------------------------------


def _to_restriction(one: Any) -> Callable[[Values], Any]:
    if callable(one):
        return lambda values: one(dict(values))
    if not isinstance(one, str):
        raise InvalidType(f"sweep: restrict: a function or an expression, not {type(one)}")
    try:
        code = compile(one, one, "eval")
    except SyntaxError as error:
        raise InvalidArgument(f"sweep: restrict: {one!r}: {error.msg}") from None
    return lambda values: eval(code, dict(values))


def _space(space: Mapping[Any, Iterable[Any]], restrict: Any) -> list[tuple[int, Values]]:
    """The variants that are left of the space, with their numbers."""
    if not isinstance(space, Mapping):
        raise InvalidType(f"sweep: space: a dict of names and lists of values, not {type(space)}")
    for name, choices in space.items():
        if isinstance(choices, (str, bytes)) or not isinstance(choices, Iterable):
            raise InvalidType(f"sweep: space: {name}: a list of values, not {choices!r}")
    several = [restrict] if isinstance(restrict, str) or callable(restrict) else restrict or ()
    restrictions = [_to_restriction(one) for one in several]
    found = []
    for number, row in enumerate(itertools.product(*space.values())):
        values = dict(zip(space, row))
        with noting(values):
            if all(one(values) for one in restrictions):
                found.append((number, values))
    if not found:
        raise InvalidArgument("sweep: space: there is no variant in it that restrict allows")
    return found


# -- the sweep -------------------------------------------------------------------------------------


def _at_least_one(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidArgument(f"sweep: {name}: {value!r} is no number above 0")
    return value


def _read_template(
    template: Any, constants: Iterable[Any] | None, space: Mapping[Any, Any], **others: Any
) -> tuple[sources.Source, frozenset[Any]]:
    """The source, and which names of the space are specialization constants."""
    is_text = isinstance(template, str) and "\n" in template
    source = sources.read(
        "sweep",
        None if is_text else template,
        source=template if is_text else None,
        name=None,
        tenant=None,
        memory=None,
        deadline=None,
        options=None,
        **others,
    )
    if source.cuda:
        raise InvalidArgument(
            "sweep: template: it is for CUDA, whose kernels declare no names; bulkhead.map runs them"
        )
    if constants is None:
        return source, frozenset(() if source.kind == "text" else space)
    named = frozenset([constants] if isinstance(constants, str) else constants)
    for name in named - set(space):
        raise InvalidArgument(f"sweep: constants: the space has no {name!r}")
    return source, named


def sweep(
    template: str | bytes | os.PathLike[str],
    space: Mapping[Any, Iterable[Any]],
    *,
    grid: int | tuple[int, ...] | Callable[[Values], Any] | None = None,
    groups: int | tuple[int, ...] | Callable[[Values], Any] | None = None,
    args: Mapping[str, Any] | None = None,
    restrict: Restriction | Iterable[Restriction] | None = None,
    check: Callable[[dict[str, Any]], object] | Mapping[str, Any] | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    constants: Iterable[str | int] | None = None,
    defines: Mapping[str, object] | None = None,
    include: Mapping[str, str] | Iterable[str | os.PathLike[str]] | str | None = None,
    entry: str | None = None,
    language: str | None = None,
    optimize: bool = True,
    trusted: bool = False,
    repeats: int = 20,
    jobs: int | None = None,
    limit: int | None = None,
    deadline: Duration = None,
    cache: str | os.PathLike[str] | None = None,
    device: str | None = None,
    memory: str = "auto",
    stream_options: Mapping[str, Any] | None = None,
    each: Callable[[Variant], object] | None = None,
    **named: Any,
) -> Sweep:
    """Try a kernel with all combinations of values, and time those that are right.

    `template` is the path of a kernel, source code (a text with a line end in it), or bytes, SPIR-V
    or source code. `space` is {name: values}. The names are macros of a source, but for those in
    `constants`, and specialization constants of SPIR-V. `restrict` leaves out combinations: a
    function of the dict of values, an expression such as "X * Y <= 1024", or a list of them.

    `args`, and further names, are what `Stream.launch` takes. Arrays are copied once; one that a
    kernel writes is new, with the given content, for each variant. `like(name)` is an array of
    zeros. `grid`, `groups` and numbers may be functions of the values. `check` gets the arrays that
    the kernel has written, as a dict, and returns False or raises if they are wrong; or it is a
    dict of the arrays that are expected, to `rtol` and `atol` (integers exactly).

    `jobs` variants (one for each processor) are compiled and checked at once, each in a worker of
    its own. One that crashes, hangs, or is wrong costs nothing but itself. Those that are right are
    timed `repeats` times, one by one, while nothing else runs. `stream_options` are those of
    `Context.stream`; the deadline of a launch is 2 s. `each` is called with each result.

    `limit` tries so many variants, `deadline` ends the sweep after that time; both take variants in
    a random order, which is always the same. `cache` is a file that keeps results for the next
    sweep: a result is found again if source, values, device, driver, options, and the types and
    shapes of arrays are the same. It does not depend on what is in the arrays, nor on the check.
    """
    source, named_constants = _read_template(
        template,
        constants,
        space,
        defines=defines,
        include=include,
        entry=entry,
        language=language,
        optimize=optimize,
    )
    if check is not None and not callable(check) and not isinstance(check, Mapping):
        raise InvalidType(f"sweep: check: a function or a dict of arrays, not {type(check)}")
    variants = _space(space, restrict)
    total = len(variants)
    if limit is not None or deadline is not None:
        random.Random(0).shuffle(variants)
        variants = variants[: None if limit is None else _at_least_one("limit", limit)]
    ns = to_ns(deadline, "sweep: deadline")
    end = None if ns is None or ns == FOREVER else time.monotonic() + ns / 1e9
    settings = Settings(
        source,
        named_constants,
        launch={"grid": grid, "groups": groups, "args": dict(args or {}) | named},
        trusted=trusted,
        check=check,
        tolerance=(rtol, atol),
        repeats=_at_least_one("repeats", repeats),
        jobs=len(os.sched_getaffinity(0)) if jobs is None else _at_least_one("jobs", jobs),
        device=device,
        memory=memory,
        stream_options={"deadline": "2s"} | dict(stream_options or {}),
        each=each,
        end=end,
    )
    store = Cache(cache)
    # The context ends before the pool: then no thread of the pool waits for anything.
    with (
        ThreadPoolExecutor(settings.jobs, "bulkhead-sweep") as pool,
        Context(spares=0, quarantine_deaths=0) as context,
    ):
        sweeper = Sweeper(settings, context, store)
        trials = [sweeper.plan(number, values) for number, values in variants]
        if cache is not None:
            sweeper.name_keys(trials)
        # Variants of one compile come one after the other.
        places: dict[str, int] = {}
        trials.sort(key=lambda one: places.setdefault(str(one.macros), len(places)))
        todo: deque[Trial] = deque()
        for trial in trials:
            known = store.get(trial.key, trial.number, trial.values)
            if known is None:
                todo.append(trial)
            else:
                sweeper.tell(known)
        try:
            sweeper.run(todo, pool)
        finally:
            store.save()
        sweeper.check_call()
    found = sorted(sweeper.results, key=_rank)
    return Sweep(tuple(found), total - len(found), sweeper.device)


def _rank(one: Variant) -> tuple[bool, float, int]:
    return not one.ok, one.seconds or 0.0, one.number
