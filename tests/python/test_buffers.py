"""Buffers: arrays in, arrays out, and the views of them."""

import ctypes
import gc
import os
import sys
import types
import weakref

import bulkhead as bh
import numpy as np
import pytest
from conftest import BOUND, SHADERS

MIB = 1 << 20


def address(view):
    return np.asarray(view).ctypes.data


def test_new_buffers_are_zero(ctx):
    for dtype in ("float32", "f64", np.int8, np.dtype("u2"), bool, "float16"):
        x = ctx.empty((2, 3), dtype)
        assert x.shape == (2, 3) and x.size == 6 and x.ndim == 2 and len(x) == 2
        assert x.nbytes == 6 * x.itemsize and x.state == "CLEAN" and x.memory == "host"
        assert not x.numpy().any()
    assert ctx.empty(0).numpy().shape == (0,)
    assert ctx.empty((3, 0)).numpy().shape == (3, 0)
    assert ctx.empty(()).numpy().shape == ()
    assert ctx.empty_like(x).shape == (2, 3) and ctx.empty_like(x).dtype == "float16"
    assert ctx.empty_like(np.ones(4, "i4"), "u1").dtype == np.uint8


def test_types_have_many_names():
    assert bh.DType("f32") == bh.DType("float32") == np.float32 == bh.DType(np.dtype("f4"))
    assert bh.DType("float32") == np.dtype("float32") and np.dtype("float32") == bh.DType("f32")
    assert bh.DType("f32") != "f64" and bh.DType("f32") != 5 and bh.DType("u1") == "uint8"
    for ambiguous in ("i8", "u8"):
        with pytest.raises(bh.InvalidType, match="write u?int8 or u?int64"):
            bh.DType(ambiguous)
        assert bh.DType("int8") != ambiguous != bh.DType("int64")
    assert bh.DType("<i8") == "int64" == bh.DType(np.dtype("i8"))
    assert bh.DType(float) == "float64" and bh.DType(int) == "int64" and bh.DType(bool) == "|b1"
    assert np.zeros(2, bh.DType("float16")).dtype == np.float16
    for wrong in ("complex64", np.complex64, "x", 7, None, np.dtype(">f4"), np.dtype("M8[s]"), "O"):
        with pytest.raises(bh.InvalidType, match="dtype: "):
            bh.DType(wrong)


@pytest.mark.parametrize("dtype", "f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8 ?".split())
def test_round_trip(ctx, dtype):
    array = np.arange(24).reshape(2, 3, 4).astype(dtype)
    x = ctx.asarray(array)
    assert x.dtype == array.dtype and x.shape == array.shape
    np.testing.assert_array_equal(x.numpy(), array)
    assert x.numpy().dtype == array.dtype
    assert x.tobytes() == array.tobytes() and x.tolist() == array.tolist()
    np.testing.assert_array_equal(np.asarray(x), array)


def test_one_copy_of_any_layout(ctx):
    array = np.arange(24, dtype="f4").reshape(4, 6)
    array.setflags(write=False)
    for source in (
        array,
        array.T,
        np.asfortranarray(array),
        array[::2, ::-3],
        array[1:],
        array[:0],
        np.broadcast_to(np.float32(7), (3, 2)),
        np.float32(5),
    ):
        x = ctx.asarray(source)
        np.testing.assert_array_equal(x.numpy(), source)
        assert x.numpy().flags.c_contiguous and x.shape == np.shape(source)
    assert ctx.asarray(b"abc").tolist() == [97, 98, 99]
    assert ctx.asarray(bytearray(2)).dtype == "uint8"
    assert ctx.asarray(memoryview(np.int16([3, 4]))).tolist() == [3, 4]
    assert ctx.asarray([[1, 2], [3, 4]], "f4").tolist() == [[1, 2], [3, 4]]
    assert ctx.asarray(np.arange(3), "f2").tolist() == [0, 1, 2]
    assert ctx.asarray((ctypes.c_int32 * 3)(1, 2, 3)).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.ones(3, ">f4"), "'>f': it is big-endian"),
        (None, "array: None is no array"),
        (np.array([None, 1]), "'O': it has Python objects"),
        (np.zeros(2, [("a", "i4"), ("b", "f4")]), "it is a structured array"),
        (np.zeros(2, "c8"), "'Zf': the library has no such type"),
        (np.zeros(2, "M8[s]"), "no type for datetime64[s]; array.view('int64') has"),
        (np.zeros(2, "U3"), "array: its elements have the type '3w': it is text"),
        (np.zeros(2, "S3"), "array: its elements have the type '3s': it is text"),
        ("text", "array: a text is no array"),
        (object(), "array: "),
        ([1, "a"], "array: "),
        ([[1, 2], [3]], "array: "),
        (np.longdouble(1), "array: "),
    ],
)
def test_an_array_that_cannot_be_is_refused(ctx, array, says):
    with pytest.raises(bh.InvalidType) as raised:
        ctx.asarray(array)
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("shape", "error"),
    [
        (-1, bh.InvalidArgument),
        ((2, -3), bh.InvalidArgument),
        (1.5, bh.InvalidType),
        ("ab", bh.InvalidType),
        (None, bh.InvalidType),
        (2**63, bh.InvalidArgument),
        ((2**40, 2**40), bh.InvalidArgument),
        (2**42, bh.InvalidArgument),
        ((1,) * 65, bh.InvalidArgument),
        (2**38, bh.EnvironError),
    ],
)
def test_a_shape_that_cannot_be_is_refused(ctx, shape, error):
    with pytest.raises(error) as raised:
        ctx.empty(shape)
    assert str(raised.value).startswith("empty: shape: ")
    assert isinstance(raised.value, MemoryError) == (error is bh.EnvironError)


def test_64_mib_without_a_copy(ctx):
    x = ctx.empty(16 * MIB)
    view = memoryview(x)
    array = x.numpy()
    assert array.nbytes == 64 * MIB
    assert address(view) == address(array) == address(np.asarray(x))
    again = ctx.asarray(array)
    assert address(again) == address(array)
    reshaped = ctx.asarray(array.reshape(4096, 4096))
    assert address(reshaped) == address(array) and reshaped.shape == (4096, 4096)
    row = ctx.asarray(array.reshape(4096, 4096)[7])
    assert address(row) == address(array) + 7 * 16384 and row.offset == 7 * 16384
    # What a device could not bind is copied.
    assert address(ctx.asarray(array[1:])) != address(array) + 4
    assert ctx.asarray(x) is x
    # The kernel's writes are seen through each.
    del view, array, again, reshaped, row
    gc.collect()
    x.numpy(writable=True)[:] = 3
    assert ctx.asarray(x.numpy()).numpy()[-1] == 3


def test_a_range_is_bound_as_a_range(ctx, stream, kernels):
    x = ctx.asarray(np.arange(256, dtype="f4"))
    half = ctx.asarray(x.numpy()[128:])
    y = ctx.empty(128)
    stream.launch(kernels.square, grid=128, X=half, Y=y).wait(BOUND)
    np.testing.assert_array_equal(y.numpy(), np.arange(128, 256, dtype="f4") ** 2)
    z = ctx.empty(256)
    tail = ctx.asarray(z.numpy()[64:128])
    gc.collect()
    stream.launch(kernels.square, grid=64, X=half, Y=tail).wait(BOUND)
    expected = np.zeros(256, "f4")
    expected[64:128] = np.arange(128, 192, dtype="f4") ** 2
    np.testing.assert_array_equal(z.numpy(), expected)


def test_a_view_outlives_its_buffer(ctx, stream):
    x = ctx.empty(1000, "uint32")
    stream.fill(x, 7).wait(BOUND)
    view = x.numpy()[10:20]
    x.release()
    assert x.released and "released" in repr(x)
    del x
    gc.collect()
    assert view.sum() == 70
    other = bh.Context(spares=0)
    y = other.asarray(np.arange(5))
    kept = y.numpy()
    other.close()
    assert kept.sum() == 10 and memoryview(kept).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(bh.Closed):
        other.empty(1)


def test_a_submission_does_not_write_under_a_view(ctx, stream, kernels):
    x, y = ctx.empty(8), ctx.empty(8)
    launch = stream.prepare(kernels.saxpy, grid=8, X=x, Y=y, a=1, n=8)
    for take in (
        lambda b: b.numpy(),
        memoryview,
        np.asarray,
        lambda b: b.numpy()[2:3],
        lambda b: np.frombuffer(b, "u1"),
        lambda b: ctx.asarray(b.numpy()[:]).numpy(),
    ):
        view = take(y)
        assert y.views == 1
        for refused in (
            launch,
            lambda: stream.fill(y),
            lambda: stream.submit([bh.copy(x, y)]),
            lambda: stream.eval("2*x", x=x, out={"y": y}),
            lambda: stream.launch(kernels.saxpy, grid=8, X=x, Y=bh.out(y), a=1, n=8),
        ):
            with pytest.raises(bh.ViewError, match="1 view .* still shows: delete it first"):
                refused()
        # Reading is no danger to it, nor to a view of what is read.
        stream.launch(kernels.saxpy, grid=8, X=y, Y=x, a=1, n=8).wait(BOUND)
        del view
        gc.collect()
        assert y.views == 0
        launch().wait(BOUND)
    with memoryview(y), pytest.raises(BufferError):
        launch()
    launch().wait(BOUND)


def test_a_writable_view_forbids_reading_too(ctx, stream, kernels):
    x, y = ctx.empty(8), ctx.empty(8)
    view = x.numpy(writable=True)
    view[:] = 5
    with pytest.raises(bh.ViewError, match="launch: X: a view that may be written"):
        stream.launch(kernels.square, grid=8, X=x, Y=y)
    del view
    stream.launch(kernels.square, grid=8, X=x, Y=y).wait(BOUND)
    assert y.tolist() == [25] * 8
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 1
    assert memoryview(x).readonly and not memoryview(x.numpy(writable=True)).readonly


def test_files_read_into_a_buffer(ctx, tmp_path):
    path = tmp_path / "raw"
    path.write_bytes(np.arange(10, dtype="i4").tobytes())
    x = ctx.empty(10, "int32")
    with open(path, "rb") as file:
        assert file.readinto(x) == 40
    assert x.tolist() == list(range(10)) and x.views == 0


def test_write(ctx):
    x = ctx.empty((2, 2), "int32")
    x.write([[1, 2], [3, 4]])
    assert x.tolist() == [[1, 2], [3, 4]]
    x.write(np.arange(4, dtype="i4").reshape(2, 2).T)
    assert x.tolist() == [[0, 2], [1, 3]]
    x.write(np.full((2, 2), 7, "u1"))
    assert x.tolist() == [[7, 7], [7, 7]]
    for wrong, error in (
        (np.ones((2, 2), "f4"), bh.InvalidType),
        (np.ones(4, "i4"), bh.InvalidArgument),
        (np.ones(3, "i4"), bh.InvalidArgument),
        ("abcd", bh.InvalidType),
        (None, bh.InvalidType),
    ):
        with pytest.raises(error, match="array: "):
            x.write(wrong)
    assert x.tolist() == [[7, 7], [7, 7]]


def test_a_conversion_only_rounds(ctx):
    """Of lists and of arrays: whatever has another value afterwards is refused."""
    large = 2**63
    for given, dtype, expected in (
        ([0, 255], "uint8", [0, 255]),
        ([True, 0], "int8", [1, 0]),
        ([0, 1], "bool", [False, True]),
        ([large, 1], "uint64", [large, 1]),
        ([], "int32", []),
        ([0.1, 2], "float32", np.float32([0.1, 2]).tolist()),
    ):
        made = ctx.asarray(given, dtype)
        assert made.dtype == dtype and made.tolist() == expected
    assert ctx.asarray(np.float64([0.1, 2]), "f4").tolist() == expected
    assert ctx.asarray(np.int64([0, 255]), "u1").tolist() == [0, 255]
    for given, dtype, error, says in (
        ([300.7, -1], "uint8", bh.InvalidType, "float64, and uint8 has no fractions; astype"),
        ([1.0], "bool", bh.InvalidType, "float64, and bool has no fractions"),
        ([1, 300], "uint8", bh.InvalidArgument, "array: 300 does not fit uint8"),
        ([-1, 3], "uint64", bh.InvalidArgument, "array: -1 does not fit uint64"),
        ([large], "int64", bh.InvalidArgument, "array: 9223372036854775808 does not fit int64"),
        ([0, 2], "bool", bh.InvalidArgument, "array: 2 does not fit bool"),
    ):
        for array in (given, np.array(given)):
            with pytest.raises(error, match=says):
                ctx.asarray(array, dtype)
    with pytest.raises(bh.InvalidArgument, match="array: an integer does not fit int32"):
        ctx.asarray([2**70], "int32")


def test_view_as_another_type(ctx):
    x = ctx.asarray(np.float32([1, 2, 3, 4]))
    assert x.view("uint32").tolist()[0] == 0x3F800000
    assert x.view(shape=(2, 2)).tolist() == [[1, 2], [3, 4]]
    assert x.view("uint8").shape == (16,) and x.view("float64", (1, 2)).shape == (1, 2)
    assert address(x.view("u1")) == address(x)
    with pytest.raises(bh.InvalidArgument, match="view: shape: "):
        x.view(shape=5)
    with pytest.raises(bh.InvalidArgument, match="view: dtype: 12 bytes are no whole"):
        ctx.empty(3).view("f8")


def test_raw_bytes(ctx):
    x = ctx.empty(8, "raw")
    x.write(np.float32([1, 2]))
    assert x.tobytes() == np.float32([1, 2]).tobytes() and x.view("f4").tolist() == [1, 2]
    assert ctx.asarray(np.float32([[1, 2], [3, 4]]).T, "raw").view("f4").tolist() == [1, 3, 2, 4]
    assert ctx.asarray(b"", "raw").shape == (0,)


def test_the_callers_memfd(ctx, stream):
    fd = os.memfd_create("mine", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, 4096)
        os.pwrite(fd, np.arange(1024, dtype="i4").tobytes(), 0)
        x = ctx.from_memfd(fd, 1024, "int32")
        assert x.tolist()[:3] == [0, 1, 2]
        stream.fill(x, 9).wait(BOUND)
        assert os.pread(fd, 4, 4092) == b"\x09\0\0\0"
        with pytest.raises(bh.InvalidArgument):
            ctx.from_memfd(fd, 5000, "int32")
    finally:
        os.close(fd)
    with open(os.devnull, "rb") as file, pytest.raises(bh.InvalidArgument, match="memfd"):
        ctx.from_memfd(file.fileno(), 1)


def test_array_interface(ctx, stream):
    x = ctx.asarray(np.arange(6, dtype="i2").reshape(2, 3))

    class Only:
        __array_interface__ = x.__array_interface__

    only = Only()
    assert x.__array_interface__["typestr"] == "<i2" and x.__array_interface__["shape"] == (2, 3)
    array = np.asarray(only)
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]] and address(array) == address(x)
    del Only, only
    gc.collect()
    assert x.views == 1  # the array's
    with pytest.raises(bh.ViewError):
        stream.fill(x.view("int32", 3), 0)
    del array
    gc.collect()
    assert x.views == 0


def test_bfloat16_has_its_bits(ctx, monkeypatch):
    class Fake:  # as arrays of the package ml_dtypes look
        def __init__(self, bits):
            self._bits, self.shape = bits, bits.shape

        class dtype:
            name, kind = "bfloat16", "V"

        def view(self, dtype):
            return self._bits.view(dtype)

    bits = np.uint16([0x3F80, 0x4000])
    x = ctx.asarray(Fake(bits))
    assert x.dtype == "bfloat16" and x.itemsize == 2 and x.shape == (2,)
    assert x.tobytes() == bits.tobytes()
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)  # it is not there
    assert x.numpy().dtype == "uint16" and x.numpy().tolist() == bits.tolist()
    assert ctx.empty(1, "f8_e4m3").numpy().dtype == "uint8"
    monkeypatch.setitem(sys.modules, "ml_dtypes", types.SimpleNamespace(bfloat16=np.dtype("f2")))
    assert x.numpy().dtype == "float16" and x.numpy().view("u2").tolist() == bits.tolist()
    assert ctx.empty(1, "f8e4m3").numpy().dtype == "uint8"  # an older one may lack a type
    assert ctx.empty(1, "bf16").dtype == x.dtype and ctx.empty(1, "f8e5m2").dtype == "float8_e5m2"
    assert x.__array_interface__["typestr"] == "|V2"
    with pytest.raises(bh.InvalidType):
        x.tolist()
    with pytest.raises(bh.InvalidType, match="cannot be converted"):
        ctx.asarray(Fake(bits), "float32")


def test_device_memory_is_copied(ctx, stream, kernels):
    x = ctx.asarray(np.arange(8, dtype="f4"), stream=stream, memory="device")
    y = ctx.empty(8, stream=stream, memory="device")
    assert x.memory == y.memory == "device" and "device" in repr(x)
    stream.launch(kernels.square, grid=8, X=x, Y=y)
    assert y.numpy().tolist() == [n * n for n in range(8)] and y.views == 0
    assert y.tolist() == [n * n for n in range(8)] and len(y.tobytes()) == 32
    y.write(np.ones(8, "f4"))
    assert np.asarray(y).tolist() == [1] * 8 and y.state == "CLEAN"
    for refused in (
        lambda: memoryview(y),
        lambda: y.numpy(writable=True),
        lambda: y.__dlpack__(),
        lambda: np.frombuffer(y),
    ):
        with pytest.raises(bh.ViewError, match="device memory"):
            refused()
    with pytest.raises(bh.InvalidArgument, match="'disk' is none of host, device, auto"):
        ctx.empty(1, memory="disk")
    with pytest.raises(bh.InvalidArgument, match="stream"):
        ctx.empty(1, memory="device")
    with pytest.raises(bh.InvalidType, match="stream: a Stream"):
        ctx.empty(1, stream=5)


def test_of_another_context(ctx, stream, kernels):
    with bh.Context(spares=0) as other:
        x = other.asarray(np.float32([1, 2]))
        with pytest.raises(bh.InvalidArgument, match="X: the buffer belongs to another context"):
            stream.launch(kernels.square, grid=2, X=x, Y=ctx.empty(2))
        with pytest.raises(bh.InvalidArgument, match="another context"):
            stream.fill(x)
        with pytest.raises(bh.InvalidArgument, match="the kernel belongs to another context"):
            stream.launch(other.kernel(SHADERS / "empty.spv"), groups=1)
        assert ctx.asarray(x).tolist() == [1, 2]  # is copied


def test_released(ctx, stream):
    with ctx.empty(4) as x:
        assert not x.released
    for use in (
        lambda: x.numpy(),
        lambda: memoryview(x),
        lambda: stream.fill(x),
        lambda: x.event,
        lambda: x.write([1]),
        lambda: x.view("u1"),
        lambda: x.memory,
        lambda: x.state,
    ):
        with pytest.raises(bh.Closed, match="the buffer was released"):
            use()
    for name in ("numpy", "tolist", "tobytes"):
        with pytest.raises(bh.Closed, match=f"^{name}: the buffer was released"):
            getattr(x, name)()
    x.release()
    assert x.shape == (4,) and len(x) == 4


def test_without_numpy(ctx, monkeypatch):
    x = ctx.empty(2)
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ModuleNotFoundError, match=r"numpy: NumPy is needed; tolist\(\)"):
        x.numpy()
    assert x.tolist() == [0, 0]
    with pytest.raises(bh.InvalidType, match="array: NumPy is needed to convert"):
        ctx.asarray(b"12", "float32")


def test_a_copy_is_in_nobodys_way(ctx, stream):
    """Such as Out[n] of a notebook, which lives as long as its kernel."""
    x = ctx.asarray(np.float32([1, 2]))
    copy = x.numpy(copy=True)
    assert x.views == 0 and copy.flags.owndata and copy.flags.writeable
    stream.fill(x, 0).wait(BOUND)
    assert copy.tolist() == [1, 2] and x.tolist() == [0, 0]
    raw = ctx.asarray(np.ones(2, "u2")).view("bfloat16").numpy(writable=True, copy=True)
    assert raw.flags.owndata or raw.base.flags.owndata
    device = ctx.asarray(np.float32([3]), stream=stream, memory="device").numpy(copy=True)
    assert device.flags.owndata and device.tolist() == [3]
    shown = x.numpy()
    with pytest.raises(bh.ViewError, match=r"keep numpy\(copy=True\); a notebook keeps"):
        stream.fill(x, 0)
    del shown


def test_objects_can_be_referenced_weakly(ctx, stream, kernels):
    buffer = ctx.empty(1)
    module = ctx.compile(source="#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n")
    for one in (ctx, stream, kernels.empty, module, module.event, buffer):
        assert weakref.ref(one)() is one
    gone = weakref.ref(buffer)
    del buffer, one
    assert gone() is None


def test_a_buffer_is_neither_true_nor_equal_nor_a_number(ctx):
    x, y = ctx.asarray(np.float32([1])), ctx.asarray(np.float32([1]))
    with pytest.raises(bh.InvalidArgument, match="truth value of a Buffer is ambiguous"):
        bool(x)
    for number in (float, int, complex):
        with pytest.raises(bh.InvalidType, match=r"numpy\(\).item\(\)"):
            number(x)
    for equal in (
        lambda: x == y,
        lambda: x != y,
        lambda: x == 1,
        lambda: [1.0] == x,
        lambda: np.ones(1) == x,
        lambda: x in [y],
    ):
        with pytest.raises(bh.InvalidType, match="==: a Buffer has no operators"):
            equal()
    assert x == x and x in [x, y] and {x: 1, y: 2}[x] == 1
    assert not (x == None) and x != None and x is not None  # noqa: E711


def test_no_operators(ctx):
    x = ctx.empty(2)
    for wrong in (
        lambda: x + 1,
        lambda: np.ones(2) + x,
        lambda: list(x),
        lambda: x[0],
        lambda: len(ctx.empty(())),
    ):
        with pytest.raises(TypeError):
            wrong()


def test_the_host_does_not_write_under_a_view(ctx, stream):
    x = ctx.asarray(np.float32([1, 2]))
    first, second = x.numpy(), memoryview(x.view("u4"))
    with pytest.raises(bh.ViewError, match="write: .* 2 views .* delete them first"):
        x.write([3, 4])
    second.release()
    with pytest.raises(bh.ViewError, match="write: .* 1 view .* delete it first"):
        x.write(first)
    assert first.tolist() == [1, 2]
    del first
    x.write(x.numpy() + 1)
    assert x.tolist() == [2, 3]


def test_raw_floats_go_to_device_memory(ctx, stream):
    """The buffer protocol has no format for them: it shows integers."""
    bits = np.uint16([1, 0x3F80])
    host = ctx.asarray(bits.tobytes(), "raw").view("bfloat16")
    device = ctx.asarray(host, stream=stream, memory="device")
    assert device.memory == "device" and device.dtype == "bfloat16"
    assert device.tobytes() == bits.tobytes()


def test_what_the_buffer_protocol_shows(ctx):
    """(dimensions, whether there are a shape and strides), as memoryview itself answers."""

    class View(ctypes.Structure):
        _fields_ = [
            ("buf", ctypes.c_void_p),
            ("obj", ctypes.c_void_p),
            ("len", ctypes.c_ssize_t),
            ("itemsize", ctypes.c_ssize_t),
            ("readonly", ctypes.c_int),
            ("ndim", ctypes.c_int),
            ("format", ctypes.c_char_p),
            ("shape", ctypes.c_void_p),
            ("strides", ctypes.c_void_p),
            ("suboffsets", ctypes.c_void_p),
            ("internal", ctypes.c_void_p),
        ]

    def look(exporter, flags):
        view = View()
        ask(exporter, ctypes.byref(view), flags)
        try:
            return view.ndim, bool(view.shape), bool(view.strides), view.len, view.format
        finally:
            ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))

    ask = ctypes.pythonapi.PyObject_GetBuffer
    ask.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
    simple, nd, strides, format_ = 0, 8, 24, 28
    for shape in ((2, 3), (5,), ()):
        x = ctx.empty(shape)
        for flags in (simple, nd, strides, format_):
            assert look(x, flags) == look(memoryview(x), flags)
    assert x.views == 0


def test_shapes_at_the_edge(ctx):
    x = ctx.empty((1,) * 64)
    assert memoryview(x).ndim == 64 and x.tobytes() == bytes(4)
    try:
        assert x.numpy().ndim == 64
    except bh.ViewError as error:  # NumPy 1 has 32
        assert "NumPy has no arrays of 64 dimensions" in str(error)
    assert x.views == 0
    for huge in ((0, 2**62, 2**62), (2**62, 0, 2**62), (0, 2**62)):
        with pytest.raises(bh.InvalidArgument, match="shape: "):
            ctx.empty(0).view(shape=huge)
    assert ctx.empty(0).view(shape=(0, 2**40)).numpy().shape == (0, 2**40)
