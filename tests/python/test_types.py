"""The package is typed: mypy checks it, and a program that uses it."""

import ast
import inspect
import os
import subprocess
import sys

import bulkhead as bh
import pytest
from bulkhead import _native
from conftest import BUILD

PROGRAM = """
import asyncio
import bulkhead as bh
import numpy as np

async def main() -> None:
    with bh.Context(spares=0) as ctx, ctx.stream(deadline="500ms") as stream:
        kernel = ctx.kernel("saxpy.spv", defines={"R": 3})
        module: bh.Module = ctx.compile(source="", tenant="a", memory="1G", deadline="5s")
        compiled: bh.Verdict = await module.event
        made: tuple[bh.Kernel, bytes, str] = module.kernel("name"), module.code, module.log
        x: bh.Buffer = ctx.asarray(np.ones(3))
        event: bh.Event = stream.launch(kernel, grid=x.size, X=x, Y=bh.out(x), a=2.0)
        verdict: bh.Verdict = await event
        print(compiled, made, verdict.code, verdict.blame == bh.Blame.CERTAIN, x.numpy().sum(), kernel.info.outputs)
        launch: bh.Launch = stream.prepare(kernel, groups=(1, 2))
        launch(a=1).wait(timeout="1s")
        for one in bh.as_completed([event], timeout=5):
            print(one.id)
        try:
            event.wait()
        except bh.Poisoned as error:
            print(error.verdict, error.executed, error.blame)
        report: bh.Report = bh.judge({"sizes": [{}]}, {"a": b"code"}, seed=[1, 2], each=print)
        with bh.Judge("task.json") as judge:
            wrong: bh.Wrong | None = judge.run("kernel.comp", language="glsl").wrong
            times: tuple[bh.Timing, ...] = report[0].timings
            print(report["a"].verdict, times, report[0].seed, [one.runs for one in report], wrong)
        found: bh.Sweep = bh.sweep(
            "k.comp", {"N": [1, 2]}, groups=lambda v: v["N"], restrict="N > 1", check={"Y": np.ones(3)}, Y=x
        )
        best: bh.Variant | None = found.best
        print(best and best.seconds, [one.values for one in found], found.left)
        results: list[object] = bh.map(kernel, [{"X": x}], Y=bh.like("X"), streams=2)
"""
MISTAKES = """
import bulkhead as bh

with bh.Context() as ctx:
    ctx.stream(deadlines=1)
    x = ctx.empty("a")
    x.numpy(writable=1.5)
    y: int = ctx.empty(1).dtype
    ctx.nothing()
"""


def test_mypy(tmp_path):
    """The package and a program have no error, and mistakes have one each."""
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--cache-dir",
            os.devnull,
            "bulkhead",
            tmp_path / "program.py",
            tmp_path / "mistakes.py",
        ],
        capture_output=True,
        text=True,
        cwd=BUILD / "python",
    )
    said = (run.stdout + run.stderr).splitlines()
    errors = [line for line in said if ": error:" in line]
    wrong = MISTAKES.splitlines().index("    ctx.stream(deadlines=1)") + 1
    assert [line.split(":")[:2] for line in errors] == [
        [str(tmp_path / "mistakes.py"), str(wrong + n)] for n in range(5)
    ], said


def stubs():
    """{class or "": {names}} that the stub declares."""
    with open(BUILD / "python" / "bulkhead" / "_native.pyi") as file:
        tree = ast.parse(file.read())
    found = {"": set()}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found[""].add(node.name)
        elif isinstance(node, ast.ClassDef):
            found[node.name.rstrip("_")] = {
                one.name for one in node.body if isinstance(one, ast.FunctionDef)
            }
    return found


def test_the_stub_is_the_module():
    declared = stubs()
    special = {"__init__", "__call__", "__buffer__"}
    for name, thing in vars(_native).items():
        if isinstance(thing, type):
            there = {one for one in vars(thing) if not one.startswith("__")}
            assert there == declared.pop(name) - special, name
        elif callable(thing):
            declared[""].remove(name)
    assert declared == {"": set()}
    assert (BUILD / "python" / "bulkhead" / "py.typed").exists()


@pytest.mark.parametrize("name", ["launch", "prepare"])
def test_signatures(name):
    parameters = inspect.signature(getattr(bh.Stream, name)).parameters
    assert list(parameters)[:4] == ["self", "kernel", "grid", "groups"]
