"""Modules: sources that are compiled while the program goes on."""

import asyncio
import contextlib
import gc
import os
import pickle
import signal

import bulkhead as bh
import pytest
from conftest import BOUND, descriptors, until

FAULTY_WORKER = os.environ["BULKHEAD_TEST_FAULTY_WORKER"]
FILL = """#version 450
layout(local_size_x = 64) in;
layout(constant_id = 3) const uint VALUE = 7;
layout(set = 0, binding = 0) buffer Data { uint data[]; };
void main() { data[gl_GlobalInvocationID.x] = VALUE; }
"""
TYPOS = "#version 450\nvoid main() { factr; other; }\n"


@contextlib.contextmanager
def faulty(fault):
    """A context whose first compiler does `fault` before it compiles."""
    os.environ["BULKHEAD_TEST_FAULTS"] = f"1:compile:1={fault}"
    try:
        with bh.Context(spares=0, worker_path=FAULTY_WORKER) as context:
            yield context
    finally:
        del os.environ["BULKHEAD_TEST_FAULTS"]


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def descendants(pid="self"):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                for child in file.read().split():
                    yield child
                    yield from descendants(child)


def await_stopped():
    """Wait until a compiler is stopped; return its pid."""
    found = []

    def look():
        found[:] = [int(pid) for pid in descendants() if state_of(pid) == "T"]
        return found

    until(look, "no compiler is stopped")
    return found[0]


def run(ctx, kernel):
    with ctx.stream() as stream:
        data = ctx.empty(64, "uint32")
        stream.launch(kernel, grid=64, Data=data).wait(BOUND)
        return data.tolist()


def test_a_module_makes_kernels(ctx, tmp_path):
    (tmp_path / "fill.comp").write_text(FILL)
    module = ctx.compile(tmp_path / "fill.comp", tenant="a", memory="128M", deadline=BOUND)
    assert isinstance(module, bh.Module) and module.context is ctx
    verdict = module.event.result(BOUND)
    assert verdict.ready and verdict.kernel == "fill.comp"
    assert module.log == "" and repr(module) == "<bulkhead.Module, READY>"
    kernel = module.kernel()
    assert kernel.name == "fill.comp" and module.kernel("other").name == "other"
    assert module.kernel(trusted=True).hash != kernel.hash
    assert run(ctx, kernel) == [7] * 64
    assert run(ctx, module.kernel(constants={"VALUE": 9})) == [9] * 64
    assert module.code == kernel.code and module.code[:4] == bytes.fromhex("03022307")
    assert ctx.kernel(module.code).hash == kernel.hash == ctx.kernel(source=FILL).hash


def test_a_source_with_errors(ctx):
    module = ctx.compile(source=TYPOS, name="typo.comp")
    with pytest.raises(bh.CompileFailed) as raised:
        module.event.wait(BOUND)
    error = raised.value
    assert isinstance(error, bh.Poisoned) and error.verdict.executed == "unknown"
    log = (
        "typo.comp:2: error: 'factr' : undeclared identifier\n"
        "typo.comp:2: error: 'other' : undeclared identifier\n"
    )
    assert error.log == module.log == log
    assert pickle.loads(pickle.dumps(error)).log == log
    for use in (module.kernel, lambda: module.code):
        with pytest.raises(bh.CompileFailed, match="^kernel: typo.comp:2: error: 'factr'") as raised:
            use()
        assert raised.value.log == log and not isinstance(raised.value, bh.Poisoned)
    assert repr(module) == "<bulkhead.Module, POISONED>"
    again = ctx.compile(source=TYPOS, name="typo.comp")
    assert again.event == module.event and again.event.exception(BOUND).log == log


def test_warnings_of_a_source_that_compiles(ctx):
    source = FILL.replace("450\n", "450\n#extension GL_none : enable\n")
    module = ctx.compile(source=source, name="odd.comp")
    module.event.wait(BOUND)
    assert module.log.startswith("odd.comp:2: warning: ") and module.kernel().name == "odd.comp"


def test_equal_sources_compile_once_for_a_tenant(ctx):
    module = ctx.compile(source=FILL, tenant="once")
    module.event.wait(BOUND)
    assert module.kernel()
    again = ctx.compile(source=FILL, tenant="once")
    assert again.event.done() and again.event == module.event and again.code == module.code
    for other in ({"tenant": "twice"}, {"defines": {"A": 1}}, {"memory": "512M"}):
        assert ctx.compile(source=FILL, **{"tenant": "once"} | other).event != module.event


def test_a_pending_compile_can_be_cancelled():
    with faulty("stop") as ctx:
        module = ctx.compile(source=FILL, name="fill.comp")
        await_stopped()
        assert module.event.state == "PENDING" and module.log == ""
        for use in (module.kernel, lambda: module.code):
            with pytest.raises(bh.Error, match="^kernel: fill.comp is being compiled") as raised:
                use()
            assert raised.value.code == "PENDING"
        with pytest.raises(bh.Timeout):
            module.event.wait(0)
        module.event.cancel()
        with pytest.raises(bh.Cancelled):
            module.event.wait(BOUND)
        with pytest.raises(bh.Cancelled):
            module.kernel()
        assert run(ctx, ctx.kernel(source=FILL)) == [7] * 64


def test_a_compile_that_passes_its_deadline():
    with faulty("stop") as ctx:
        module = ctx.compile(source=FILL, deadline="300ms")
        with pytest.raises(bh.Poisoned) as raised:
            module.event.wait(BOUND)
        assert raised.value.code == "DEADLINE" and raised.value.verdict.limit == 300_000_000
        assert ctx.quarantined() == []


def test_a_source_that_crashes_its_compiler_is_remembered():
    with faulty("segv") as ctx:
        module = ctx.compile(source=FILL, name="fill.comp", tenant="mallory")
        with pytest.raises(bh.WorkerDied) as raised:
            module.event.wait(BOUND)
        assert raised.value.verdict.signal == signal.SIGSEGV and raised.value.blame == "certain"
        with pytest.raises(bh.CompileFailed, match="fill.comp: .*crashed") as failed:
            module.kernel()
        assert module.log == failed.value.log == ""
        (held,) = ctx.quarantined()
        assert (held.tenant, held.kernel) == ("mallory", "fill.comp")
        assert held.cause.name == "WORKER_SIGNAL" and held.status.name == "COMPILE_FAILED"
        again = ctx.compile(source=FILL, name="fill.comp", tenant="mallory")
        error = again.event.exception(BOUND)
        assert isinstance(error, bh.CompileFailed) and error.executed == "no"
        assert error.verdict.origin == held.origin and error.log == ""
        ctx.compile(source=FILL, name="fill.comp", tenant="bob").event.wait(BOUND)
        ctx.quarantine_release("mallory")
        ctx.compile(source=FILL, name="fill.comp", tenant="mallory").event.wait(BOUND)


def test_a_module_that_is_dropped_is_compiled_all_the_same():
    with faulty("stop") as ctx:
        event = ctx.compile(source=FILL).event
        gc.collect()
        pid = await_stopped()
        assert event.state == "PENDING"
        os.kill(pid, signal.SIGCONT)
        event.wait(BOUND)


def test_a_module_that_is_dropped_keeps_no_descriptor(ctx):
    """Each compile has an answer in shared memory, until its module is looked at or dropped."""
    before = len(descriptors())
    for number in range(8):
        ctx.compile(source=FILL, defines={"N": number}).event.wait(BOUND)
    gc.collect()
    until(lambda: len(descriptors()) < before + 5, "descriptors are left")


def test_a_compile_that_nobody_holds_ends_with_its_context():
    with faulty("stop") as ctx:
        ctx.compile(source=TYPOS)
        gc.collect()
        pid = await_stopped()
        began = ctx.compile(source=FILL)
        began.event.wait(BOUND)
        assert state_of(pid) == "T"
    assert state_of(pid) == ""


def test_a_context_that_is_closed_while_it_compiles():
    with faulty("stop") as ctx:
        module = ctx.compile(source=FILL)
        await_stopped()
    with pytest.raises(bh.Poisoned) as raised:
        module.event.wait(0)
    assert raised.value.code == "CONTEXT_CLOSED"
    for use in (
        module.kernel,
        lambda: module.code,
        lambda: module.log,
        lambda: ctx.compile(source=FILL),
    ):
        with pytest.raises(bh.Closed, match="the context was closed"):
            use()
    assert repr(module) == "<bulkhead.Module, POISONED>"
    del module, ctx
    gc.collect()


def test_many_compiles_in_asyncio(ctx):
    async def compile_(number):
        module = ctx.compile(source=FILL.replace("= 7", f"= {number}"), name=f"{number}.comp")
        await module.event
        return module.kernel()

    async def main():
        kernels = await asyncio.gather(*(compile_(number) for number in range(2)))
        with pytest.raises(bh.CompileFailed) as raised:
            await ctx.compile(source=TYPOS).event
        assert "'other' : undeclared" in raised.value.log
        return kernels

    kernels = asyncio.run(main())
    assert [run(ctx, kernel)[0] for kernel in kernels] == [0, 1]


def test_hlsl_with_an_entry_point(ctx):
    source = "RWStructuredBuffer<uint> x;" + "".join(
        f"[numthreads(64, 1, 1)] void {name}(uint3 id : SV_DispatchThreadID) {{ x[id.x] = {n}; }}\n"
        for n, name in enumerate(("zero", "one"))
    )
    module = ctx.compile(source=source, language="hlsl", entry="one", name="x.hlsl")
    module.event.wait(BOUND)
    with ctx.stream() as stream:
        data = ctx.asarray([5] * 64, "uint32")
        stream.launch(module.kernel(), grid=64, x=data).wait(BOUND)
        assert data.tolist() == [1] * 64


def test_arguments(ctx):
    for arguments, message in (
        ({}, "compile: give a path, or source="),
        ({"source": FILL, "language": "c"}, "compile: language: 'c' is none of glsl, hlsl, cuda, spirv"),
        ({"source": FILL, "tenant": "t" * 64}, "compile: tenant: it is longer than 63 bytes"),
        ({"source": FILL, "memory": 5}, "compile: memory: it is 5, less than 64 MiB"),
        ({"source": FILL, "entry": "f"}, "compile: entry: it is 'f'; GLSL's entry point is main"),
        ({"source": FILL, "deadline": 0}, "compile: deadline: 0 is not above 0"),
        ({"source": FILL, "name": "\0"}, "compile: name: the text has a NUL"),
        ({"path": FILL}, "compile: path: this is a text"),
        ({"path": b"\x03\x02\x23\x07"}, "compile: this is SPIR-V already: Context.kernel takes it"),
        ({"source": b"\0"}, "compile: the bytes are neither SPIR-V nor an image"),
    ):
        with pytest.raises(bh.InvalidArgument, match=message):
            ctx.compile(**arguments)
    with pytest.raises(bh.InvalidType, match="there is no option 'memory_limi'"):
        ctx.compile(source=FILL, memory_limi=1)
    with pytest.raises(bh.LoadFailed, match="compile: .*none.comp: No such file"):
        ctx.compile("none.comp")
    module = ctx.compile(source=FILL)
    module.event.wait(BOUND)
    with pytest.raises(bh.InvalidArgument, match=r"there is no 'V'; there is VALUE \(3\)"):
        module.kernel(constants={"V": 1})
    with pytest.raises(bh.InvalidType, match="kernel: constants: a dict"):
        module.kernel(constants=[1])
    with pytest.raises(TypeError):
        bh.Module()
