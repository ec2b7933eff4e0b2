"""Context: owns streams, buffers, kernels and workers."""

from __future__ import annotations

import atexit
import contextlib
import operator
import os
import resource
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from . import _native, cuda, dtypes, kernel as kernels, module as modules, source as sources
from ._status import Status
from .buffer import Buffer, to_shape
from .dtypes import BY_CODE, DType
from .errors import Error, InvalidArgument, InvalidType, ViewError, rename
from .kernel import Kernel
from .log import Delivery
from .module import Module
from .scope import Scoped
from .stream import Stream
from .values import Duration, Size, to_bytes, to_ns, with_hints

if TYPE_CHECKING:
    from .log import Log

_MEMORY = {"host": 0, "device": 1, "auto": 2}
_ISOLATION = {"stream": 0, "kernel": 1, "submission": 2}
_RAW, _NPY, _SAFETENSORS, _NPZ = 1, 2, 3, 4
_PROCESSORS = 1024  # as in bh_stream_create
# As bh_process_kind and bh_process_state; each has places for kinds to come.
_PROCESS_STATES = ("starting", "ready", "ending", "ended")
_PROCESS_KINDS = ("zygote", "worker", "spare", "loader", "compiler", "sentinel")
# Files whose bytes nobody means by their array, and what reads them.
_FOREIGN = {
    ".pt": "asarray(torch.load(path)[name])",
    ".pth": "asarray(torch.load(path)[name])",
    ".h5": "asarray(h5py.File(path)[name][:])",
    ".hdf5": "asarray(h5py.File(path)[name][:])",
}
_TEMPLATES = 64  # expressions that a context keeps; each keeps its own compiled variants


@dataclass(frozen=True)
class Tensor:
    """An array in a file."""

    name: str
    dtype: DType | None
    """None: the library does not know the type, and does not load it."""
    shape: tuple[int, ...]
    offset: int
    """Of its data, from the beginning of the file."""
    nbytes: int
    type: str
    """The type as the file writes it."""


def _by_status(counts: tuple[int, ...]) -> dict[str, int]:
    return {Status(code).name: count for code, count in enumerate(counts) if count}


@dataclass(frozen=True)
class Quarantined:
    """A kernel that is refused for a while, because it ended workers."""

    tenant: str
    kernel: str
    hash: bytes
    status: Status
    """Of its submissions now."""
    cause: Status
    """Of the last death."""
    signal: int
    deaths: int
    origin: int
    """The id of the event of the last death."""
    message: str


class Context(_native.Context, Scoped):
    """Owns streams, buffers, kernels and workers.

    `close()`, or leaving a `with` block, ends everything: what is pending then is poisoned
    CONTEXT_CLOSED. The options are those of `bh_context_options` (bulkhead/context.h); durations
    are seconds or texts such as "500ms", sizes are bytes or texts such as "512M".

    `log` receives the library's log (a death, a failed start, a worker that is ready): a function,
    which is called with a level of `logging` and a line, or a logger or its name. One thread calls
    it, a line at a time; the library never waits for it. Lines are lost if 4096 wait. What it
    raises goes to the logger 'bulkhead'. `close()` returns when it has had the last line.

    `chaos` makes faults, to test the program with: "seed=7 device_lost=1% late=2%/200ms"
    (docs/chaos.md). With `chaos_from_environment`, $BULKHEAD_CHAOS replaces it where it is set.

    A buffer takes a file descriptor, so a context raises the process's soft limit on them to the
    hard one.

    >>> with bh.Context(spares=0) as other:
    ...     other.empty(4).tolist()
    [0.0, 0.0, 0.0, 0.0]
    """

    __slots__ = (
        "__weakref__",
        "_delivery",
        "_limits",
        "_templates",
    )

    @with_hints("Context")
    def __init__(
        self,
        *,
        worker_path: str | os.PathLike[str] | None = None,
        runtime_dir: str | os.PathLike[str] | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        spares: int | None = None,
        restart_budget: int | None = None,
        restart_window: Duration = None,
        start_timeout: Duration = None,
        pool_limit: Size | None = None,
        kernel_limit: int | None = None,
        kernel_limit_bytes: Size | None = None,
        quarantine_deaths: int | None = None,
        quarantine: Duration = None,
        worker_idle: Duration = None,
        device_memory: Size | None = None,
        spare_kernels: int | None = None,
        quarantine_deadlines: int | None = None,
        chaos: str | None = None,
        chaos_from_environment: bool = False,
        log: Log | None = None,
    ) -> None:
        def path(value: str | os.PathLike[str] | None) -> bytes | None:
            return None if value is None else os.fsencode(value)

        _raise_limit()
        delivery = None if log is None else Delivery(log)
        super().__init__(
            {
                "worker_path": path(worker_path),
                "runtime_dir": path(runtime_dir),
                "cache_dir": path(cache_dir),
                "spares": spares,
                "restart_budget": restart_budget,
                "restart_window": to_ns(restart_window, "restart_window", zero=True),
                "start_timeout": to_ns(start_timeout, "start_timeout"),
                "pool_limit": to_bytes(pool_limit, "pool_limit"),
                "kernel_limit": kernel_limit,
                "kernel_limit_bytes": to_bytes(kernel_limit_bytes, "kernel_limit_bytes"),
                "quarantine_deaths": quarantine_deaths,
                "quarantine": to_ns(quarantine, "quarantine", zero=True),
                "worker_idle": to_ns(worker_idle, "worker_idle", zero=True),
                "device_memory": to_bytes(device_memory, "device_memory"),
                "spare_kernels": spare_kernels,
                "quarantine_deadlines": quarantine_deadlines,
                "chaos": chaos,
                "chaos_from_environment": chaos_from_environment,
            },
            None if delivery is None else delivery.source,
        )
        self._delivery = delivery
        self._limits: dict[str, tuple[int, int]] = {}
        self._templates: OrderedDict[Any, Any] = OrderedDict()
        _open_contexts.add(self)
        if self._delivery is not None:
            self._delivery.start()

    # -- streams -----------------------------------------------------------------------------------

    @with_hints("stream")
    def stream(
        self,
        name: str | None = None,
        *,
        tenant: str | None = None,
        device: str | None = None,
        deadline: Duration = None,
        compile_deadline: Duration = None,
        grace: Duration = None,
        memory: Size | None = None,
        device_memory: Size | None = None,
        strict: bool = False,
        isolation: str = "stream",
        processor: SupportsIndex | None = None,
        nice: int = 0,
    ) -> Stream:
        """Make a stream, and start a worker for it. Does not wait for the worker.

        `deadline` (10 s) is for each submission that sets none, `compile_deadline` (60 s) for the
        compiling of its kernels, `memory` (4G) limits what the worker may use besides buffers.
        `tenant` names the customer whose kernels it runs. `isolation` is how much one worker runs
        before a new one replaces it: 'stream', 'kernel' or 'submission'. `processor` is the number,
        as `os.sched_getaffinity` counts, of the processor on which alone its workers run, with all
        their threads; a driver that runs kernels on processors then uses that one. `nice`, from 0
        to 19, leaves more processor time to others on a busy machine. The options are those of
        `bh_stream_options` (bulkhead/stream.h).
        """
        if isolation not in _ISOLATION:
            raise InvalidArgument(
                f"stream: isolation: '{isolation}' is none of {', '.join(_ISOLATION)}"
            )
        made: Stream = _native.stream_create(
            self,
            {
                "name": name,
                "tenant": tenant,
                "device": device,
                "deadline": to_ns(deadline, "stream: deadline"),
                "compile_deadline": to_ns(compile_deadline, "stream: compile_deadline"),
                "grace": to_ns(grace, "stream: grace", zero=True),
                "memory": to_bytes(memory, "stream: memory"),
                "device_memory": to_bytes(device_memory, "stream: device_memory"),
                "strict": strict,
                "isolation": _ISOLATION[isolation],
                "processor": _processor(processor),
                "nice": nice,
            },
        )
        return made

    # -- kernels -----------------------------------------------------------------------------------

    @with_hints("kernel")
    def kernel(
        self,
        path: str | os.PathLike[str] | bytes | None = None,
        *,
        source: str | bytes | None = None,
        name: str | None = None,
        entry: str | None = None,
        defines: Mapping[str, object] | None = None,
        include: Mapping[str, str] | Iterable[str | os.PathLike[str]] | str | None = None,
        constants: Mapping[str | int, float] | None = None,
        language: str | None = None,
        options: str | Iterable[str] | None = None,
        block: int | tuple[int, ...] | None = None,
        shared: int = 0,
        trusted: bool = False,
        optimize: bool = True,
        deadline: Duration = None,
        tenant: str | None = None,
        memory: Size | None = None,
    ) -> Kernel:
        """Make a kernel of a file or of bytes (SPIR-V, GLSL, HLSL, CUDA), or of the text `source`.

        SPIR-V is known by its first bytes, HLSL by the suffix .hlsl or `language`. CUDA C++ (.cu, or
        `language="cuda"`; `options` are NVRTC's) and images (PTX, cubins, fat binaries) make kernels
        for CUDA devices; `entry` names the one of an image, and `block` (threads) and `shared`
        (bytes) are those of launches that do not say them. `defines` are
        macros, `include` are files and folders (or names and texts) for #include, `constants` are
        values of specialization constants by name or id. A source is compiled in a sandboxed
        process of its own, for `tenant`, with `deadline` (60 s) and `memory` (1G) as its limits;
        `CompileFailed.log` has what the compiler says, `Kernel.code` is the module. A file that cannot be
        read raises `LoadFailed`. `trusted` hands the module to the driver unchanged: if it does
        not end by itself, its worker is killed.

        >>> double = ctx.kernel(source='''
        ...     #version 450
        ...     layout(local_size_x = 64) in;
        ...     layout(set = 0, binding = 0) buffer X { float x[]; };
        ...     void main() {
        ...         uint i = gl_GlobalInvocationID.x;
        ...         if (i < x.length()) x[i] *= FACTOR;
        ...     }''', defines={"FACTOR": 2})
        >>> x = ctx.asarray([1, 2, 3], "float32")
        >>> stream.launch(double, grid=x.size, X=x).wait()
        >>> x.tolist()
        [2.0, 4.0, 6.0]
        """
        taken = sources.read(
            "kernel",
            path,
            source=source,
            name=name,
            entry=entry,
            defines=defines,
            include=include,
            language=language,
            options=options,
            optimize=optimize,
            deadline=deadline,
            tenant=tenant,
            memory=memory,
        )
        return kernels.create(self, taken, constants, trusted, block, shared)

    @with_hints("compile")
    def compile(
        self,
        path: str | os.PathLike[str] | bytes | None = None,
        *,
        source: str | bytes | None = None,
        name: str | None = None,
        entry: str | None = None,
        defines: Mapping[str, object] | None = None,
        include: Mapping[str, str] | Iterable[str | os.PathLike[str]] | str | None = None,
        language: str | None = None,
        options: str | Iterable[str] | None = None,
        optimize: bool = True,
        deadline: Duration = None,
        tenant: str | None = None,
        memory: Size | None = None,
    ) -> Module:
        """Start to compile a source, as `kernel` does, and do not wait for the end.

        `Module.event` is how it ends: wait for it, await it, or cancel it. Then `Module.kernel()`
        makes kernels, and `Module.code` is the SPIR-V.

        The context keeps a tenant's last modules, up to 64: an equal source is not compiled again.
        A source that crashed its compiler or exhausted its `memory` is refused for its tenant for a
        while (`quarantined()`).

        >>> module = ctx.compile(source="#version 450\\nvoid main() { factr; }", name="typo.comp")
        >>> print(module.event.exception().log, end="")
        typo.comp:2: error: 'factr' : undeclared identifier
        """
        taken = sources.read(
            "compile",
            path,
            source=source,
            name=name,
            entry=entry,
            defines=defines,
            include=include,
            language=language,
            options=options,
            optimize=optimize,
            deadline=deadline,
            tenant=tenant,
            memory=memory,
        )
        return modules.compile_source(self, taken)

    def _template(self, expression: str, roles: tuple[tuple[str, int], ...]) -> Any:
        """The template of an expression; the least recently used ones are forgotten."""
        # Without a lock: a finalizer or a signal handler may come here in between.
        key = expression, roles
        found = self._templates.get(key)
        if found is None:
            made = _native.template_create(self, "eval", expression, list(roles))
            found = self._templates.setdefault(key, made)
        with contextlib.suppress(KeyError):  # others have used so many in between
            self._templates.move_to_end(key)
            while len(self._templates) > _TEMPLATES:
                self._templates.popitem(last=False)
        return found

    def _binds(self, device: str) -> tuple[int, int]:
        """The most bytes of a buffer that the device binds, and where such a range may begin."""
        if device not in self._limits:
            for found in self._devices():
                what = found["max_storage_range"], found["storage_alignment"]
                self._limits[found["selector"]] = what
        return self._limits.get(device, (0, 1))

    # -- buffers -----------------------------------------------------------------------------------

    def empty(
        self,
        shape: int | tuple[int, ...],
        dtype: object = "float32",
        *,
        stream: Stream | None = None,
        memory: str = "host",
        uninitialized: bool = False,
    ) -> Buffer:
        """Make a buffer of zeros.

        `stream` is the one that will use it most: memory that its worker has had is used again,
        with its old content if `uninitialized`. `memory` is 'host', 'device' (the device of
        `stream`) or 'auto'.
        """
        sizes, place = to_shape(shape, "empty"), _memory(memory, stream)
        try:
            made: Buffer = _native.buffer_create(
                self, DType(dtype).code, sizes, stream, place, uninitialized
            )
        except Error as error:
            large = error.status in (Status.NO_MEMORY, Status.TOO_LARGE)
            rename(error, (r"^empty: ", "shape: " if large else ""), ("^", "empty: "))
            raise
        return made

    def empty_like(self, array: Any, dtype: object = None, **options: Any) -> Buffer:
        """Make a buffer of zeros with the shape of `array`, and its type unless `dtype` is
        given.
        """
        if not hasattr(array, "shape") or (dtype is None and not hasattr(array, "dtype")):
            raise InvalidType(
                f"empty_like: array: it has a shape and a dtype, unlike {type(array)}"
            )
        return self.empty(tuple(array.shape), array.dtype if dtype is None else dtype, **options)

    def asarray(
        self,
        array: Any,
        dtype: object = None,
        *,
        stream: Stream | None = None,
        memory: str = "host",
    ) -> Buffer:
        """Return a buffer with the elements of an array: without a copy where that can be, else
        one.

        A Buffer of this context, and a view of one (`numpy()`), are used as they are. Other arrays
        are copied once, in C order, whatever their strides. Takes what has the buffer protocol,
        DLPack or `__array_interface__`, and lists and numbers if NumPy is there. Arrays of CUDA
        (PyTorch's, CuPy's, JAX's) must have no gaps; to `memory="device"` on the same GPU they are
        copied there, else through host memory.

        `dtype` converts, and may round: integers to floats, floats to other floats. It is refused
        if it would change numbers in another way: integers that do not fit, and floats to integers.
        NumPy's `array.astype(dtype)` does those.

        >>> a = ctx.empty(4).numpy()
        >>> ctx.asarray(a).numpy().ctypes.data == a.ctypes.data
        True
        """
        wanted = None if dtype is None else DType(dtype)
        place = _memory(memory, stream)
        foreign = cuda.take(array)
        if foreign is not None:
            if wanted in (None, foreign.dtype):
                return foreign.to_buffer(self, stream=stream, memory=memory)
            array = foreign.to_host(self)
        if isinstance(array, Buffer) and array.context is self and not place:
            if wanted is None or array.dtype == wanted:
                return array
        source, found, shape = self._source(array, wanted)
        _, _, _, _, address, contiguous, nbytes = _native.examine(source)
        if contiguous and not place:
            shown = _native.buffer_at(self, found.code, shape, address, nbytes)
            if shown is not None:
                same: Buffer = shown
                return same
        made = self.empty(shape, found, stream=stream, memory=memory)
        made._assign(source)
        return made

    def _source(self, array: Any, wanted: DType | None) -> tuple[Any, DType, tuple[int, ...]]:
        """What shows an array by the buffer protocol, its type and its shape."""
        foreign = cuda.take(array)
        if foreign is not None:
            array = foreign.to_host(self)
        source, found = _exporter(array, wanted)
        code, why, format_, shape, _, _, _ = _native.examine(source)
        if found is None:
            if code < 0:
                raise InvalidType(f"array: its elements have the type '{format_}': {why}")
            found = BY_CODE[code]
        if wanted == BY_CODE[0] and found != wanted:  # the bytes, whatever they are
            shown = memoryview(source)
            source = shown.cast("B") if shown.c_contiguous and shown.nbytes else shown.tobytes()
            found, shape = BY_CODE[0], (len(source),)
        if wanted is not None and wanted != found:
            source, found = _convert(source, found, wanted), wanted
        return source, found, tuple(shape)

    def from_dlpack(self, tensor: Any, **options: Any) -> Buffer:
        """Return a buffer with the elements of a tensor of another package, as `asarray` does."""
        taken = tensor if cuda.has_dlpack(tensor) else _take_dlpack(tensor)
        return self.asarray(taken, **options)

    def from_memfd(self, fd: int, shape: int | tuple[int, ...], dtype: object = "uint8") -> Buffer:
        """Make a buffer of your own memfd, without a copy. It must allow sealing, and is sealed.

        See `bh_buffer_create` (bulkhead/buffer.h) for the rules.
        """
        sizes = to_shape(shape, "from_memfd")
        try:
            made: Buffer = _native.buffer_wrap(self, DType(dtype).code, sizes, fd)
        except Error as error:
            rename(error, ("^empty: ", "from_memfd: "))
            raise
        return made

    def load(
        self,
        path: str | os.PathLike[str],
        tensor: str | None = None,
        *,
        dtype: object = None,
        shape: int | tuple[int, ...] | None = None,
        offset: int = 0,
        size: int | None = None,
        tenant: str | None = None,
        deadline: Duration = None,
        header_timeout: Duration = None,
        stream: Stream | None = None,
        memory: str = "host",
    ) -> Buffer:
        """Make a buffer of a .npy, an array of a .npz or .safetensors, or bytes of other files.

        It is lazy: a sandboxed process parses the header and reads the data. What uses the buffer
        waits for that, and is poisoned if the file is bad. `buffer.event` is the load. Of other
        files `offset` and `size` say which bytes, and `dtype` and `shape` what they are.
        """
        suffix = Path(os.fspath(path)).suffix
        if suffix in _FOREIGN and dtype is None:
            _refuse_archive(path, suffix)
        options: dict[str, Any] = {"path": os.fsencode(path), "tensor": tensor, "tenant": tenant}
        if tensor is not None:
            options["format"] = _NPZ if suffix == ".npz" else _SAFETENSORS
        elif suffix == ".safetensors" or (suffix == ".npz" and dtype is None):
            raise InvalidArgument(f"load: tensor: {path} has several; tensors() lists them")
        else:
            options["format"] = _NPY if suffix == ".npy" else _RAW
        if options["format"] == _RAW:
            options |= {"offset": offset, "size": size}
        elif offset or size is not None or dtype is not None or shape is not None:
            raise InvalidArgument("load: offset, size, dtype, shape: the file's header says them")
        options["deadline"] = to_ns(deadline, "load: deadline")
        options["header_timeout"] = to_ns(header_timeout, "load: header_timeout")
        options["memory"] = _memory(memory, stream)
        try:
            made: Buffer = _native.buffer_load(self, options, stream)
        except Error as error:
            rename(error, ("^empty: ", "load: "))
            raise
        if dtype is not None or shape is not None:
            made = made.view("uint8" if dtype is None else dtype, shape)
        return made

    def tensors(self, path: str | os.PathLike[str]) -> list[Tensor]:
        """List the arrays of a .npy, .npz or .safetensors, without loading them."""
        formats = {".npy": _NPY, ".npz": _NPZ}
        suffix = Path(os.fspath(path)).suffix
        options = {"path": os.fsencode(path), "format": formats.get(suffix, _SAFETENSORS)}
        return [
            Tensor(name, BY_CODE[code] if code else None, shape, offset, nbytes, type_)
            for name, code, shape, offset, nbytes, type_ in _native.file_tensors(self, options)
        ]

    # -- the rest ----------------------------------------------------------------------------------

    def devices(self) -> list[dict[str, Any]]:
        """List the Vulkan devices of this machine, as dicts. Starts and ends workers."""
        found: list[dict[str, Any]] = self._devices()
        return found

    def stats(self) -> dict[str, Any]:
        """Return what the context has and has done, for graphs and alerts, as nested dicts.

        The names are those of bulkhead/stats.h. `processes[kind][state]` counts processes. What is
        counted by status has a key, such as "DEADLINE", for each status that there was. `total` is
        the work of the context, `tenants[name]` that of a tenant, whose `streams` is a list of the
        work of each. `wait` and `run` have the sum of all times in seconds and the counts of the
        buckets: of what took at most 1024 ns, at most twice that, and so on.
        """
        (stats, processes, deaths), rows = self._stats()
        each = iter(processes)
        stats["processes"] = {k: {s: next(each) for s in _PROCESS_STATES} for k in _PROCESS_KINDS}
        stats["deaths"] = _by_status(deaths)
        tenants: dict[str, Any] = {}
        stats["tenants"] = tenants
        for row in rows:
            scope, tenant = row.pop("scope"), row["tenant"]
            row["ended"] = _by_status(row["ended"])
            if scope == 2:
                tenants[tenant]["streams"].append(row)
                continue
            del row["number"], row["stream"], row["tenant"]
            if scope == 1:
                tenants[tenant] = row | {"streams": []}
            else:
                stats["total"] = row
        return stats

    def quarantined(self) -> list[Quarantined]:
        """List the kernels that are refused now, of all tenants."""
        found = []
        for entry in self._quarantined():
            entry["status"], entry["cause"] = Status(entry["status"]), Status(entry["cause"])
            found.append(Quarantined(**entry))
        return found

    def quarantine_release(self, tenant: str | None = None, kernel: Kernel | None = None) -> None:
        """Forget the deaths of one kernel of a tenant, or of all of that tenant's kernels."""
        if kernel is not None and not isinstance(kernel, Kernel):
            raise InvalidType(f"quarantine_release: kernel: a Kernel, not {type(kernel)}")
        self._quarantine_release(tenant, None if kernel is None else kernel.hash)

    def close(self) -> None:
        """End everything: what is pending is poisoned CONTEXT_CLOSED, and all workers end. Blocks
        for some milliseconds, and until `log` has had the last line. Views and verdicts that you
        hold stay.
        """
        super().close()
        delivery = getattr(self, "_delivery", None)  # __init__ may have raised
        if delivery is not None:
            delivery.finish()

    def _leave(self) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<bulkhead.Context at {id(self):#x}, {'closed' if self.closed else 'open'}>"


# Workers and callback threads end before the interpreter does.
_open_contexts: weakref.WeakSet[Context] = weakref.WeakSet()


def _close_all() -> None:
    with contextlib.ExitStack() as stack:  # each, also if one raises (Ctrl-C)
        for context in list(_open_contexts):
            stack.callback(context.close)


atexit.register(_close_all)


def _raise_limit() -> None:
    """Each buffer is a descriptor: let there be as many as the process may have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # a sandbox of the caller's may forbid it
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _memory(name: str, stream: Stream | None) -> int:
    if name not in _MEMORY:
        raise InvalidArgument(f"memory: '{name}' is none of {', '.join(_MEMORY)}")
    if name == "device" and stream is None:
        raise InvalidArgument("memory: 'device' needs a stream, which names device and tenant")
    return _MEMORY[name]


def _refuse_archive(path: str | os.PathLike[str], suffix: str) -> None:
    raise InvalidArgument(
        f"load: {os.fspath(path)}: a {suffix} has arrays of its own: {_FOREIGN[suffix]} "
        "takes one, dtype='raw' the bytes of the file"
    )


def _processor(number: SupportsIndex | None) -> int | None:
    """As `bh_stream_options.processor` has it: 1 + the number."""
    if number is None:
        return None
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise InvalidType(f"stream: processor: the number of a processor, not {number!r}")
    if not 0 <= operator.index(number) < _PROCESSORS:
        raise InvalidArgument(f"stream: processor: {number} is not from 0 to {_PROCESSORS - 1}")
    return 1 + operator.index(number)


def _convert(source: Any, found: DType, wanted: DType) -> Any:
    """An array of another type. It may be rounded, and is otherwise the same."""
    try:
        import numpy as np
    except ImportError:
        raise InvalidType(f"array: NumPy is needed to convert {found} to {wanted}") from None
    if "|V" in (wanted.typestr[:2], found.typestr[:2]):
        raise InvalidType(f"array: it is {found}, which cannot be converted to {wanted} here")
    given = np.asarray(source)
    if given.size and not wanted.startswith("float"):
        if found.startswith("float"):
            raise InvalidType(
                f"array: it is {found}, and {wanted} has no fractions; "
                f"astype('{wanted}') cuts them off"
            )
        if wanted == "bool":
            least, most = 0, 1
        else:
            least, most = int(np.iinfo(str(wanted)).min), int(np.iinfo(str(wanted)).max)
        for number in (int(given.min()), int(given.max())):
            if not least <= number <= most:
                raise InvalidArgument(f"array: {number} does not fit {wanted}")
    return given.astype(str(wanted))


def _take_dlpack(tensor: Any) -> Any:
    """A tensor of another package, with the buffer protocol."""
    if not hasattr(tensor, "__dlpack__"):
        raise InvalidType(f"from_dlpack: {type(tensor)} has no __dlpack__")
    device = tuple(tensor.__dlpack_device__()) if hasattr(tensor, "__dlpack_device__") else (1, 0)
    if device[0] not in (1, 3):
        raise ViewError(
            f"from_dlpack: the tensor is on a device (DLPack's type {int(device[0])}); bring it to "
            "the processor's memory first"
        )
    try:
        capsule = tensor.__dlpack__(max_version=(1, 1))
    except TypeError:  # before DLPack 1
        capsule = tensor.__dlpack__()
    return _native.tensor_take(capsule, False)


def _exporter(array: Any, wanted: DType | None) -> tuple[Any, DType | None]:
    """What shows an array by the buffer protocol; its type, if the protocol does not say it."""
    if isinstance(array, Buffer):
        return (array if array.memory == "host" else array._fetch()), array.dtype
    if isinstance(array, _native.Tensor):
        return array, BY_CODE[array._dtype]
    raw = dtypes.of_array(array)
    if raw is not None:
        return array.view(f"u{raw.itemsize}"), raw
    try:
        memoryview(array)
    except (TypeError, ValueError, BufferError) as error:
        if hasattr(array, "__dlpack__") and not hasattr(array, "__array_interface__"):
            tensor = _take_dlpack(array)
            return tensor, BY_CODE[tensor._dtype]
        if array is None or isinstance(array, str):
            what = "None is no array" if array is None else "a text is no array"
            raise InvalidType(f"array: {what}") from None
        if getattr(getattr(array, "dtype", None), "kind", "") in ("M", "m"):
            raise InvalidType(
                f"array: the library has no type for {array.dtype}; "
                "array.view('int64') has the same times as integers"
            ) from None
        if isinstance(array, bytes) or hasattr(getattr(array, "dtype", None), "char"):
            raise InvalidType(f"array: {error}") from None
    else:
        return array, None
    try:
        import numpy as np
    except ImportError:
        raise InvalidType(
            f"array: {type(array)} has no buffer; NumPy is not here to convert it"
        ) from None
    try:
        made: Any = np.asarray(array)
        if wanted is not None and _is_of_integers(array, made):
            made = np.asarray(array, str(wanted))
        memoryview(made)
    except OverflowError:
        raise InvalidArgument(f"array: an integer does not fit {wanted}") from None
    except (TypeError, ValueError) as error:
        raise InvalidType(f"array: {error}") from None
    return made, None


def _is_of_integers(array: Any, made: Any) -> bool:
    """Whether these are integers for which NumPy has no type of its own: none, or large ones."""
    import numpy as np

    return made.dtype.kind in "fO" and all(
        isinstance(one, (int, np.integer)) for one in np.asarray(array, object).flat
    )
