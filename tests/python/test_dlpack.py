"""DLPack both ways."""

import ctypes
import gc

import bulkhead as bh
import numpy as np
import pytest
from conftest import BOUND

CAPSULE_NAME = ctypes.pythonapi.PyCapsule_GetName
CAPSULE_NAME.restype, CAPSULE_NAME.argtypes = ctypes.c_char_p, [ctypes.py_object]


class Old:
    """A producer before DLPack 1: it takes no max_version."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Elsewhere:
    def __dlpack__(self, **_):
        raise AssertionError("it is not asked for")

    def __dlpack_device__(self):
        return (4, 0)  # OpenCL


@pytest.mark.parametrize(
    "dtype", "float16 float32 float64 int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()
)
def test_in(ctx, dtype):
    array = np.arange(12).astype(dtype).reshape(3, 4)
    for source in (array, array.T, array[::2, ::-1], array[:0], array[1, 2:]):
        x = ctx.from_dlpack(Old(source))
        assert x.dtype == dtype and x.shape == source.shape
        np.testing.assert_array_equal(x.numpy(), source)
    assert ctx.asarray(Old(array)).tolist() == array.tolist()


@pytest.mark.parametrize("dtype", "float16 float32 int8 uint64".split())
def test_out(ctx, dtype):
    x = ctx.asarray(np.arange(6).astype(dtype).reshape(2, 3))
    array = np.from_dlpack(x)
    assert array.dtype == dtype and array.tolist() == x.tolist()
    address = x.numpy().ctypes.data
    assert array.ctypes.data == address and x.views == 1
    del array
    gc.collect()
    assert x.views == 0 and x.__dlpack_device__() == (1, 0)


def test_our_own_memory_comes_back_without_a_copy(ctx):
    x = ctx.asarray(np.arange(6, dtype="f4"))
    again = ctx.from_dlpack(np.asarray(x.numpy(writable=True)))
    assert again.numpy().ctypes.data == x.numpy().ctypes.data


def test_an_old_capsule_counts_as_writable(ctx, stream, kernels):
    x, y = ctx.asarray(np.float32([1, 2])), ctx.empty(2)
    old = x.__dlpack__()
    assert CAPSULE_NAME(old) == b"dltensor"
    with pytest.raises(bh.ViewError, match="X: a view that may be written"):
        stream.launch(kernels.square, grid=2, X=x, Y=y)
    del old  # nobody has taken it
    gc.collect()
    assert x.views == 0
    new = x.__dlpack__(max_version=(1, 0))
    assert CAPSULE_NAME(new) == b"dltensor_versioned"
    stream.launch(kernels.square, grid=2, X=x, Y=y).wait(BOUND)
    with pytest.raises(bh.ViewError, match="would write"):
        stream.fill(x)
    del new
    gc.collect()
    stream.fill(x).wait(BOUND)
    copied = x.__dlpack__(copy=True)
    assert x.views == 0
    del copied


def test_a_capsule_is_taken_once(ctx):
    capsule = ctx.asarray(np.float32([1, 2])).__dlpack__(max_version=(1, 0))

    class Once:
        def __dlpack__(self, **_):
            return capsule

        def __dlpack_device__(self):
            return (1, 0)

    assert ctx.from_dlpack(Once()).tolist() == [1, 2]
    assert CAPSULE_NAME(capsule) == b"used_dltensor_versioned"
    with pytest.raises(bh.InvalidType, match="or one that was taken before"):
        ctx.from_dlpack(Once())


def test_what_cannot_be(ctx, stream):
    with pytest.raises(bh.ViewError, match="the tensor is on a device"):
        ctx.from_dlpack(Elsewhere())
    with pytest.raises(bh.InvalidType, match="has no __dlpack__"):
        ctx.from_dlpack([1, 2])
    with pytest.raises(bh.InvalidType, match="DLPack's code 5, 64 bits"):
        ctx.from_dlpack(Old(np.ones(2, "c8")))
    x = ctx.empty(2)
    with pytest.raises(bh.ViewError, match="dl_device: "):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(bh.ViewError, match="stream: "):
        x.__dlpack__(stream=1)
    y = ctx.empty(2, stream=stream, memory="device")
    assert y.__dlpack_device__() == (7, 0)
    with pytest.raises(bh.ViewError, match="device memory has no address"):
        y.__dlpack__()
    with pytest.raises((bh.ViewError, BufferError, RuntimeError)):
        np.from_dlpack(y)


def test_it_waits_and_raises_the_verdict(ctx, stream, kernels, held):
    event, data = held
    event.cancel()
    event.exception(BOUND)
    with pytest.raises(bh.Cancelled):
        data.__dlpack__(max_version=(1, 0))
    with pytest.raises(bh.Cancelled):
        np.from_dlpack(data)
    assert data.views == 0


def test_of_bfloat16(ctx):
    x = ctx.empty(3, "bfloat16")
    again = ctx.from_dlpack(x)
    assert again.dtype == "bfloat16" and again.shape == (3,)


class Tensor(ctypes.Structure):
    """DLPack's DLManagedTensor, as any package could fill it in."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
NEW_CAPSULE = ctypes.pythonapi.PyCapsule_New
NEW_CAPSULE.restype = ctypes.py_object
NEW_CAPSULE.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def foreign(array, shape, strides=None, offset=0, lanes=1, device=1, ndim=None):
    """(an object with __dlpack__, a list that has an entry when its tensor was deleted)"""
    deleted = []
    deleter = DELETER(deleted.append)
    tensor = Tensor(
        array.ctypes.data,
        (device, 0),
        len(shape) if ndim is None else ndim,
        2,
        32,
        lanes,
        None if shape is None else (ctypes.c_int64 * max(1, len(shape)))(*shape),
        None if strides is None else (ctypes.c_int64 * len(strides))(*strides),
        offset,
        None,
        ctypes.cast(deleter, ctypes.c_void_p),
    )
    made = type("Foreign", (), {"__dlpack_device__": lambda self: (1, 0)})()
    made.keep = array, tensor, deleter
    capsule = NEW_CAPSULE(ctypes.addressof(tensor), b"dltensor", None)
    type(made).__dlpack__ = lambda self, **_: capsule
    return made, deleted


def test_strides_and_offsets(ctx):
    array = np.arange(12, dtype="f4")
    for shape, strides, offset, expected in (
        ((3,), None, 4, [1, 2, 3]),
        ((3,), (-2,), 44, [11, 9, 7]),
        ((2, 3), (0, 1), 0, [[0, 1, 2], [0, 1, 2]]),
        ((2, 2), (1, 5), 8, [[2, 7], [3, 8]]),
        ((), None, 20, 5),
        ((0, 5), (7, 7), 0, []),
        ((2, 0), None, 0, [[], []]),
    ):
        tensor, deleted = foreign(array, shape, strides, offset)
        x = ctx.from_dlpack(tensor)
        assert x.tolist() == expected and x.shape == shape
        gc.collect()
        assert len(deleted) == 1  # it was copied


def test_tensors_that_lie_are_left_to_their_owners(ctx):
    array = np.arange(12, dtype="f4")
    for error, lie in (
        (bh.InvalidArgument, {"shape": (-1,)}),
        (bh.InvalidArgument, {"shape": (2**40, 2**40)}),
        (bh.InvalidArgument, {"shape": (3,), "strides": (2**62,)}),
        (bh.InvalidArgument, {"shape": (3,), "offset": 2**63}),
        (bh.InvalidArgument, {"shape": (1,), "ndim": 65}),
        (bh.InvalidArgument, {"shape": (1,), "ndim": -1}),
        (bh.InvalidType, {"shape": (3,), "lanes": 4}),
        (bh.ViewError, {"shape": (3,), "device": 2}),
    ):
        tensor, deleted = foreign(array, **lie)
        with pytest.raises(error, match="from_dlpack: "):
            ctx.from_dlpack(tensor)
        gc.collect()
        assert not deleted
    tensor, deleted = foreign(array, (3,))
    tensor.keep[1].shape = ctypes.POINTER(ctypes.c_int64)()
    with pytest.raises(bh.InvalidArgument, match="from_dlpack: the tensor has no shape"):
        ctx.from_dlpack(tensor)
