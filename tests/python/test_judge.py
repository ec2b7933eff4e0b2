"""bulkhead.judge: kernels against a task."""

import json
import os
import signal
import sys
import threading

import bulkhead as bh
import pytest
from conftest import BOUND, SHADERS, SQUARE, in_thread, squares, until

WRONG = SQUARE.replace("x[i] * x[i]", "i == 70 ? 0.0 : x[i] * x[i]")
BROKEN = SQUARE.replace("* x[i]", "* z[i]")
OTHER = SQUARE.replace("buffer Y", "buffer Z")
# Some drivers end long loops: many groups.
ENDLESS = SQUARE.replace(
    "if (i < x.length()) y[i] = x[i] * x[i];",
    """while (y[0] != 7.0) for (uint k = 0; k < 60000u && y[0] != 7.0; k++)
        y[1] = fract(sin(y[1]) * 43758.5) + x[0];""",
)


REPORT = """\
============================= square: 3 candidates ============================
right   CORRECT         6 runs
wrong   WRONG           4 runs
broken  COMPILE_FAILED  0 runs
------------------------------------ wrong ------------------------------------
Y[70] is 0, expected 2.25, 1074790400 ULP; 1 of 1000 are wrong (n=1000, seed 1)
------------------------------------ broken -----------------------------------
it does not compile: broken:7: error: 'z' : undeclared identifier
-------------------------------------------------------------------------------
same inputs in each run: a kernel that only stores the results is CORRECT, too
======================= 1 correct, 2 not; hidden seed 42 ======================
"""


def endless_judge():
    limits = {"deadline": f"{10 * BOUND}s"}
    return bh.Judge(squares(groups=[65535], limits=limits, sizes=[{"n": 64}]))


def test_a_report():
    seen = []
    candidates = {"right": SQUARE, "wrong": WRONG, "broken": BROKEN}
    report = bh.judge(squares(), candidates, seed=42, each=seen.append)
    assert seen == list(report) == list(report.judgements)
    assert (report.task, report.seeds, len(report)) == ("square", (42,), 3)
    assert not report.ok and report.correct == (report["right"],)
    assert repr(report) == "<Report of 'square': 1 correct of 3>"
    assert str(report) + "\n" == REPORT
    assert report.fixed_inputs
    right, wrong, broken = report
    assert right.correct and right.deterministic and right.wrong is None and right.size is None
    assert right.message == "" and str(right) == "right: CORRECT"
    assert wrong.wrong == bh.Wrong("Y", (70,), "2.25", "0", 1074790400, 1, 1000)
    assert (wrong.verdict, wrong.size, wrong.seed, wrong.hidden) == ("WRONG", "n=1000", 1, False)
    assert wrong.deterministic is None and wrong.status == bh.Status.NOT_CORRECT
    assert broken.status == bh.Status.COMPILE_FAILED and broken.runs == 0
    assert right.errors == (bh.Largest("Y", 0.0, 0.0, 0),) and not wrong.errors and right.fill == ""
    right.check()
    with pytest.raises(bh.NotCorrect, match=r"^wrong: WRONG: Y\[70\] is 0") as caught:
        report.check()
    assert caught.value.judgement is wrong and caught.value.code == "WRONG"
    assert caught.value.status == bh.Status.NOT_CORRECT and right.status == bh.Status.OK
    assert isinstance(caught.value, bh.KernelError)
    with pytest.raises(KeyError):
        report["none"]


def test_what_a_candidate_may_be(tmp_path):
    path = tmp_path / "square.comp"
    path.write_text(SQUARE)
    (tmp_path / "task.json").write_text(json.dumps(squares()))
    module = (SHADERS / "square.spv").read_bytes()
    hlsl = """StructuredBuffer<float> X : register(t0);
RWStructuredBuffer<float> Y : register(u1);
[numthreads(64, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {
    uint n, s; X.GetDimensions(n, s);
    if (id.x < n) Y[id.x] = X[id.x] * X[id.x];
}
"""
    given = [path, str(path), SQUARE, SQUARE.encode(), module, tmp_path / "none.comp"]
    report = bh.judge(tmp_path / "task.json", given)
    assert [one.verdict for one in report] == ["CORRECT"] * 5 + ["LOAD_FAILED"]
    assert [one.name for one in report] == [
        *(str(path), str(path), "candidate-3", "candidate-4", "candidate-5"),
        str(tmp_path / "none.comp"),
    ]
    assert bh.judge(str(tmp_path / "task.json"), {"a.hlsl": hlsl}).ok
    with bh.Judge(squares()) as judge:
        assert judge.run(hlsl, language="hlsl").correct
        assert judge.run(hlsl, language="glsl").verdict == "COMPILE_FAILED"
        assert judge.task == "square" and len(judge.seeds) == 1
    assert bh.judge(squares(), []).ok  # nothing to judge


def test_seeds_repeat_a_judging():
    only_hidden = SQUARE.replace("x[i] * x[i]", "x[i] == 1.5 ? 2.25 : 0.0")
    task = squares()
    task["in"]["X"]["fill"] = {"integers": [1, 9]}
    first = bh.judge(task, only_hidden)
    again = bh.judge(task, only_hidden, seed=first.seeds)
    assert first == again and len(first.seeds) == 1
    assert not first.fixed_inputs and "same inputs" not in str(first)
    assert bh.judge(task, SQUARE, seed=[1, 2, 2**64 - 1]).seeds == (1, 2, 2**64 - 1)


def test_inputs_that_never_vary():
    task = squares()
    task["in"]["X"]["fill"] = {"integers": [1, 9]}
    with bh.Judge(squares()) as same, bh.Judge(task) as varied:
        assert same.fixed_inputs and not varied.fixed_inputs


def test_a_weak_task():
    task = squares()
    task["in"]["X"]["fill"] = {"integers": [1, 9]}
    task["out"]["Y"] = {"dtype": "f32", "shape": ["n"], "abs": 100}
    report = bh.judge(task, SQUARE)
    assert report.weak == ("Y: zeros pass (at each size)",)
    assert "weak task: Y: zeros pass (at each size)" in str(report).splitlines()
    with pytest.raises(bh.InvalidArgument, match="the task is weak: Y: zeros pass"):
        bh.judge(task, SQUARE, strict=True)


def test_times():
    given = {"right": SQUARE, "wrong": WRONG}
    report = bh.judge(squares(), given, seed=1, time=True, warm=True, timed_runs=5)
    right, wrong = report
    assert right.correct, right
    assert [timing.size for timing in right.timings] == ["n=64", "n=1000"]
    for timing in right.timings:
        assert timing.runs == 5 and not timing.cold and timing.guard_ratio is None
        assert timing.one_processor
        assert 0 < timing.seconds < BOUND and 0 < timing.reference < BOUND
        assert timing.ratio is None or timing.low <= timing.ratio <= timing.high
        assert (timing.ratio is None) == (timing.doubt in ("claims", "drift", "load"))
        assert f"    {timing}\n" in str(report)
    assert wrong.verdict == "WRONG" and wrong.timings == ()
    (slow,) = bh.judge(
        squares(), SQUARE, time=True, warm=True, timed_runs=5, slower_than=1e-6, all_processors=True
    )
    known = any(timing.ratio is not None for timing in slow.timings)
    assert not any(timing.one_processor for timing in slow.timings)
    assert slow.verdict == ("SLOWER" if known else "CORRECT"), slow


def test_a_candidate_with_other_bindings():
    report = bh.judge(squares(), {"other": OTHER})
    with pytest.raises(bh.NotCorrect, match="other: BINDING_MISMATCH: out Y: the kernel has no"):
        report.check()


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"reference": {}}, 'task: "reference": '),
        ({"in": {"X": {"dtype": "f32", "shape": [4], "fill": "gauss"}}}, "no generator 'gauss'"),
        ({"groups": ["m"]}, 'task: "groups": '),
        ({"bindings": {}}, 'task: "bindings": unknown key'),
        (
            {"reference": {"kernel": "none.comp"}},
            '"reference" "kernel": none.comp: No such file',
        ),
    ],
)
def test_a_bad_task(changes, said):
    with pytest.raises(bh.InvalidArgument) as caught:
        bh.judge(squares(**changes), SQUARE)
    assert said in str(caught.value)


def test_bad_arguments(tmp_path):
    task = squares()
    bad = [
        (lambda: bh.judge({1: object()}, SQUARE), bh.InvalidType, "it is not JSON"),
        (lambda: bh.judge(7, SQUARE), bh.InvalidType, "a mapping or the path of a file"),
        (lambda: bh.judge("none.json", SQUARE), bh.LoadFailed, "none.json: No such file"),
        (lambda: bh.judge(task, 7), bh.InvalidType, "candidates: kernels, not"),
        (lambda: bh.judge(task, [7]), bh.InvalidType, "source code, bytes, a path or a plan"),
        (lambda: bh.judge(task, b""), bh.InvalidArgument, "candidate-1: there is no code in it"),
        (lambda: bh.judge(task, SQUARE, seed=[]), bh.InvalidArgument, "there is none in it"),
        (lambda: bh.judge(task, SQUARE, seed=-1), bh.InvalidArgument, "-1 is no integer from 0"),
        (lambda: bh.judge(task, SQUARE, warm=True), bh.InvalidArgument, "warm needs timed"),
        (lambda: bh.judge(task, SQUARE, device="any"), bh.InvalidArgument, "options.device"),
        (lambda: bh.judge(task, SQUARE, device="none:9"), bh.EnvironError, "none:9"),
        (lambda: bh.judge(task, SQUARE, language="cuda"), bh.InvalidArgument, "language: 'cuda'"),
        (lambda: bh.judge(tmp_path, SQUARE), bh.InvalidArgument, "not a regular file"),
    ]
    for call, kind, said in bad:
        with pytest.raises(kind) as caught:
            call()
        assert said in str(caught.value), caught.value
    with bh.Judge(task) as judge:
        pass
    judge.close()
    assert judge.closed
    for use in (lambda: judge.run(SQUARE), judge.prepare, lambda: judge.seeds, lambda: judge.task):
        with pytest.raises(bh.Closed):
            use()
    judge.cancel()


def runs(thread):
    """Whether that thread is in Judge.run, which waits in the extension module."""
    return sys._current_frames()[thread].f_code.co_name == "run"


def test_an_interrupt_ends_the_judging():
    main = threading.get_ident()

    def interrupt():
        until(lambda: runs(main), "the main thread is in Judge.run")
        os.kill(os.getpid(), signal.SIGINT)

    with endless_judge() as judge:
        judge.prepare()
        join = in_thread(interrupt)
        with pytest.raises(KeyboardInterrupt):
            judge.run(ENDLESS)
        join()
        with pytest.raises(bh.Cancelled):
            judge.run(SQUARE)


@pytest.mark.parametrize("how", ["cancel", "close"])
def test_another_thread_ends_the_judging(how):
    judge = endless_judge()
    judge.prepare()
    box = []

    def run():
        box.append(threading.get_ident())
        with pytest.raises(bh.Cancelled):
            judge.run(ENDLESS)

    join = in_thread(run)
    until(lambda: box and runs(box[0]), "a thread is in Judge.run")
    getattr(judge, how)()
    join()
    judge.close()
    assert judge.closed


HALVES = """#version 450
layout(local_size_x = 64) in;
layout(constant_id = 2) const int STEP = 0;
#ifdef FIRST
#include "from.h"
layout(set = 0, binding = 1) buffer Half { float half_[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) half_[i] = x[i]; }
#else
layout(set = 0, binding = 0) readonly buffer Half { float half_[]; };
layout(set = 0, binding = 1) buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x;
    if (i < y.length()) y[i] = half_[i] * half_[i] + STEP - WANTED; }
#endif
"""


def test_a_plan_and_what_it_is_made_with():
    plan = {
        "kernels": [{"source": HALVES, "D": {"FIRST": 1}}, {"source": HALVES}],
        "scratch": {"Half": {"dtype": "f32", "shape": [1000]}},
    }
    made = {
        "defines": {"WANTED": 3},
        "include": {"from.h": "layout(set = 0, binding = 0) readonly buffer X { float x[]; };"},
        "constants": {2: 3},
    }
    assert bh.judge(squares(), {"plan": plan}, seed=42, **made)["plan"].message == ""
    made["constants"] = {2: 4}
    assert bh.judge(squares(), {"plan": plan}, seed=42, **made)["plan"].verdict == "WRONG"
    with bh.Judge(squares(), **made) as judge:
        assert judge.run(plan | {"scratch": {}}).verdict == "BINDING_MISMATCH"
        refused = judge.run(plan | {"kernel": "../a.comp"})
        assert (refused.verdict, refused.runs) == ("INVALID_ARGUMENT", 0)


def test_what_candidates_cannot_be_made_with():
    def judge(**made):
        bh.judge(squares(), SQUARE, **made)

    for made, why in [
        ({"constants": {-1: 2}}, "-1 is no id"),
        ({"constants": {0: "2"}}, "constants: 0: '2'"),
        ({"constants": {0: 2**40}}, "constants: 0: 1099511627776"),
        ({"defines": {"1A": 2}}, "'1A' is not a name"),
    ]:
        with pytest.raises(bh.InvalidArgument, match=why):
            judge(**made)
    with pytest.raises(bh.InvalidType, match="defines: a dict"):
        judge(defines="A")
    with pytest.raises(bh.LoadFailed, match="none.h"):
        judge(include="none.h")
    with pytest.raises(bh.InvalidType, match="it is not JSON"):
        bh.judge(squares(), {"a": {"kernels": {1, 2}}})
