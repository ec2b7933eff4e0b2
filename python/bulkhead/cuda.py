"""Arrays of this process's own CUDA: PyTorch's, CuPy's, JAX's, Numba's, both ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _native
from .dtypes import BY_CODE, DType
from .errors import InvalidArgument, InvalidType, ViewError

if TYPE_CHECKING:
    from .buffer import Buffer
    from .context import Context

_READ, _READ_WRITE = 1, 3
_CPU, _CUDA = 1, 2  # DLPack's types of devices
_GAPS = "array: it has gaps, or another order than C's: copy it first (contiguous())"


class CudaView:
    """A buffer in the memory of a CUDA device, for what knows `__cuda_array_interface__`.

    `Buffer.cuda()` makes it: `cupy.asarray(buffer.cuda())`. It counts as a view until it and the
    arrays that were made of it are gone.
    """

    __slots__ = ("_address", "_device", "_held", "_interface")

    def __init__(self, buffer: Buffer, writable: bool, timeout: float | str | None) -> None:
        self._device = _number(buffer, "cuda")
        self._held = _native.buffer_map_cuda(buffer, _READ_WRITE if writable else _READ, timeout)
        self._address = self._held.address(buffer)
        self._interface = {
            "version": 3,
            "shape": buffer.shape,
            "typestr": buffer.dtype.typestr,
            "data": (self._address, not writable),
            "strides": None,
            "stream": None,  # what wrote it has ended
        }

    @property
    def address(self) -> int:
        """Where the array begins, for the device; 0: it is empty."""
        return self._address

    @property
    def device(self) -> int:
        """The number of the device in this process."""
        return self._device

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return dict(self._interface)


def _number(buffer: Buffer, call: str) -> int:
    number = _native.buffer_cuda_device(buffer)
    if number is None:
        raise ViewError(f"{call}: device memory has no address; numpy() copies it")
    return number


def device_of(buffer: Buffer) -> int | None:
    """The number that this process's CUDA has for the device; None: it is no CUDA device."""
    return _native.buffer_cuda_device(buffer)


def _check_stream(stream: object) -> None:
    """What wrote the buffer has ended, so no stream has to wait: each that there can be is fine."""
    if stream is not None and (isinstance(stream, bool) or not isinstance(stream, int)):
        raise InvalidType(f"__dlpack__: stream: a number, or None, not {stream!r}")
    if stream is not None and (stream == 0 or stream < -1):
        raise InvalidArgument(
            f"__dlpack__: stream: {stream} is none of CUDA's: 1 and 2 are its default streams, "
            "larger ones handles, -1 asks for none"
        )


def export(
    buffer: Buffer, stream: object, versioned: bool, dl_device: Any, copy: bool | None
) -> object:
    """`Buffer.__dlpack__` of device memory."""
    if dl_device is not None and tuple(dl_device) == (_CPU, 0):
        if copy is False:
            raise ViewError("__dlpack__: copy: device memory comes to the processor's by a copy")
        return buffer._fetch()._dlpack(versioned, True)
    number = _number(buffer, "__dlpack__")
    if dl_device is not None and tuple(dl_device) != (_CUDA, number):
        raise ViewError(f"__dlpack__: dl_device: {dl_device} is not where the buffer is")
    _check_stream(stream)
    shown = buffer
    if copy:
        own = buffer._stream
        shown = buffer.context.empty(buffer.shape, buffer.dtype, stream=own, memory="device")
        own.copy(buffer, shown).wait()
    writable = bool(copy) or not versioned
    view = _native.buffer_map_cuda(shown, _READ_WRITE if writable else _READ, None)
    return shown._dlpack(versioned, writable, view, view.address(shown), number)


# -- in --------------------------------------------------------------------------------------------


@dataclass
class Foreign:
    """An array of another package in CUDA's memory."""

    dtype: DType
    shape: tuple[int, ...]
    address: int
    owner: Any
    """Keeps the memory while it is copied."""

    def to_host(self, context: Context) -> Buffer:
        """Make a buffer of host memory with its elements."""
        made = context.empty(self.shape, self.dtype)
        _native.buffer_write_cuda(made, self.address)
        return made

    def to_buffer(self, context: Context, **options: Any) -> Buffer:
        """Make a buffer with its elements: without a way through the host on the same GPU."""
        made = context.empty(self.shape, self.dtype, **options)
        if made._stream is None or device_of(made) is not None:
            try:
                _native.buffer_write_cuda(made, self.address)
            except InvalidArgument:  # of another GPU
                if made._stream is None:
                    raise
            else:
                return made
        made._assign(self.to_host(context))
        return made


def has_dlpack(array: Any) -> bool | None:
    """Whether an array's DLPack is of CUDA's memory; None: it has no DLPack that says it."""
    if not hasattr(array, "__dlpack__") or not hasattr(array, "__dlpack_device__"):
        return None
    kind: int = array.__dlpack_device__()[0]
    return kind == _CUDA


def take(array: Any) -> Foreign | None:
    """An array in CUDA's memory; None: it is none."""
    kinds = (_native.Buffer, _native.Tensor)
    if isinstance(array, kinds) or hasattr(type(array), "__array_interface__"):
        return None
    on_cuda = has_dlpack(array)
    if on_cuda is not None:
        return _take_dlpack(array) if on_cuda else None
    interface = getattr(array, "__cuda_array_interface__", None)
    return None if interface is None else _take_interface(array, interface)


def _take_dlpack(array: Any) -> Foreign:
    try:
        # Stream 1 waits for what writes the array, and the copy for all that is in its context.
        try:
            capsule = array.__dlpack__(stream=1, max_version=(1, 1))
        except TypeError:  # before DLPack 1
            capsule = array.__dlpack__(stream=1)
    except (BufferError, RuntimeError) as error:  # PyTorch's of one that requires a gradient
        raise ViewError(f"array: {error}") from error
    tensor = _native.tensor_take(capsule, True)
    shape, address, contiguous = tensor._place
    if not contiguous:
        raise InvalidArgument(_GAPS)
    return Foreign(BY_CODE[tensor._dtype], shape, address, (array, tensor))


def _take_interface(array: Any, interface: Any) -> Foreign:
    try:
        address, _ = interface["data"]
        shape = tuple(int(length) for length in interface["shape"])
        dtype = DType(interface["typestr"])
    except (TypeError, ValueError, KeyError) as error:
        if isinstance(error, InvalidType):
            raise
        raise InvalidArgument(f"array: __cuda_array_interface__: {error!r}") from None
    if interface.get("mask") is not None or interface.get("stream") == 0:
        raise InvalidArgument("array: __cuda_array_interface__: it has a mask, or a stream 0")
    strides, dense = interface.get("strides") or (), dtype.itemsize
    for length, stride in zip(shape[::-1], strides[::-1]):
        if length > 1 and stride != dense:
            raise InvalidArgument(_GAPS)
        dense *= length
    return Foreign(dtype, shape, address or 0, array)
