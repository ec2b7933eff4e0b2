"""Buffer: an array in memory that the host and its workers share."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

from . import _native, cuda
from ._status import Status
from .dtypes import BY_CODE, DType, for_numpy
from .errors import Closed, Error, InvalidArgument, InvalidType, ViewError, rename
from .scope import Scoped

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .context import Context
    from .cuda import CudaView
    from .stream import Stream

_READ, _DISCARD, _READ_WRITE = 1, 2, 3
_ACCESS_READ, _ACCESS_WRITE = 1, 2
_DLPACK_CPU, _DLPACK_CUDA, _DLPACK_VULKAN = 1, 2, 7
_STATES = {Status.OK: "CLEAN", Status.TIMEOUT: "PENDING"}


def _show(array: Any) -> memoryview:
    """The array's memoryview. (Older type checkers do not know who has the buffer protocol.)"""
    return memoryview(array)


class Buffer(_native.Buffer, Scoped):
    """An array of numbers, rows without gaps, in memory that the host and its workers share.

    Contexts make buffers: `empty`, `asarray`, `load`. `numpy()`, `memoryview(buffer)` and DLPack
    show the memory without a copy, after they have waited for what writes it. While such a view
    exists, a submission that would write the memory is refused (`ViewError`), so a view never
    changes.

    >>> x = ctx.asarray([[1, 2], [3, 4]], "int32")
    >>> x.shape, x.dtype, x.nbytes
    ((2, 2), DType('int32'), 16)
    >>> int(x.numpy().sum())
    10
    """

    __slots__ = ("__weakref__",)
    # NumPy's operators leave mixed operations to this class, which has none: they are refused.
    __array_ufunc__ = None

    @property
    def dtype(self) -> DType:
        """The type of the elements."""
        return BY_CODE[self._dtype]

    @property
    def memory(self) -> str:
        """'host' or 'device'."""
        return "device" if self._stream is not None else "host"

    @property
    def state(self) -> str:
        """'CLEAN', 'PENDING' while a submission writes it, or 'POISONED'."""
        status, _ = self._state()
        return _STATES.get(Status(status), "POISONED")

    @property
    def views(self) -> int:
        """How many views of its memory there are: NumPy arrays, memoryviews, tensors."""
        views: int = self._views[0]
        return views

    def numpy(
        self,
        writable: bool = False,
        timeout: float | str | None = None,
        *,
        copy: bool = False,
    ) -> npt.NDArray[Any]:
        """Return a NumPy array of this memory, without a copy. Waits for what writes it.

        The array keeps the memory alive. If `writable`, no submission can use the buffer while the
        array exists. With `copy` it is an array of its own, which is in nobody's way. Of a buffer
        in device memory it is a copy in any case.

        >>> x = ctx.empty(3)
        >>> x.numpy(writable=True)[:] = [1, 2, 3]
        >>> x.numpy()
        array([1., 2., 3.], dtype=float32)
        """
        self._check("numpy")
        try:
            import numpy as np
        except ImportError:
            raise ModuleNotFoundError(
                "numpy: NumPy is needed; tolist(), tobytes() and memoryview(buffer) do without it",
                name="numpy",
            ) from None
        shown: Any = self
        if self._stream is not None:
            if writable:
                raise ViewError("numpy: device memory has no address; use write()")
            shown = self._fetch(timeout)
        intent = _READ_WRITE if writable and not copy else _READ
        view = _show(shown._map(intent, timeout))
        try:
            array: npt.NDArray[Any] = np.asarray(view)
        except (ValueError, RuntimeError):
            raise ViewError(
                f"numpy: NumPy has no arrays of {self.ndim} dimensions; view(shape=...) has fewer"
            ) from None
        if self.dtype.typestr.startswith("|V"):
            array = array.view(for_numpy(self.dtype))
        return array.copy() if copy else array

    def cuda(self, writable: bool = False, timeout: float | str | None = None) -> CudaView:
        """Show a buffer in device memory to the CUDA of this process, without a copy.

        It has `__cuda_array_interface__`, for CuPy and Numba; PyTorch, JAX and CuPy also take the
        buffer itself by `from_dlpack`. Waits for what writes it. The GPU forbids to write there,
        unless `writable`; then no submission can use the buffer while the view exists. `device` is
        its number in this process.
        """
        self._check("cuda")
        if self._stream is None:
            raise ViewError("cuda: the buffer is in host memory: make it with memory='device'")
        return cuda.CudaView(self, writable, timeout)

    def _check(self, what: str) -> None:
        if self.released:
            raise Closed(f"{what}: the buffer was released")

    def _fetch(self, timeout: float | str | None = None) -> Buffer:
        """A copy in host memory of a buffer in device memory."""
        host = self.context.empty(self.shape, self.dtype)
        self._stream.copy(self, host).wait(timeout)
        return host

    def write(self, array: Any) -> None:
        """Overwrite all elements with those of `array`, of the same shape. Waits for what uses the
        buffer. Poisoned content is good afterwards. It is refused while there are views.

        Another type is converted, as `Context.asarray` does it: numbers of floating point are
        rounded, and what would change in another way is refused. A buffer of type 'raw' takes the
        bytes of any array of its size.

        >>> x = ctx.empty(2, "int32")
        >>> x.write([5, 6])
        >>> x.tolist()
        [5, 6]
        """
        self._check("write")
        source, dtype, shape = self.context._source(array, self.dtype)
        if dtype != self.dtype:
            raise InvalidType(f"write: array: it is {dtype}, and the buffer is {self.dtype}")
        if shape != self.shape and (dtype != "raw" or math.prod(shape) != self.size):
            raise InvalidArgument(
                f"write: array: its shape is {shape}, and the buffer's {self.shape}"
            )
        self._assign(source)

    def _assign(self, source: Any) -> None:
        """Overwrite all elements with what `source` shows, which has the right type and size."""
        if self._stream is None:
            _native.buffer_assign(self, source)
            return
        host = self.context.empty(self.shape, self.dtype)
        _native.buffer_assign(host, source)
        self._stream.copy(host, self).wait()

    def tobytes(self) -> bytes:
        """Return a copy of all bytes."""
        self._check("tobytes")
        return _show(self if self._stream is None else self._fetch()).tobytes()

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers."""
        self._check("tolist")
        shown = self if self._stream is None else self._fetch()
        if self.dtype.typestr.startswith("|V"):
            raise InvalidType(f"tolist: Python has no numbers of type {self.dtype}")
        if self.dtype == "float16":  # memoryview knows no half floats
            numbers = list(struct.unpack(f"<{self.size}e", _show(shown).tobytes()))
            for length in self.shape[:0:-1]:
                numbers = [numbers[i : i + length] for i in range(0, len(numbers), length)]
            return numbers if self.ndim else numbers[0]
        return _show(shown).tolist()

    def view(self, dtype: object = None, shape: int | tuple[int, ...] | None = None) -> Buffer:
        """Return a buffer of the same memory, with another type or shape.

        >>> ctx.asarray([1.0], "float32").view("uint32").tolist()
        [1065353216]
        """
        wanted = self.dtype if dtype is None else DType(dtype)
        if shape is None:
            if wanted.itemsize == self.itemsize:
                shape = self.shape
            elif self.nbytes % wanted.itemsize:
                raise InvalidArgument(
                    f"view: dtype: {self.nbytes} bytes are no whole number of {wanted}"
                )
            else:
                shape = self.nbytes // wanted.itemsize
        sizes = to_shape(shape, "view")
        if math.prod(sizes) * wanted.itemsize != self.nbytes:
            raise InvalidArgument(
                f"view: shape: {sizes} of {wanted} does not have {self.nbytes} bytes"
            )
        made: Buffer = self._view(wanted.code, sizes, 0)
        return made

    @property
    def progress(self) -> tuple[int, int]:
        """Of a buffer from a file: how many bytes are loaded, and how many there are."""
        return _native.buffer_progress(self)

    # -- protocols ---------------------------------------------------------------------------------

    @property
    def __array_interface__(self) -> dict[str, Any]:
        # An object with the buffer protocol as data: so the view counts as long as it is used.
        view = _show(self if self._stream is None else self._fetch())
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.typestr,
            "data": view.cast("B") if self.nbytes else bytearray(1),
            "strides": None,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        if self._stream is None:
            return (_DLPACK_CPU, 0)
        number = cuda.device_of(self)
        return (_DLPACK_VULKAN, 0) if number is None else (_DLPACK_CUDA, number)

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Return a DLPack capsule, in host memory or of a CUDA device. One of DLPack 1 is for
        reading; an older one counts as writable.

        What writes the buffer has ended when this returns, so no stream has to wait for it. The
        view ends when the consumer's tensor is gone, and waits for the work in the default
        context of CUDA; work elsewhere must have ended before.
        """
        versioned = max_version is not None and max_version[0] >= 1
        if self._stream is not None:
            return cuda.export(self, stream, versioned, dl_device, copy)
        if stream is not None:
            raise ViewError("__dlpack__: stream: host memory has no streams")
        if dl_device is not None and tuple(dl_device) != (_DLPACK_CPU, 0):
            raise ViewError(f"__dlpack__: dl_device: {dl_device} is not the processor's memory")
        shown = self
        if copy:
            shown = self.context.empty(self.shape, self.dtype)
            _native.buffer_assign(shown, _show(self))
        return shown._dlpack(versioned, bool(copy) or not versioned)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of an array without dimensions")
        length: int = self.shape[0]
        return length

    def __iter__(self) -> Any:
        raise TypeError("a Buffer has no elements of its own: use numpy() or tolist()")

    def __bool__(self) -> bool:
        raise InvalidArgument(
            "the truth value of a Buffer is ambiguous: use its size, `is None`, or numpy().any()"
        )

    def _refuse_number(self) -> Any:
        raise InvalidType("a Buffer is no number: numpy().item() waits for one of a single element")

    __float__ = __int__ = __complex__ = _refuse_number

    def __eq__(self, other: object) -> bool:
        if self is other or other is None:
            return self is other
        raise InvalidType(
            "==: a Buffer has no operators: compare numpy() or tolist(), or the objects by `is`"
        )

    __hash__ = _native.Buffer.__hash__

    def _leave(self) -> None:
        self.release()

    def __repr__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        if self.released:
            return f"<bulkhead.Buffer {self.dtype}[{shape}] released>"
        status, message = self._state()
        state = _STATES.get(Status(status), f"POISONED: {message}")
        return f"<bulkhead.Buffer {self.dtype}[{shape}] in {self.memory} memory, {state}>"


def to_shape(shape: Any, what: str) -> tuple[int, ...]:
    """A shape as a tuple of numbers that are not negative."""
    try:
        sizes = (
            (int(shape.__index__()),)
            if hasattr(shape, "__index__")
            else tuple(int(size.__index__()) for size in shape)
        )
    except (TypeError, AttributeError):
        raise InvalidType(f"{what}: shape: a number or a tuple of numbers, not {shape!r}") from None
    if any(size < 0 for size in sizes):
        raise InvalidArgument(f"{what}: shape: {shape!r} has a size below 0")
    if any(size >= 2**63 for size in sizes):
        raise InvalidArgument(f"{what}: shape: {shape!r} is larger than any memory")
    return sizes


def take_array(context: Context, call: str, name: str, array: Any, **options: Any) -> Buffer:
    """The array that is given to `call` for the argument `name`, as a Buffer."""
    try:
        return context.asarray(array, **options)
    except Error as error:
        rename(error, ("^array: ", ""), ("^", f"{call}: {name}: "))
        raise


def out(buffer: Buffer) -> _native.Bound:
    """For an argument of a launch: the kernel overwrites all of it, and reads none of it.

    It is a promise: what the kernel does not overwrite counts as good, too. Poisoned content is
    good afterwards.
    """
    return _native.bound(buffer, _ACCESS_WRITE)


def read(buffer: Buffer) -> _native.Bound:
    """For an argument of a launch: the kernel only reads it, whatever it declares.

    A kernel that stores into it all the same changes nothing: its submission is poisoned
    (BINDING_MISMATCH), or its worker dies, or it writes into a copy.
    """
    return _native.bound(buffer, _ACCESS_READ)


def copy(source: Buffer, destination: Buffer) -> tuple[Buffer, Buffer]:
    """A command for `Stream.submit`: copies all bytes of one buffer into another of the same
    size.
    """
    for name, one in (("source", source), ("destination", destination)):
        if not isinstance(one, Buffer):
            raise InvalidType(f"copy: {name}: a Buffer, not {type(one)}")
    return source, destination


def fill(buffer: Buffer, word: int = 0) -> tuple[Buffer, int]:
    """A command for `Stream.submit`: fills a buffer with a 32-bit word."""
    if not isinstance(buffer, Buffer):
        raise InvalidType(f"fill: buffer: a Buffer, not {type(buffer)}")
    if not isinstance(word, int):
        raise InvalidType(f"fill: word: a 32-bit word, not {word!r}")
    if not -(2**31) <= word < 2**32:
        raise InvalidArgument(f"fill: word: {word} has more than 32 bits")
    return buffer, word & 0xFFFFFFFF
