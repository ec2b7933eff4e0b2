"""Buffers from files."""

import json
import re
import struct

import bulkhead as bh
import numpy as np
import pytest
from conftest import BOUND


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, bytes_) in tensors.items():
        header[name] = {
            "dtype": dtype,
            "shape": shape,
            "data_offsets": [len(data), len(data) + len(bytes_)],
        }
        data += bytes_
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def test_npy(ctx, stream, kernels, tmp_path):
    array = np.arange(12, dtype="f4").reshape(3, 4)
    np.save(tmp_path / "x.npy", array)
    x = ctx.load(tmp_path / "x.npy")
    assert x.shape == (3, 4) and x.dtype == "float32"
    y = ctx.empty_like(x)
    stream.launch(kernels.square, grid=x.size, X=x, Y=y)
    np.testing.assert_array_equal(y.numpy(), array**2)
    np.testing.assert_array_equal(x.numpy(), array)
    assert x.event.result(BOUND).ready and x.progress == (48, 48)
    np.testing.assert_array_equal(ctx.load(str(tmp_path / "x.npy")).numpy(), array)
    device = ctx.load(tmp_path / "x.npy", stream=stream, memory="device")
    np.testing.assert_array_equal(device.numpy(), array)
    (tensor,) = ctx.tensors(tmp_path / "x.npy")
    assert tensor.shape == (3, 4) and tensor.dtype == "f4" and tensor.nbytes == 48


def test_safetensors(ctx, tmp_path):
    path = tmp_path / "m.safetensors"
    weights = np.arange(6, dtype="f2").reshape(2, 3)
    write_safetensors(
        path,
        {
            "w": ("F16", [2, 3], weights.tobytes()),
            "b": ("BF16", [2], b"\x80\x3f\x00\x40"),
            "?": ("F4_X", [3], b"ab"),
        },
    )
    w, b = ctx.load(path, "w"), ctx.load(path, "b")
    np.testing.assert_array_equal(w.numpy(), weights)
    assert b.dtype == "bfloat16" and b.tobytes() == b"\x80\x3f\x00\x40"
    assert [(t.name, t.dtype, t.shape, t.type) for t in ctx.tensors(path)] == [
        ("w", "float16", (2, 3), "F16"),
        ("b", "bfloat16", (2,), "BF16"),
        ("?", None, (3,), "F4_X"),
    ]
    with pytest.raises(bh.LoadFailed, match="it has no tensor 'v'"):
        ctx.load(path, "v")
    with pytest.raises(bh.InvalidArgument, match="load: tensor: "):
        ctx.load(path)


def test_fortran_order(ctx, stream, tmp_path):
    for shape in ((1, 6), (6, 1), (1, 6, 1), (2, 3), (3, 1, 2), (300, 7, 500), (0, 4)):
        array = np.asfortranarray(np.arange(np.prod(shape), dtype="f4").reshape(shape))
        with open(tmp_path / "x.npy", "wb") as file:
            form = {"descr": "f4", "fortran_order": True, "shape": shape}
            np.lib.format.write_array_header_1_0(file, form)
            file.write(array.tobytes("F"))
        assert ctx.tensors(tmp_path / "x.npy")[0].shape == shape
        np.testing.assert_array_equal(ctx.load(tmp_path / "x.npy").numpy(), array)
        device = ctx.load(tmp_path / "x.npy", stream=stream, memory="device")
        np.testing.assert_array_equal(device.numpy(), array)
    np.save(tmp_path / "y.npy", array.T)
    np.testing.assert_array_equal(ctx.load(tmp_path / "y.npy").numpy(), array.T)


def test_unaligned_tensors(ctx, stream, tmp_path):
    path = tmp_path / "quant.safetensors"
    scale, weight = np.arange(8, dtype="f2"), np.arange(16, dtype="f4").reshape(4, 4)
    tensors = {
        "is_quantized": ("BOOL", [1], b"\1"),
        "scale": ("F16", [8], scale.tobytes()),
        "weight": ("F32", [4, 4], weight.tobytes()),
        "exponents": ("F8_E8M0", [3], b"\x7e\x7f\x80"),
    }
    write_safetensors(path, tensors)
    np.testing.assert_array_equal(ctx.load(path, "scale").numpy(), scale)
    for place in ({}, {"stream": stream, "memory": "device"}):
        np.testing.assert_array_equal(ctx.load(path, "weight", **place).numpy(), weight)
    exponents = ctx.load(path, "exponents")
    assert exponents.dtype == "float8_e8m0fnu" and exponents.tobytes() == b"\x7e\x7f\x80"


def test_raw(ctx, tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(np.arange(10, dtype="i4").tobytes())
    assert ctx.load(path).dtype == "raw" and ctx.load(path).shape == (40,)
    assert ctx.load(path, dtype="i4").tolist() == list(range(10))
    assert ctx.load(path, dtype="i4", shape=(2, 2), offset=8, size=16).tolist() == [[2, 3], [4, 5]]
    with pytest.raises(bh.InvalidArgument, match="view: shape"):
        ctx.load(path, dtype="i4", shape=3)
    with pytest.raises(bh.InvalidArgument, match="the file's header says them"):
        ctx.load(tmp_path / "x.npy", dtype="i4")
    with pytest.raises(bh.InputError):
        ctx.load(path, offset=100)


def test_arrays_of_a_npz_are_loaded_by_name(ctx, tmp_path):
    path, small = tmp_path / "a.npz", np.arange(12, dtype="f4").reshape(3, 4)
    large = np.arange(3 << 20, dtype="i4")
    named = {"w": small, "F": np.asfortranarray(small), "large": large, "empty": small[:0]}
    np.savez(path, **named, objects=np.array([{}], dtype=object))
    for name, array in named.items():
        np.testing.assert_array_equal(ctx.load(path, name).numpy(), array, strict=True)
    listed = {one.name: (one.dtype, one.shape) for one in ctx.tensors(path)}
    assert listed["F"] == ("float32", (3, 4)) and listed["objects"] == (None, ())
    assert list(listed) == [*named, "objects"]
    for name, why in (("none", "no such array"), ("objects", "'|O'")):
        with pytest.raises(bh.LoadFailed, match=re.escape(why)):
            ctx.load(path, name)
    with pytest.raises(bh.InvalidArgument, match=r"tensor: .* has several"):
        ctx.load(path)
    assert ctx.load(path, dtype="raw").tobytes()[:2] == b"PK"
    np.savez_compressed(path, w=small)
    with pytest.raises(bh.LoadFailed, match="numpy.savez writes it uncompressed"):
        ctx.load(path, "w")
    assert [(one.name, one.type) for one in ctx.tensors(path)] == [("w", "compressed")]


def test_an_archive_is_not_taken_for_its_bytes(ctx, tmp_path):
    for name in ("m.pt", "m.pth", "m.h5", "m.hdf5"):
        with pytest.raises(bh.InvalidArgument, match=r"has arrays of its own: asarray\("):
            ctx.load(tmp_path / name)


def test_bad_files(ctx, stream, tmp_path):
    with pytest.raises(bh.LoadFailed) as raised:
        ctx.load(tmp_path / "none.npy")
    assert raised.value.errno == 2 and "none.npy" in str(raised.value)
    (tmp_path / "bad.npy").write_bytes(b"no array")
    with pytest.raises(bh.LoadFailed, match="bad.npy"):
        ctx.load(tmp_path / "bad.npy")
    with pytest.raises(bh.LoadFailed):
        ctx.tensors(tmp_path / "bad.npy")
    np.save(tmp_path / "big.npy", np.ones(3, ">f4"))
    with pytest.raises(bh.LoadFailed):
        ctx.load(tmp_path / "big.npy")
    with pytest.raises(bh.LoadFailed):
        ctx.load("/proc/self/maps")
    with pytest.raises(bh.InvalidArgument, match="NUL"):
        ctx.load("a\0b")
    with pytest.raises(TypeError):
        ctx.load(None)


def test_a_load_that_fails_poisons_what_reads_it(ctx, stream, held, tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(bytes(1 << 20))
    # The load is lazy: what it needs may go wrong after the call.
    x = ctx.load(path, dtype="u4")
    x.event.cancel()
    error = x.event.exception(BOUND)
    if error is not None:  # it had not ended
        with pytest.raises(bh.Cancelled) as raised:
            x.numpy()
        assert raised.value.verdict == error.verdict
        with pytest.raises(bh.VictimError):
            stream.eval("x + 1", x=x).numpy()


def test_more_tensors_than_fit_at_first(ctx, tmp_path):
    path = tmp_path / "many.safetensors"
    write_safetensors(path, {f"t{n}": ("U8", [1], bytes([n % 256])) for n in range(5000)})
    found = ctx.tensors(path)
    assert [one.name for one in found] == [f"t{n}" for n in range(5000)]
    assert ctx.load(path, "t4999").tolist() == [4999 % 256]
