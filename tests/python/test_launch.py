"""Kernels, launches, and what they take by name."""

import datetime
import errno
import gc

import bulkhead as bh
import numpy as np
import pytest
from conftest import BOUND, SHADERS


def launch_saxpy(stream, kernels, x, y, **more):
    return stream.launch(kernels.saxpy, grid=x.size, X=x, Y=y, a=2.0, n=x.size, **more)


def test_names_come_from_the_module(ctx, stream, kernels):
    x, y = ctx.asarray(np.arange(1000, dtype="f4")), ctx.empty(1000)
    event = launch_saxpy(stream, kernels, x, y)
    event.wait(BOUND)
    assert event.done() and event.state == "READY" and event.verdict.ready
    np.testing.assert_array_equal(y.numpy(), 2 * np.arange(1000, dtype="f4"))


def test_grid_counts_invocations_and_groups_workgroups(ctx, stream, kernels):
    for how in ({"grid": 1000}, {"groups": 4}, {"grid": (1000,)}, {"groups": (4, 1, 1)}):
        x, y = ctx.asarray(np.ones(1000, "f4")), ctx.empty(1000)
        stream.launch(kernels.saxpy, X=x, Y=y, a=3, n=1000, **how).wait(BOUND)
        assert y.numpy().min() == 3
    y = ctx.empty((48, 64), "uint32")
    stream.launch(kernels.mandelbrot, grid=(64, 48), Steps=y, width=64, height=48, limit=9)
    assert y.numpy().max() == 9 and y.numpy().min() >= 1


def test_more_groups_in_a_row_than_the_device_has(ctx, stream, kernels):
    """A kernel sees the grid that it is given: what is too long is refused with what to do."""
    stream.wait_ready(BOUND)
    (device,) = (one for one in ctx.devices() if one["selector"] == stream.device)
    limit = device["max_groups"][0]
    x = ctx.empty(1)
    event = stream.launch(kernels.square, groups=limit + 1, X=x, Y=ctx.empty(1))
    error = event.exception(BOUND)
    assert error.code == "LIMIT_EXCEEDED" and error.reason == bh.Reason.WORKGROUPS
    assert (error.verdict.value, error.verdict.limit) == (limit + 1, limit)
    assert f"{limit + 1} workgroups in x, the device allows {limit} " in str(error)
    assert error.advice == error.verdict.advice == bh.Reason.WORKGROUPS.advice
    assert str(error).endswith(f"; {error.advice}") and "spread them over x, y and z" in error.advice
    # An expression's groups are the library's own, which it spreads.
    n = 64 * (limit + 1)
    assert stream.eval("x + 1", x=ctx.empty(n, "uint8")).numpy().min() == 1


def test_a_workgroup_is_rounded_up(ctx, stream):
    kernel = ctx.kernel(
        source="""
        #version 450
        layout(local_size_x = 64) in;
        layout(set = 0, binding = 0) buffer N { uint n; };
        void main() { atomicAdd(n, 1u); }"""
    )
    for grid, ran in ((1, 64), (64, 64), (65, 128)):
        n = ctx.empty(1, "uint32")
        stream.launch(kernel, grid=grid, N=n).wait(BOUND)
        assert n.tolist() == [ran]


def test_arguments_in_a_dict(ctx, stream, kernels):
    x, y = ctx.asarray(np.ones(8, "f4")), ctx.empty(8)
    stream.launch(kernels.saxpy, groups=1, args={"X": x, "Y": y, "a": 1, "n": 8}).wait(BOUND)
    assert y.tolist() == [1] * 8


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"X": None}, bh.InvalidType, "launch: X: a Buffer, not <class 'NoneType'>"),
        (
            {"Y": np.ones(4, "f4")},
            bh.InvalidType,
            "launch: Y: a Buffer, not <class 'numpy.ndarray'>, because the kernel writes it; "
            "context.asarray() makes one",
        ),
        ({"X": np.ones(4)}, bh.InvalidType, "launch: X: the array is f64, and the kernel declares"),
        ({"X": np.ones(4, "c8")}, bh.InvalidType, "launch: X: its elements have the type"),
        ({"X": [1.0]}, bh.InvalidType, "launch: X: a Buffer, not <class 'list'>; context.asarray"),
        ({"Z": 1}, bh.InvalidArgument, "the kernel has no parameter 'Z'; it has X, Y, a, n"),
        ({"x": 1}, bh.InvalidArgument, "no parameter 'x'; it has X, Y, a, n; did you mean 'X'"),
        ({"deadlin": 1}, bh.InvalidArgument, "X, Y, a, n; did you mean the option 'deadline'?"),
        ({"a": "2"}, bh.InvalidType, "launch: a: a number (f32), not <class 'str'>"),
        ({"a": 1e300}, bh.InvalidArgument, "launch: a: 1e+300 does not fit f32"),
        (
            {"a": [1, 2]},
            bh.InvalidArgument,
            "launch: a: it is f32, which is 1 number, and 2 are given",
        ),
        ({"n": 1.5}, bh.InvalidType, "launch: n: an integer (u32), not 1.5"),
        ({"n": -1}, bh.InvalidArgument, "launch: n: -1 does not fit u32"),
        ({"n": 2**32}, bh.InvalidArgument, "launch: n: 4294967296 does not fit u32"),
        ({"n": 10**400}, bh.InvalidArgument, "does not fit u32"),
        ({"grid": 0}, bh.InvalidArgument, "launch: grid: a number above 0"),
        ({"grid": -5}, bh.InvalidArgument, "launch: grid: a number above 0"),
        ({"grid": (1, 2, 3, 4)}, bh.InvalidArgument, "launch: grid: a number above 0"),
        ({"grid": 2**70}, bh.InvalidArgument, "launch: grid"),
        ({"grid": 2**60}, bh.InvalidArgument, "more than 2^32 - 1 groups"),
        ({"groups": 1}, bh.InvalidArgument, "grid and groups are both given"),
        ({"grid": None}, bh.InvalidArgument, "grid or groups is missing"),
        ({"args": 5}, bh.InvalidType, "launch: args: a dict"),
        ({"args": {7: 1}}, bh.InvalidArgument, "args: a name is a text, not 7"),
        ({"after": 5}, bh.InvalidType, "launch: after: an Event, or several, not <class 'int'>"),
        ({"after": [5]}, bh.InvalidType, "launch: after: an Event"),
        ({"deadline": 0}, bh.InvalidArgument, "launch: deadline: 0 is not above 0"),
        ({"deadline": "5"}, bh.InvalidArgument, "launch: deadline: '5' has no unit"),
        ({"deadline": "x"}, bh.InvalidArgument, "launch: deadline: 'x' is not a duration"),
        ({"deadline": []}, bh.InvalidType, "launch: deadline: a duration in seconds"),
        ({"deadline": 10**400}, bh.InvalidArgument, "launch: deadline: the number is too large"),
        ({"deadline": datetime.timedelta(0)}, bh.InvalidArgument, "launch: deadline: "),
        ({"deadline": float("nan")}, bh.InvalidArgument, "launch: deadline: it is not a number"),
    ],
)
def test_a_wrong_argument_is_named(ctx, stream, kernels, change, error, says):
    given = {"grid": 8, "X": ctx.empty(8), "Y": ctx.empty(8), "a": 1, "n": 8}
    with pytest.raises(error) as raised:
        stream.launch(kernels.saxpy, **given | change)
    assert says in str(raised.value)
    if issubclass(error, bh.Error):
        assert isinstance(raised.value, bh.CallerError)
        assert raised.value.code == "INVALID_ARGUMENT"


def test_what_is_missing_is_named(ctx, stream, kernels):
    with pytest.raises(bh.InvalidArgument, match=r"launch: 'Y' \(f32\[\]\) is missing"):
        stream.launch(kernels.saxpy, grid=8, X=ctx.empty(8), a=1, n=8)
    with pytest.raises(bh.InvalidArgument, match=r"launch: 'n' \(u32\) is missing"):
        stream.launch(kernels.saxpy, grid=8, X=ctx.empty(8), Y=ctx.empty(8), a=1)
    with pytest.raises(TypeError, match="one positional argument"):
        stream.launch(kernels.saxpy, ctx.empty(8))
    with pytest.raises(bh.InvalidType, match="kernel: a Kernel, not"):
        stream.launch("saxpy.spv", grid=1)
    y = ctx.empty(8)
    y.release()
    with pytest.raises(bh.Closed, match="launch: Y: the buffer was released") as raised:
        stream.launch(kernels.saxpy, grid=8, X=ctx.empty(8), Y=bh.out(y), a=1, n=8)
    assert raised.value.advice == "do not use it after close() or release()"


def test_a_type_that_the_kernel_does_not_declare_is_refused(ctx, stream, kernels):
    given = {"grid": 8, "Y": ctx.empty(8), "a": 1, "n": 8}
    x = ctx.empty(8, "float64")
    with pytest.raises(bh.InvalidType, match=r"launch: X: the array is f64, .* declares f32\[\]"):
        stream.launch(kernels.saxpy, X=x, **given)
    stream.launch(kernels.saxpy, X=x.view("float32"), **given).wait(BOUND)
    stream.launch(kernels.saxpy, X=x.view("raw"), **given).wait(BOUND)


def test_push_constants_of_all_shapes(ctx, stream):
    kernel = ctx.kernel(
        source="""
        #version 450
        layout(local_size_x = 1) in;
        struct Light { vec3 at; float power; };
        layout(push_constant) uniform Push {
            vec2 v; int i; bool b; mat2 m; float list[3]; Light light;
        };
        layout(set = 0, binding = 0) buffer Out { float o[]; };
        void main() {
            o[0] = v.x; o[1] = v.y; o[2] = i; o[3] = b ? 1 : 0;
            o[4] = m[0][0]; o[5] = m[0][1]; o[6] = m[1][0]; o[7] = m[1][1];
            for (int k = 0; k < 3; k++) o[8 + k] = list[k];
            o[11] = light.at.z; o[12] = light.power;
        }"""
    )
    out = ctx.empty(13)
    given = {"v": (1, 2), "i": -3, "b": True, "m": [[4, 5], [6, 7]], "list": np.float32([8, 9, 10])}
    nested = {"light.at": [0, 0, 11], "light.power": np.float64(12)}
    stream.launch(kernel, groups=1, Out=out, args=nested, **given).wait(BOUND)
    assert out.tolist() == [1, 2, -3, 1, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    stream.launch(kernel, groups=1, Out=out, args=nested, **given | {"m": [4, 5, 6, 7]}).wait(BOUND)
    with pytest.raises(bh.InvalidArgument, match="m: it is f32x2x2, which is 4 numbers, and 3 are"):
        stream.launch(kernel, groups=1, Out=out, args=nested, **given | {"m": [4, 5, 6]})
    with pytest.raises(bh.InvalidArgument, match="which is 3 numbers, and"):
        stream.launch(kernel, groups=1, Out=out, args=nested, **given | {"list": np.ones(100000)})


def test_arrays_that_a_kernel_only_reads(ctx, stream, kernels):
    """As eval and map take them: copied once, unless they show a buffer."""
    y, source = ctx.empty(4), ctx.asarray(np.arange(4, dtype="f4"))
    for x in (
        np.arange(4, dtype="f4"),
        np.arange(8, dtype="f4")[::2] / 2,
        memoryview(np.arange(4, dtype="f4")),
        source.numpy(),
    ):
        stream.launch(kernels.square, grid=4, X=x, Y=y).wait(BOUND)
        assert y.tolist() == [0, 1, 4, 9]
    del x
    launch = stream.prepare(kernels.square, grid=4, X=np.float32([1, 2, 3, 4]), Y=y)
    gc.collect()
    launch().wait(BOUND)
    assert y.tolist() == [1, 4, 9, 16]
    launch(X=np.float32([5] * 4)).wait(BOUND)
    assert y.tolist() == [25] * 4


def test_arrays_of_buffers(ctx, stream):
    kernel = ctx.kernel(
        source="""
        #version 450
        layout(local_size_x = 2) in;
        layout(set = 0, binding = 0) readonly buffer Rows { float x[]; } rows[3];
        layout(set = 0, binding = 1) buffer Out { float y[]; };
        void main() {
            uint row = gl_WorkGroupID.x % 3, k = gl_LocalInvocationID.x;
            y[gl_GlobalInvocationID.x] = rows[row].x[k];
        }
        """
    )
    rows = [ctx.asarray(np.float32([10 * i, 10 * i + 1])) for i in range(3)]
    y = ctx.empty(6)
    for given in (rows, [rows[0], *(row.numpy(copy=True) for row in rows[1:])]):
        y.write(np.zeros(6, "f4"))
        stream.launch(kernel, groups=3, rows=given, Out=y).wait(BOUND)
        assert y.tolist() == [0, 1, 10, 11, 20, 21]
    with pytest.raises(bh.InvalidType, match="rows: a list of 3 buffers"):
        stream.launch(kernel, groups=3, rows=rows[:2], Out=y)
    with pytest.raises(bh.InvalidType, match="rows: a list of 3 buffers"):
        stream.launch(kernel, groups=3, rows=rows[0], Out=y)
    with pytest.raises(bh.InvalidType, match="rows: a Buffer, not"):
        stream.launch(kernel, groups=3, rows=[*rows[:2], 1], Out=y)


def test_a_module_without_names_has_numbers(ctx, stream):
    # saxpy.spv without its debug names (OpName 5, OpMemberName 6).
    words = np.fromfile(SHADERS / "saxpy.spv", "u4")
    kept, at = [words[:5]], 5
    while at < len(words):
        length, code = words[at] >> 16, words[at] & 0xFFFF
        if code not in (5, 6):
            kept.append(words[at : at + length])
        at += length
    kernel = ctx.kernel(np.concatenate(kept).tobytes())
    assert [one.name for one in kernel.info.parameters] == ["0.0", "0.1", "push[0]", "push[4]"]
    y = ctx.empty(4)
    args = {"0.0": ctx.asarray(np.ones(4, "f4")), "0.1": y, "push[0]": 5, "push[4]": 4}
    stream.launch(kernel, grid=4, args=args).wait(BOUND)
    assert y.tolist() == [5] * 4


def test_prepared_once(ctx, stream, kernels):
    x, y, z = ctx.asarray(np.ones(8, "f4")), ctx.empty(8), ctx.empty(8)
    launch = stream.prepare(kernels.saxpy, grid=8, X=x, Y=y, a=1, n=8)
    assert "saxpy" in repr(launch) and isinstance(launch, bh.Launch)
    for _ in range(3):
        launch().wait(BOUND)
    assert y.tolist() == [3] * 8
    launch(a=10, Y=z).wait(BOUND)
    assert z.tolist() == [10] * 8 and y.tolist() == [3] * 8
    launch().wait(BOUND)
    assert z.tolist() == [20] * 8
    launch(grid=1, n=1).wait(BOUND)
    assert z.tolist() == [30] + [20] * 7
    with pytest.raises(bh.InvalidArgument, match="no parameter 'b'"):
        launch(b=1)
    with pytest.raises(TypeError, match="by name"):
        launch(1)
    with pytest.raises(bh.InvalidArgument, match="'n'"):
        stream.prepare(kernels.saxpy, grid=8, X=x, Y=y, a=1)


def test_several_commands_are_one_submission(ctx, stream, kernels):
    x, y, z = ctx.asarray(np.ones(8, "f4")), ctx.empty(8), ctx.empty(8)
    launch = stream.prepare(kernels.saxpy, grid=8, X=x, Y=y, a=1, n=8)
    stream.submit([bh.fill(y, 0), launch, launch, bh.copy(y, z)]).wait(BOUND)
    assert y.tolist() == z.tolist() == [2] * 8
    stream.fill(y, np.float32(1.5).view("u4").item()).wait(BOUND)
    assert y.tolist() == [1.5] * 8
    stream.copy(y, z).wait(BOUND)
    assert z.tolist() == [1.5] * 8
    stream.join([stream.fill(y, 0)]).wait(BOUND)
    with pytest.raises(bh.InvalidType, match="command 0: a Launch, copy"):
        stream.submit([1])
    with pytest.raises(bh.InvalidArgument, match="the source has 32 bytes, and the destination 4"):
        stream.copy(y, ctx.empty(1))
    view = y.numpy()
    for wrong, error, says in (
        (lambda: stream.fill(y), bh.ViewError, "^fill: buffer: the submission would write"),
        (lambda: stream.copy(z, y), bh.ViewError, "^copy: destination: the submission would"),
        (lambda: stream.fill(view), bh.InvalidType, "^fill: buffer: a Buffer, not"),
        (lambda: stream.copy(view, y), bh.InvalidType, "^copy: source: a Buffer, not"),
        (lambda: bh.copy(y, 1), bh.InvalidType, "^copy: destination: a Buffer, not"),
    ):
        with pytest.raises(error, match=says):
            wrong()
    del view
    with bh.Context(spares=0) as other:
        done = other.stream().fill(other.empty(1))
        for wrong, says in (
            (lambda: stream.join([done]), r"^join: events\[0\] belongs to another context"),
            (lambda: stream.fill(y, after=done), r"^fill: after\[0\] belongs to another"),
            (lambda: launch(after=done), r"^launch: after\[0\] belongs to another context"),
        ):
            with pytest.raises(bh.InvalidArgument, match=says):
                wrong()
    launch(after=None)
    with pytest.raises(bh.InvalidArgument, match="no multiple of 4"):
        stream.fill(ctx.empty(3, "uint8"), 0)
    with pytest.raises(bh.InvalidArgument, match="more than 32 bits"):
        stream.fill(y, 2**32)


def test_order_by_events(ctx, stream, held):
    event, _ = held
    other = ctx.empty(4)
    waits = stream.fill(other, 1, after=event)
    assert not waits.done()
    event.cancel()
    with pytest.raises(bh.Cancelled):
        event.wait(BOUND)
    with pytest.raises(bh.VictimError) as raised:
        waits.wait(BOUND)
    assert raised.value.verdict.hops == 1 and raised.value.verdict.origin == event.id
    assert raised.value.executed == bh.Executed.NO


def test_compiled_from_source(ctx, stream, tmp_path):
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "scaled.glsl").write_text("float scaled(float x) { return FACTOR * x; }\n")
    source = """#version 450
        #extension GL_GOOGLE_include_directive : require
        #include "scaled.glsl"
        layout(local_size_x = 64) in;
        layout(constant_id = 3) const int ADD = 0;
        layout(set = 0, binding = 0) buffer Data { float data[]; };
        void main() {
            uint i = gl_GlobalInvocationID.x;
            if (i < data.length()) data[i] = scaled(data[i]) + ADD;
        }"""
    (tmp_path / "scale.comp").write_text(source)
    x = ctx.asarray(np.float32([1, 2]))
    for include in (
        tmp_path / "inc",
        [tmp_path / "inc" / "scaled.glsl"],
        {"scaled.glsl": "float scaled(float x) { return FACTOR * x; }\n"},
    ):
        kernel = ctx.kernel(tmp_path / "scale.comp", defines={"FACTOR": 2}, include=include)
        assert kernel.name == "scale.comp"
        x.write([1, 2])
        stream.launch(kernel, grid=2, Data=x).wait(BOUND)
        assert x.tolist() == [2, 4]
    for constants in ({"ADD": 10}, {3: 10}):
        kernel = ctx.kernel(
            source=source, defines={"FACTOR": 1}, include=include, constants=constants
        )
        x.write([1, 2])
        stream.launch(kernel, grid=2, Data=x).wait(BOUND)
        assert x.tolist() == [11, 12]
    with pytest.raises(bh.InvalidArgument, match=r"there is no 'SUB'; there is ADD \(3\)"):
        ctx.kernel(source=source, defines={"FACTOR": 1}, include=include, constants={"SUB": 1})
    with pytest.raises(bh.InvalidArgument, match="ADD: 1.5 is no i32"):
        ctx.kernel(source=source, defines={"FACTOR": 1}, include=include, constants={"ADD": 1.5})


def test_hlsl(ctx, stream, tmp_path):
    (tmp_path / "add.hlsl").write_text(
        """
        StructuredBuffer<float> x : register(t0);
        RWStructuredBuffer<float> y : register(u1);
        [[vk::push_constant]] cbuffer Push { float amount; };
        [numthreads(64, 1, 1)]
        void add(uint3 id : SV_DispatchThreadID) { y[id.x] = x[id.x] + amount; }"""
    )
    kernel = ctx.kernel(tmp_path / "add.hlsl")
    x, y = ctx.asarray(np.arange(64, dtype="f4")), ctx.empty(64)
    stream.launch(kernel, grid=64, x=x, y=y, amount=5).wait(BOUND)
    np.testing.assert_array_equal(y.numpy(), np.arange(64) + 5)


def test_the_module_of_a_source(ctx):
    source = "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n"
    kernel = ctx.kernel(source=source, tenant="a", memory="128M")
    assert kernel.code[:4] == bytes.fromhex("03022307")
    assert ctx.kernel(kernel.code).hash == kernel.hash
    with pytest.raises(bh.InvalidArgument, match="kernel: tenant: it is longer than 63 bytes"):
        ctx.kernel(source=source, tenant="x" * 64)
    with pytest.raises(bh.InvalidArgument, match="kernel: memory: it is 5, less than 64 MiB"):
        ctx.kernel(source=source, memory=5)
    kernel.release()
    with pytest.raises(bh.Closed, match="the kernel was released"):
        _ = kernel.code


def test_a_source_that_does_not_compile(ctx, tmp_path):
    with pytest.raises(bh.CompileFailed) as raised:
        ctx.kernel(source="#version 450\nvoid main() { factr; }\n", name="typo.comp")
    assert "typo.comp:2: error: 'factr' : undeclared identifier" in raised.value.log
    assert isinstance(raised.value, bh.InputError) and isinstance(raised.value, bh.KernelError)
    assert not isinstance(raised.value, bh.Poisoned)
    with pytest.raises(bh.InvalidArgument, match="it is Metal: port it"):
        ctx.kernel(tmp_path / "saxpy.metal")
    for missing in ({"path": tmp_path / "missing.comp"}, {"source": "", "include": ["missing.h"]}):
        with pytest.raises(bh.LoadFailed, match=r"kernel: .*missing.*: No such file") as raised:
            ctx.kernel(**missing)
        assert raised.value.errno == errno.ENOENT
    with pytest.raises(bh.InvalidArgument, match="give a path, or source="):
        ctx.kernel()
    with pytest.raises(bh.InvalidArgument, match="'opencl' is none of glsl, hlsl, cuda, spirv"):
        ctx.kernel(source="", language="opencl")
    with pytest.raises(bh.InvalidArgument, match="a SPIR-V module is compiled already"):
        ctx.kernel(SHADERS / "saxpy.spv", defines={"A": 1})
    with pytest.raises(bh.InvalidArgument, match="NUL"):
        ctx.kernel(source="void main() {}", name="a\0b")
    with pytest.raises(bh.InvalidType):
        ctx.kernel(5)


def test_a_module_that_is_not_valid(ctx, stream):
    kernel = ctx.kernel(b"\x03\x02\x23\x07" + bytes(16))
    with pytest.raises(bh.InputError) as raised:
        stream.launch(kernel, grid=1)
    assert raised.value.code == "INVALID_KERNEL"
    with pytest.raises(bh.Poisoned) as raised:
        kernel.prepare(stream).wait(BOUND)
    assert raised.value.code == "INVALID_KERNEL" and isinstance(raised.value, bh.InputError)


def test_equal_kernels_have_one_hash(ctx, kernels):
    again = ctx.kernel(SHADERS / "saxpy.spv", name="other")
    assert again.hash == kernels.saxpy.hash and len(again.hash) == 32
    assert again.name == "other" and kernels.saxpy.name == "saxpy"
    assert "other" in repr(again)
    with again:
        assert not again.released
    assert again.released and "released" in repr(again)
    with pytest.raises(bh.Closed, match="the kernel was released"):
        again.name


def test_a_refused_change_leaves_the_groups(ctx, stream, kernels):
    x, y = ctx.asarray(np.ones(8, "f4")), ctx.empty(8)
    launch = stream.prepare(kernels.saxpy, grid=8, X=x, Y=y, a=1, n=8)
    for wrong in ({"grid": -1}, {"groups": 1.5}, {"grid": 3, "groups": 1}, {"grid": 3, "a": "x"}):
        with pytest.raises(bh.CallerError):
            launch(**wrong)
    launch(grid=None).wait(BOUND)
    launch().wait(BOUND)
    assert y.tolist() == [2] * 8 and "1 x 1 x 1 groups" in repr(launch)


def test_a_launch_with_a_manner_is_no_command(ctx, stream, kernels, held):
    """A Launch in a submission runs as the submission says: its own deadline would be lost."""
    x, y = ctx.asarray(np.ones(8, "f4")), ctx.empty(8)
    for manner in ({"after": held[0]}, {"deadline": "1s"}, {"alone": True}, {"timed": True}):
        launch = stream.prepare(kernels.saxpy, grid=8, X=x, Y=y, a=1, n=8, **manner)
        with pytest.raises(bh.InvalidArgument, match="give them to submit"):
            stream.submit([launch])
        launch(after=None, deadline=None, alone=False, timed=False)
        stream.submit([launch]).wait(BOUND)
    assert y.tolist() == [8] * 8


def test_arguments_whose_code_changes_them(ctx, stream, kernels):
    """What an argument's own code does to the caller's dict or to the Launch harms nothing."""
    x, y = ctx.asarray(np.ones(8, "f4")), ctx.empty(8)
    given = {}

    class Number:
        def __init__(self, act):
            self.act = act

        def __float__(self):
            self.act()
            gc.collect()
            return 3.0

    def clear():
        given.clear()
        given.update((f"k{n}", n) for n in range(100))

    given.update(a=[Number(clear)], n=8, X=x, Y=y)
    stream.launch(kernels.saxpy, grid=8, args=given).wait(BOUND)
    assert y.tolist() == [3] * 8
    launch = stream.prepare(kernels.saxpy, grid=8, X=x, Y=y, a=1, n=8)
    launch(a=Number(lambda: launch(a=2.0, Y=ctx.empty(8)).wait(BOUND)), Y=y).wait(BOUND)
    assert y.tolist() == [6] * 8


def test_the_launch_of_a_released_kernel(ctx, stream):
    kernel = ctx.kernel(SHADERS / "square.spv")
    launch = stream.prepare(kernel, grid=4, X=ctx.empty(4), Y=ctx.empty(4))
    kernel.release()
    assert repr(launch) == "<bulkhead.Launch of a kernel that was released, 1 x 1 x 1 groups>"
    with pytest.raises(bh.Closed, match="the kernel was released"):
        launch()


def test_nothing_to_copy_or_to_fill(ctx, stream):
    for where in ({}, {"stream": stream, "memory": "device"}):
        x, y = ctx.empty(0, **where), ctx.empty((2, 0), **where)
        stream.copy(x, y).wait(BOUND)
        stream.fill(x).wait(BOUND)
        y.write(np.empty((2, 0), "f4"))
        assert y.numpy().shape == (2, 0) and y.tolist() == [[], []] and x.tobytes() == b""


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"source": "\udc80"}, bh.InvalidArgument, "kernel: source: UTF-8 has no half"),
        ({"source": "x", "name": 5}, bh.InvalidType, "kernel: name: a text, not <class 'int'>"),
        ({"source": "x", "name": "a\0b"}, bh.InvalidArgument, "kernel: name: the text has a NUL"),
        ({"source": "x", "entry": 5}, bh.InvalidType, "kernel: entry: a text"),
        ({"source": "x", "defines": ["A"]}, bh.InvalidType, "kernel: defines: a dict"),
        ({"source": "x", "defines": {1: 2}}, bh.InvalidType, "kernel: defines: a text"),
        ({"source": "x", "include": {"a": 5}}, bh.InvalidType, "kernel: include: a text"),
        ({"source": "x", "entry": "f"}, bh.InvalidArgument, "kernel: entry: it is 'f'; GLSL's"),
        ({"path": "#version 450\nvoid"}, bh.InvalidArgument, "this is a text, not a path: give"),
        ({"path": b"\0\1xyz"}, bh.InvalidArgument, "kernel: the bytes are neither SPIR-V nor"),
        ({"path": "a\0b"}, bh.InvalidArgument, "kernel: "),
        ({"path": b"\3\2\x23\7", "constants": 5}, bh.InvalidType, "kernel: constants: a dict"),
    ],
)
def test_a_wrong_argument_of_a_kernel_is_named(ctx, given, error, says):
    with pytest.raises(error) as raised:
        ctx.kernel(**given)
    assert says in str(raised.value)
