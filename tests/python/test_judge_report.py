"""bulkhead.judge: what becomes of its judgements. Arrays, a record, a page."""

import pickle
import threading
from xml.etree import ElementTree

import bulkhead as bh
import numpy as np
import pytest
from conftest import BOUND, SQUARE, squares
from test_judge import BROKEN, ENDLESS, WRONG


def square_of(judgement):
    """Checks that the arrays are those of one run of `squares`."""
    x, y = judgement.inputs()["X"], judgement.expected()["Y"]
    assert x.dtype == y.dtype == np.float32 and np.array_equal(x * x, y)
    assert y[judgement.wrong.index] == np.float32(judgement.wrong.expected)
    wrong = judgement.actual()["Y"]
    assert wrong[judgement.wrong.index] == np.float32(judgement.wrong.got)
    assert np.count_nonzero(wrong != y) == judgement.wrong.count
    return x


def test_the_arrays_of_a_wrong_run(tmp_path, monkeypatch):
    path = tmp_path / "wrong.comp"
    path.write_text(WRONG)
    task = squares()
    task["in"]["X"]["fill"] = {"uniform": [1, 2]}
    only_hidden = WRONG.replace("i == 70", "x[0] != 1.5 && i == 70")
    monkeypatch.chdir(tmp_path)
    report = bh.judge(task, {"right": SQUARE, "wrong": "wrong.comp", "hidden": only_hidden}, seed=42)
    task["in"]["X"]["fill"] = "bits"  # nobody looks at it any more
    monkeypatch.chdir("/")
    right, wrong, hidden = report
    assert report.failures == (wrong, hidden)
    assert len(square_of(wrong)) == len(square_of(hidden)) == 1000
    wrong.inputs()["X"][0] = 0  # each call gives new arrays
    assert wrong.inputs()["X"][0] != 0
    copied = pickle.loads(pickle.dumps(report))
    assert copied == report
    square_of(copied["wrong"])
    with pytest.raises(bh.InvalidArgument, match="judgement was ended by no run"):
        right.inputs()
    bare = bh.Judgement("name", "WRONG", bh.Status.NOT_CORRECT, "", bh.Blame.NONE, 1, *[None] * 5)
    with pytest.raises(bh.InvalidArgument, match="nobody knows any more"):
        bare.actual()


def test_the_arrays_of_an_open_judge():
    crash = squares(limits={"deadline": f"{BOUND // 60}s"}, groups=[65535], sizes=[{"n": 64}])
    with bh.Judge(squares(), seed=42) as judge, bh.Judge(crash) as other:
        wrong = judge.run(WRONG)
        square_of(wrong)
        late = other.run(ENDLESS)
        assert late.verdict == "DEADLINE"
        assert np.array_equal(late.inputs()["X"] ** 2, late.expected()["Y"])
        with pytest.raises(bh.InvalidArgument, match="actual: the candidate has not run to its end"):
            late.actual()


def test_a_candidate_that_has_changed_has_inputs_alone(tmp_path):
    path = tmp_path / "wrong.comp"
    path.write_text(WRONG)
    (wrong,) = bh.judge(squares(), path, seed=42)
    path.write_text(SQUARE)
    assert np.array_equal(wrong.inputs()["X"] ** 2, wrong.expected()["Y"])
    with pytest.raises(bh.LoadFailed, match="the code has changed since it was judged"):
        wrong.actual()


def test_workers_judge_at_the_same_time():
    """Two candidates that do not end by themselves: each is begun before the other has ended."""
    both, seen = threading.Barrier(2), []
    run = bh.Judge.run

    def meet(self, *args, **kwargs):
        both.wait(BOUND)
        return run(self, *args, **kwargs)

    given = {"a": SQUARE, "b": WRONG, "c": BROKEN, "d": SQUARE}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bh.Judge, "run", meet)
        report = bh.judge(squares(), given, seed=42, workers=2, each=seen.append)
    assert [one.name for one in report] == ["a", "b", "c", "d"]
    assert report == bh.judge(squares(), given, seed=42)
    assert sorted(one.name for one in seen) == ["a", "b", "c", "d"]
    for workers in (0, 65, "2"):
        with pytest.raises(bh.InvalidArgument, match="judge: workers: "):
            bh.judge(squares(), SQUARE, workers=workers)


def test_a_callback_that_fails_ends_all_workers():
    def fail(judgement):
        raise KeyboardInterrupt

    limits = {"deadline": f"{10 * BOUND}s"}
    task = squares(groups=[65535], limits=limits, sizes=[{"n": 64}])
    with pytest.raises(KeyboardInterrupt):
        bh.judge(task, [BROKEN, ENDLESS, ENDLESS, SQUARE], workers=2, each=fail)


def test_a_judging_goes_on(tmp_path):
    state = tmp_path / "state"
    given = {"right": SQUARE, "wrong": WRONG}
    first = bh.judge(squares(), given, state=state)
    (state / "judge.jsonl").write_bytes(
        (state / "judge.jsonl").read_bytes().replace(b'"runs":6', b'"runs":7')
    )
    again = bh.judge(squares(), {**given, "new": SQUARE}, state=state, resume=True)
    assert again.seeds == first.seeds
    assert [one.runs for one in again] == [7, 4, 6]  # the first was not judged again
    assert again["wrong"] == first["wrong"]
    assert np.array_equal(again["wrong"].inputs()["X"] ** 2, again["wrong"].expected()["Y"])
    bad = [
        ({"state": state}, "has a judging of 3 candidates: resume it, or give another folder"),
        ({"resume": True}, "resume needs state"),
        ({"state": state, "resume": True, "seed": 1}, "resume excludes seeds"),
        ({"state": tmp_path / "none", "resume": True}, "there is nothing to resume"),
    ]
    for options, said in bad:
        with pytest.raises(bh.InvalidArgument) as caught:
            bh.judge(squares(), SQUARE, **options)
        assert said in str(caught.value)
    with bh.Judge(squares(), state=state, resume=True):
        with pytest.raises(bh.SystemFailed):
            bh.Judge(squares(), state=state, resume=True)


def test_a_page(tmp_path):
    page = tmp_path / "page.html"
    report = bh.judge(squares(), {"<b>&right": SQUARE, "wrong": WRONG}, html=page, rank="error")
    text = page.read_text()
    assert "&lt;b&gt;&amp;right" in text and "<b>&right" not in text and "WRONG" in text
    page.write_text("something else")
    with pytest.raises(bh.InvalidArgument, match="the file exists and is not a page"):
        bh.judge(squares(), SQUARE, html=page)
    with bh.Judge(squares(), html=tmp_path / "other.html") as judge:
        judge.prepare()
        with pytest.raises(bh.InvalidArgument, match="rank: 'speed': it is 'time' or 'error'"):
            judge.page(report, rank="speed")
        judge.page(report)
    assert "WRONG" in (tmp_path / "other.html").read_text()
    with bh.Judge(squares()) as judge, pytest.raises(bh.InvalidArgument, match="has no html"):
        judge.page(report)


def test_a_table_for_notebooks():
    """Names come from whoever wrote the candidates."""
    name = "<script>alert('x')</script>\udcff\x1b[31m\u202e"
    task = squares(name="<i>")
    report = bh.judge(task, {name: SQUARE, "wrong": WRONG}, seed=42)
    text = report._repr_html_()
    root = ElementTree.fromstring(f"<div>{text}</div>")  # what is escaped is well-formed
    assert {element.tag for element in root.iter()} <= set("div table caption tr th td p br".split())
    rows = [[cell.text for cell in row] for row in root.iter("tr")]
    assert rows[0] == ["candidate", "verdict", "runs", "largest error", "message"]
    assert rows[1] == ["<script>alert('x')</script>??[31m?", "CORRECT", "6", "0", None]
    assert rows[2][:3] == ["wrong", "WRONG", "4"] and rows[2][4] == report["wrong"].message
    assert root.find("table/caption").text == "<i>" and "1 correct of 2" in text and "42" in text
    text.encode()


def test_errors_and_doubts_of_a_judgement():
    timing = bh.Timing("n=1", 5, 1e-6, 1e-6, None, 0, 0, 0, 0, None, None, *[True] * 4, "load")
    known = bh.Timing("n=2", 5, 1e-6, 1e-6, 1.5, 1, 2, 0, 0, None, None, *[True] * 4)
    fields = ("a", "CORRECT", bh.Status.OK, "", bh.Blame.NONE, 1, True, None, None, False, None)
    errors = (bh.Largest("Y", 0.5, 0, 0), bh.Largest("Z", 2.0, 0, 0))
    one = bh.Judgement(*fields, timings=(known, timing), errors=errors)
    assert one.max_error == 2.0 and one.doubt == "load"
    none = bh.Judgement(*fields, timings=(known,))
    assert none.max_error is None and none.doubt is None
    report = bh.Report("", (1,), (one, none))
    assert "<td>n=2: 1.500, n=1: unknown (load)</td>" in report._repr_html_()
