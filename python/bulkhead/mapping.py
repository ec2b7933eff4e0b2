"""One kernel for many inputs, on several streams."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _native, completion
from .buffer import Buffer, take_array
from .errors import Error, InvalidArgument, InvalidType, rename
from .event import Event
from .kernel import Kernel
from .stream import Stream

if TYPE_CHECKING:
    from .context import Context

_DEPTH = 2  # submissions of a stream in flight: one runs, one waits in its lane
_OPTIONS = ("grid", "groups", "args", "after", "deadline", "alone", "timed")


@dataclass(frozen=True)
class like:
    """For an output of `map`: a new buffer with the type and shape of the argument `name`, of a CUDA
    kernel with that number."""

    name: str | int
    dtype: object = None


@contextlib.contextmanager
def _naming(index: int) -> Iterator[None]:
    """Say in an exception which input it is about."""
    try:
        yield
    except Error as error:
        rename(error, (r"^(map|launch): ", ""), ("^", f"map: inputs[{index}]: "))
        raise
    except Exception as error:
        error.add_note(f"map: inputs[{index}]")
        raise


def _arguments(
    kernel: Kernel, item: Mapping[str, Any], common: Mapping[str, Any]
) -> dict[str, Any]:
    if not isinstance(item, Mapping):
        raise InvalidType(f"a dict of arguments, not {type(item)}")
    given: dict[Any, Any] = dict(common) | dict(item)
    context = kernel.context
    if kernel.cuda:
        return given | {"args": _positions(context, given.get("args"))}
    buffers = {one.name for one in kernel.info.buffers}
    for name, value in given.items():
        if name in buffers and not isinstance(value, (Buffer, like, list, tuple, _native.Bound)):
            given[name] = take_array(context, "map", name, value)
        elif callable(value) and name in ("grid", "groups"):
            given[name] = value(given)
    for name, value in given.items():
        if isinstance(value, like):
            if not isinstance(given.get(value.name), Buffer):
                raise InvalidArgument(f"map: {name}: there is no array '{value.name}' to be like")
            given[name] = context.empty_like(given[value.name], value.dtype)
    return given


def _positions(context: Context, args: Any) -> list[Any]:
    """The arguments of a CUDA kernel, with new buffers for `like`."""
    found = list(args) if isinstance(args, (tuple, list)) else []
    for place, value in enumerate(found):
        if isinstance(value, like):
            number = value.name if isinstance(value.name, int) else -1
            other = found[number] if 0 <= number < len(found) else None
            if not hasattr(other, "shape"):
                raise InvalidArgument(
                    f"map: args[{place}]: there is no array args[{value.name}] to be like"
                )
            found[place] = context.empty_like(other, value.dtype)
    return found


def _written(given: dict[str, Any], outputs: tuple[str, ...] | None) -> dict[Any, Any]:
    """The buffers that a launch may have written: those of these names; None: by number."""
    if outputs is None:
        return {n: one for n, one in enumerate(given["args"]) if isinstance(one, Buffer)}
    return {name: given[name] for name in outputs if name in given}


def map(
    kernel: Kernel,
    inputs: Iterable[Mapping[str, Any]],
    *,
    streams: int = 4,
    on_error: str = "raise",
    on_result: Callable[[int, Any], object] | None = None,
    stream_options: Mapping[str, Any] | None = None,
    **common: Any,
) -> list[Any]:
    """Launch a kernel for each input, on several streams at once, and return what came of each.

    An input is a dict of what `Stream.launch` takes by name; `common` is the same for all. Arrays
    that are no buffers are copied into some, and `like(name)` makes an output. `grid` may be a
    function of an input's arguments. A result is a dict of the buffers that the kernel writes, in
    the order of the inputs. With on_error="raise" the first failure cancels the rest and is raised;
    its message begins with the input's number. With "collect" the exception (`Poisoned`) takes the
    place of the result. `on_result(index, result)` is called as each ends. Of a CUDA kernel an input
    has `args` in order, and a result the buffers that may be written, by number.

    >>> square = ctx.kernel(shaders / "square.spv")
    >>> inputs = [{"X": np.float32([n])} for n in range(4)]
    >>> found = bh.map(square, inputs, grid=1, Y=bh.like("X"), streams=2)
    >>> [one["Y"].tolist() for one in found]
    [[0.0], [1.0], [4.0], [9.0]]
    """
    if on_error not in ("raise", "collect"):
        raise InvalidArgument(f"map: on_error: '{on_error}' is neither 'raise' nor 'collect'")
    if not isinstance(kernel, Kernel):
        raise InvalidType(f"map: kernel: a Kernel, not {type(kernel)}")
    if not isinstance(streams, int) or streams < 1:
        raise InvalidArgument(f"map: streams: {streams!r} is no number above 0")
    outputs = None if kernel.cuda else kernel.info.outputs
    made: list[Stream] = []  # as many as there is work for
    free: list[Stream] = []
    queue = _native.Queue()
    flying: dict[int, tuple[Any, Event, dict[str, Any]]] = {}
    results: list[Any] = []

    def take() -> None:
        for index in completion.take(queue):
            stream, event, given = flying.pop(index)
            free.append(stream)
            error = event.exception()
            if error is not None and on_error == "raise":
                with _naming(index):
                    raise error
            results[index] = error or _written(given, outputs)
            if on_result is not None:
                on_result(index, results[index])

    try:
        for index, item in enumerate(inputs):
            while not free:
                if len(made) < streams:
                    made.append(kernel.context.stream(**dict(stream_options or {})))
                    free += [made[-1]] * _DEPTH
                else:
                    take()
            results.append(None)
            stream = free.pop(0)
            with _naming(index):
                given = _arguments(kernel, item, common)
                event = stream.launch(kernel, **(given if kernel.cuda else _split(given)))
            flying[index] = stream, event, given
            queue.add(event, index)
        while flying:
            take()
    except BaseException:
        for _, event, _ in flying.values():
            event.cancel()
        raise
    finally:
        for stream in made:
            stream.close()
    return results


def _split(given: dict[str, Any]) -> dict[str, Any]:
    """As `launch` takes them: names that are no options go into `args`."""
    options = {name: given[name] for name in _OPTIONS if name in given}
    args = {name: value for name, value in given.items() if name not in _OPTIONS}
    return options | {"args": args | dict(options.get("args") or {})}
