"""Buffers in the process's own CUDA, on the fake driver: a device's address is one of ours there."""

import ctypes
import gc
import os
import subprocess
import sys
from pathlib import Path

import bulkhead as bh
import numpy as np
import pytest
from conftest import BOUND
from test_cuda import SAXPY, ptx
from test_cuda import driver as _driver  # noqa: F401
from test_dlpack import CAPSULE_NAME, DELETER, NEW_CAPSULE, Tensor

N = 1000
FILL = "fill(.param .u64 y, .param .u32 value, .param .u32 n)"
POINTER = ctypes.pythonapi.PyCapsule_GetPointer
POINTER.restype, POINTER.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
RENAME = ctypes.pythonapi.PyCapsule_SetName
RENAME.argtypes = [ctypes.py_object, ctypes.c_char_p]


@pytest.fixture(scope="module")
def libcuda(_driver):
    """The driver in this process: the library finds what is loaded already by its name."""
    folder = Path(os.environ["LD_LIBRARY_PATH"])
    (folder / "fake_cuda.settings").write_text("FAKE_CUDA_DEVICES=2\n")
    return ctypes.CDLL(str(folder / "libcuda.so.1"))


@pytest.fixture(scope="module")
def ctx(libcuda):
    with bh.Context(spares=0, quarantine_deaths=0) as context:
        yield context


@pytest.fixture(scope="module")
def stream(ctx):
    with ctx.stream(device="cuda:0") as one:
        yield one


@pytest.fixture
def filled(ctx, stream):
    """A buffer in device memory, which is pending."""
    buffer = ctx.empty((10, 100), "u4", stream=stream, memory="device")
    stream.fill(buffer, 7)
    return buffer


class Versioned(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


class Consumer:
    """A tensor of a package that takes kDLCUDA, as PyTorch does it."""

    def __init__(self, producer, stream=1, versioned=True):
        assert producer.__dlpack_device__() == (2, 0)
        more = {"max_version": (1, 1)} if versioned else {}
        capsule = producer.__dlpack__(stream=stream, **more)
        name = CAPSULE_NAME(capsule)
        at = POINTER(capsule, name)
        RENAME(capsule, b"used_dltensor_versioned" if versioned else b"used_dltensor")
        if versioned:
            whole = Versioned.from_address(at)
            self.read_only, tensor = bool(whole.flags & 1), whole.tensor
            self.deleter = whole.deleter
        else:
            self.read_only, tensor = None, Tensor.from_address(at)
            self.deleter = tensor.deleter
        self.at, self.data, self.kind = at, tensor.data, tuple(tensor.device)
        self.shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
        self.strides = tuple(tensor.strides[i] for i in range(tensor.ndim))
        self.dtype = tensor.code, tensor.bits

    def array(self):
        words = ctypes.c_uint32 * int(np.prod(self.shape))
        return np.frombuffer(words.from_address(self.data), "u4").reshape(self.shape)

    def delete(self):
        DELETER(self.deleter)(self.at)


def test_a_tensor_of_the_buffers_own_memory(ctx, stream, filled):
    tensor = Consumer(filled)
    assert tensor.kind == (2, 0) and tensor.read_only and tensor.dtype == (1, 32)
    assert tensor.shape == (10, 100) and tensor.strides == (100, 1)
    assert (tensor.array() == 7).all() and filled.views == 1
    with open("/proc/self/maps") as maps:
        ranges = [line.split() for line in maps]
    access = [
        what
        for range_, what, *_ in ranges
        if int(range_.split("-")[0], 16) <= tensor.data < int(range_.split("-")[1], 16)
    ]
    assert access == ["r--s"]
    tensor.delete()
    assert filled.views == 0


def test_no_submission_writes_what_a_view_shows(ctx, stream, filled):
    fill = ctx.kernel(source=ptx(FILL), entry="fill", block=64)
    tensor = Consumer(filled)
    copied = ctx.empty((10, 100), "u4")
    stream.copy(filled, copied).wait(BOUND)  # reading is fine
    for write in (
        lambda: stream.fill(filled, 8),
        lambda: stream.launch(fill, grid=1, args=(filled, 8, 64)),
        lambda: filled.write(np.ones((10, 100), "u4")),
    ):
        with pytest.raises(bh.ViewError, match="would write memory that 1 view"):
            write()
    assert (tensor.array() == 7).all()
    tensor.delete()
    stream.fill(filled, 8).wait(BOUND)
    assert (filled.numpy() == 8).all()


def test_an_old_tensor_counts_as_writable(ctx, stream, filled):
    tensor = Consumer(filled, versioned=False)
    with pytest.raises(bh.ViewError, match="a view that may be written"):
        stream.copy(filled, ctx.empty((10, 100), "u4"))
    words = (ctypes.c_uint32 * N).from_address(tensor.data)
    words[N - 1] = 9
    tensor.delete()
    assert filled.numpy()[9, 99] == 9 and filled.numpy()[0, 0] == 7


def test_a_view_of_a_part(ctx, stream):
    x = ctx.empty(8, "u4", stream=stream, memory="device")
    x.write(np.arange(8, dtype="u4"))
    part = x._view(x.view("u2").view("u4")._dtype, (3,), 8)
    tensor = Consumer(part)
    assert tensor.array().tolist() == [2, 3, 4]
    tensor.delete()


def test_an_array_interface(ctx, stream, filled):
    view = filled.cuda()
    interface = view.__cuda_array_interface__
    address, read_only = interface["data"]
    assert interface["shape"] == (10, 100) and interface["typestr"] == "<u4" and read_only
    assert interface["version"] == 3 and interface["stream"] is None and view.device == 0
    assert ctypes.c_uint32.from_address(address).value == 7 and filled.views == 1
    del view
    gc.collect()
    assert filled.views == 0
    with filled.context.stream(device="cuda") as other:
        view = filled.cuda(writable=True)
        ctypes.c_uint32.from_address(view.address).value = 5
        with pytest.raises(bh.ViewError, match="a view that may be written"):
            other.copy(filled, ctx.empty((10, 100), "u4"))
        del view
        assert filled.numpy()[0, 0] == 5


def test_copies_for_the_consumer(ctx, stream, filled):
    class Copied:
        def __dlpack_device__(self):
            return filled.__dlpack_device__()

        def __dlpack__(self, **more):
            return filled.__dlpack__(copy=True, **more)

    tensor = Consumer(Copied())
    assert not tensor.read_only and filled.views == 0 and (tensor.array() == 7).all()
    stream.fill(filled, 8).wait(BOUND)
    assert (tensor.array() == 7).all()
    tensor.delete()
    capsule = filled.__dlpack__(dl_device=(1, 0), max_version=(1, 1))
    on_host = Versioned.from_address(POINTER(capsule, b"dltensor_versioned"))
    assert tuple(on_host.tensor.device) == (1, 0)
    del capsule
    with pytest.raises(bh.ViewError, match="__dlpack__: copy: "):
        filled.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(bh.ViewError, match="__dlpack__: dl_device: "):
        filled.__dlpack__(dl_device=(2, 1))


def test_streams_of_the_consumer(filled):
    for stream in (None, -1, 1, 2, 140234567890):
        Consumer(filled, stream=stream).delete()
    for stream, kind in (
        (0, bh.InvalidArgument),
        (-2, bh.InvalidArgument),
        (1.5, bh.InvalidType),
        (True, bh.InvalidType),
    ):
        with pytest.raises(kind, match="__dlpack__: stream: "):
            filled.__dlpack__(stream=stream)
    assert filled.views == 0


def test_poison_and_a_crash(ctx, stream, filled):
    crash = ctx.kernel(source=ptx("null_read(.param .u64 y)"), entry="null_read", block=1)
    other = ctx.empty(N, "u4", stream=stream, memory="device")
    tensor = Consumer(filled)
    event = stream.launch(crash, grid=1, args=(other,))
    with pytest.raises(bh.Poisoned) as raised:
        Consumer(other)
    assert raised.value.code == "DEVICE_FAULT" and other.views == 0
    with pytest.raises(bh.Poisoned):
        other.cuda()
    assert event.exception(BOUND) is not None and (tensor.array() == 7).all()
    tensor.delete()


def test_a_tensor_outlives_buffer_and_context(libcuda):
    with bh.Context(spares=0) as ctx:
        stream = ctx.stream(device="cuda")
        x = ctx.empty(N, "u4", stream=stream, memory="device")
        stream.fill(x, 3)
        tensor = Consumer(x)
        x.release()
    assert (tensor.array() == 3).all()
    tensor.delete()


def test_an_empty_buffer(ctx, stream):
    x = ctx.empty((0, 4), "f4", stream=stream, memory="device")
    tensor = Consumer(x)
    assert tensor.shape == (0, 4) and not tensor.data
    tensor.delete()


# -- in --------------------------------------------------------------------------------------------


def foreign(view, shape=(N,), strides=None, code=1, bits=32, device=(2, 0), versions=True):
    """A tensor of another package in CUDA's memory: (it, the streams it was asked for)."""
    streams = []
    tensor = Tensor()
    tensor.data, tensor.device, tensor.ndim = view.address, device, len(shape)
    tensor.code, tensor.bits, tensor.lanes = code, bits, 1
    tensor.shape = (ctypes.c_int64 * len(shape))(*shape)
    if strides:
        tensor.strides = (ctypes.c_int64 * len(strides))(*strides)

    def dlpack(self, stream=None, **more):
        if more and not versions:
            raise TypeError("max_version")
        streams.append(stream)
        return NEW_CAPSULE(ctypes.addressof(tensor), b"dltensor", None)

    made = type("Foreign", (), {"__dlpack_device__": lambda self: device, "__dlpack__": dlpack})()
    made.keep = tensor, view
    return made, streams


@pytest.fixture
def theirs(ctx, stream):
    """Memory with the numbers from 0 on, as another package would have it."""
    x = ctx.empty(N, "u4", stream=stream, memory="device")
    x.write(np.arange(N, dtype="u4"))
    return x.cuda()


@pytest.mark.parametrize("versions", (True, False))
def test_a_foreign_tensor_is_copied_on_the_device(ctx, stream, theirs, versions):
    tensor, streams = foreign(theirs, versions=versions)
    for make in (ctx.asarray, ctx.from_dlpack):
        x = make(tensor, stream=stream, memory="device")
        assert x.memory == "device" and x.dtype == "uint32"
        assert x.event is None  # no submission has written it: it did not go through the host
        assert x.numpy().tolist() == list(range(N))
    assert streams == [1, 1]  # the producer has its own work wait
    stream.fill(x, 1).wait(BOUND)
    assert ctypes.c_uint32.from_address(theirs.address + 4 * 9).value == 9


def test_foreign_tensors_elsewhere(ctx, stream, theirs):
    tensor, _ = foreign(theirs)
    x = ctx.asarray(tensor)
    assert x.memory == "host" and x.tolist() == list(range(N))
    assert ctx.asarray(tensor, "float32").tolist() == [float(n) for n in range(N)]
    raw = ctx.asarray(tensor, "raw")
    assert raw.nbytes == 4 * N
    x.write(tensor)
    for device in ("any", "cuda:1"):  # another device, as far as memory goes
        with ctx.stream(device=device) as other:
            y = ctx.asarray(tensor, stream=other, memory="device")
            assert y.numpy().tolist() == list(range(N))
            if device == "cuda:1":
                assert y.__dlpack_device__() == (2, 1) and y.cuda().device == 1
    saxpy = ctx.kernel(source=ptx(SAXPY), entry="saxpy", block=64)
    y, ones = ctx.empty(N), ctx.asarray(np.ones(N, "f4"), stream=stream, memory="device").cuda()
    numbers, _ = foreign(ones, code=2)
    stream.launch(saxpy, grid=16, args=(numbers, y, 3.0, N)).wait(BOUND)
    assert (y.numpy() == 3).all()


def test_an_array_interface_comes_in(ctx, stream, theirs):
    x = ctx.asarray(theirs, stream=stream, memory="device")
    assert x.numpy().tolist() == list(range(N))
    good = dict(theirs.__cuda_array_interface__)
    for change, kind, why in (
        ({"strides": (8,)}, bh.InvalidArgument, "array: it has gaps"),
        ({"typestr": "<c8"}, bh.InvalidType, "is no type that the library has"),
        ({"mask": theirs}, bh.InvalidArgument, "array: __cuda_array_interface__: it has a mask"),
        ({"stream": 0}, bh.InvalidArgument, "array: __cuda_array_interface__: "),
        ({"data": None}, bh.InvalidArgument, "array: __cuda_array_interface__: "),
        ({"data": (4096, False)}, bh.InvalidArgument, "array: address is no memory of a CUDA"),
    ):
        lying = type("Lying", (), {"__cuda_array_interface__": good | change})()
        for options in ({}, {"stream": stream, "memory": "device"}):
            with pytest.raises(kind, match=why):
                ctx.asarray(lying, **options)
    fine = type("Fine", (), {"__cuda_array_interface__": good | {"strides": (4,), "stream": 1}})()
    assert ctx.asarray(fine).tolist() == list(range(N))


def test_tensors_that_cannot_come_in(ctx, stream, theirs):
    for change, kind, why in (
        ({"shape": (2, 2), "strides": (1, 2)}, bh.InvalidArgument, "array: it has gaps"),
        ({"code": 5, "bits": 64}, bh.InvalidType, "DLPack's code 5"),
    ):
        with pytest.raises(kind, match=why):
            ctx.asarray(foreign(theirs, **change)[0], stream=stream, memory="device")

    class Gradient:
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, **_):
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")

    with pytest.raises(bh.ViewError, match="array: .*detach"):
        ctx.asarray(Gradient())


def test_a_released_buffer_has_no_view(ctx, stream):
    x = ctx.empty(4, stream=stream, memory="device")
    x.release()
    with pytest.raises(bh.Closed):
        x.cuda()
    with pytest.raises(bh.Closed):
        x.__dlpack__(stream=1)
    with pytest.raises(bh.ViewError, match="cuda: the buffer is in host memory"):
        ctx.empty(4).cuda()


WITHOUT = """
import os, sys
import bulkhead as bh
with bh.Context(spares=0) as ctx, ctx.stream(device="cuda") as stream:
    x = ctx.empty(4, stream=stream, memory="device")
    for ask in (x.cuda, x.__dlpack__, x.__dlpack_device__):
        try:
            ask()
        except bh.Error as error:
            print(error.reason.name, str(error).split(":")[0])
"""
FORKED = """
import ctypes, os, sys
import bulkhead as bh
ctypes.CDLL(sys.argv[1] + "/libcuda.so.1")
ctx = bh.Context(spares=0)
stream = ctx.stream(device="cuda")
x = ctx.empty(4, stream=stream, memory="device")
view = x.cuda()
pid = os.fork()
if not pid:
    try:
        x.cuda()
    except bh.Forked:
        del view
        with bh.Context(spares=0) as own, own.stream(device="cuda") as stream:
            try:
                own.empty(4, stream=stream, memory="device").cuda()
            except bh.Error as error:
                print(error.reason.name, "before a fork" in str(error), flush=True)
    os._exit(0)
os.waitpid(pid, 0)
del view
ctx.close()
"""


def test_a_process_without_cuda_says_so(libcuda):
    """The workers have a driver, and the host does not find it: its loader looked before. Where there is
    a real one, that has no such GPU."""
    code = WITHOUT
    environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    folder = os.environ["LD_LIBRARY_PATH"]
    code = f"import os; os.environ['LD_LIBRARY_PATH'] = {folder!r}\n" + code
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout in ("NO_HOST_CUDA cuda\n" * 3, "GPU_HIDDEN cuda\n" * 3)


def test_a_fork_after_cuda_began(libcuda):
    found = subprocess.run(
        [sys.executable, "-c", FORKED, os.environ["LD_LIBRARY_PATH"]],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == ["NO_HOST_CUDA", "True"], found.stderr
