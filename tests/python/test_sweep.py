"""bulkhead.sweep: the variants of a kernel."""

import errno
import json
import signal
import threading

import bulkhead as bh
import numpy as np
import pytest
from bulkhead import sweep_cache, sweeper
from conftest import BOUND, SLOWNESS

SOURCE = """#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint KIND = 0;
layout(constant_id = 2) const uint WORK = 1;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) buffer Y { float y[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= x.length()) return;
    float sum = y[i];
    for (uint k = 0; k < WORK; k++) sum = sum * 0.5 + 1.0;
    y[i] = KIND == 0 ? x[i] * x[i] + y[i] + (sum < -1e9 ? 1.0 : 0.0) : x[i];
    // Some drivers end long loops: many groups.
    while (KIND == 2 && y[0] != -7.0) for (uint k = 0; k < 60000u && y[0] != -7.0; k++)
        y[1] = fract(sin(y[1]) * 43758.5) + x[0];
}
"""
RIGHT, WRONG, ENDLESS = 0, 1, 2
X = np.arange(256, dtype=np.float32)
Y = np.ones(256, np.float32)
EXPECTED = {"Y": X * X + 1}


@pytest.fixture(scope="module")
def code():
    with bh.Context(spares=0) as ctx:
        module = ctx.compile(source=SOURCE)
        module.event.wait(BOUND)
        return module.code


def sweep(code, space, deadline=f"{10 * SLOWNESS}s", **options):
    """A sweep in which each launch has `deadline`."""
    manner = {"deadline": deadline, "grace": f"{250 * SLOWNESS}ms"}
    given = {"grid": 256, "X": X, "Y": Y, "check": EXPECTED, "repeats": 3}
    return bh.sweep(code, space, stream_options=manner, **given | options)


def kinds(found):
    return [(one.values["KIND"], one.verdict) for one in found]


def refused(match, code, space, kind=bh.InvalidArgument, **options):
    with pytest.raises(kind, match=match):
        sweep(code, space, **options)


def test_the_fastest_right_variant_is_the_best(code):
    seen = []
    space = {"KIND": [WRONG, RIGHT], "WORK": [20000, 1]}
    found = sweep(code, space, each=seen.append)
    assert kinds(found) == [(RIGHT, "OK")] * 2 + [(WRONG, "WRONG")] * 2
    assert [one.number for one in found] == [3, 2, 0, 1]
    assert found.best is found[0] and found.best.values == {"KIND": RIGHT, "WORK": 1}
    assert sorted(seen, key=lambda one: one.number) == sorted(found, key=lambda one: one.number)
    assert repr(found) == "<Sweep: 2 right of 4>" and len(found.results) == 4
    first, last = found[0], found[-1]
    assert first.seconds == sorted(first.times)[1] and len(first.times) == 3 and first.device
    assert first.spread >= 0 and not first.error and first.ok
    assert last.seconds is last.spread is None and last.times == () and not last.ok
    assert last.error == "Y[0] is 0.0, expected 1.0; 256 of 256 are wrong"
    assert str(found).splitlines()[2] == f"KIND=1 WORK=20000: WRONG: {last.error}"
    assert str(first) == f"KIND=0 WORK=1: {first.outcome}" and " us, spread " in first.outcome


def test_nothing_is_timed_while_another_variant_hangs(code):
    seen = []
    space = {"KIND": [ENDLESS, RIGHT]}
    ms = 500 * SLOWNESS
    found = sweep(code, space, f"{ms}ms", groups=4096, grid=None, jobs=2, each=seen.append)
    assert kinds(seen) == [(ENDLESS, "DEADLINE"), (RIGHT, "OK")]
    assert kinds(found) == [(RIGHT, "OK"), (ENDLESS, "DEADLINE")]
    assert f"the deadline of {ms} ms passed" in found[1].error


def test_few_workers_wait_until_their_variants_are_timed(code, monkeypatch):
    monkeypatch.setattr(sweeper, "_KEPT", 2)
    seen, make = [], bh.Context.stream

    def stream(self, name, **more):
        seen.append(name)
        return make(self, name, **more)

    monkeypatch.setattr(bh.Context, "stream", stream)
    space = {"KIND": [RIGHT], "WORK": [1, 2, 3]}
    sweep(code, space, jobs=1, repeats=1, each=lambda one: seen.append(one.number))
    assert seen == ["sweep", "sweep-0", "sweep-1", 0, 1, "sweep-2", 2]


def test_macros_are_compiled_and_errors_are_results():
    source = SOURCE.replace("KIND ==", "TYPE ==").replace("sum * 0.5", "sum * FACTOR")
    space = {"KIND": [RIGHT, WRONG], "TYPE": [RIGHT, "none"]}
    more = {"constants": "KIND", "defines": {"FACTOR": 0.5}, "restrict": "KIND == 0"}
    found = sweep(source.replace("_id = 0) in", " = 64) in"), space, **more)
    assert [(one.values["TYPE"], one.verdict) for one in found] == [
        (RIGHT, "OK"),
        ("none", "COMPILE_FAILED"),
    ]
    assert ":12: error: 'none' : undeclared identifier" in found[1].error
    page = found._repr_html_()
    assert "<td>COMPILE_FAILED: " in page and "&#x27;none&#x27;" in page


def test_a_crash_costs_only_its_variant():
    source = """#version 450
    layout(local_size_x = 64) in;
    layout(constant_id = 1) const uint KIND = 0;
    layout(binding = 1) buffer Y { float y[]; };
    shared float scratch[64];
    void main() {
        uint i = gl_GlobalInvocationID.x, k = 0x0FFFFF00u + i * 0x1001u;
        if (KIND == 1) { scratch[k] = y[i]; y[i] = scratch[k + 64]; }
        y[i] += 1.0;
    }
    """
    more = {"constants": ["KIND"], "trusted": True, "check": None}
    manner = {"deadline": f"{10 * SLOWNESS}s"}
    found = bh.sweep(
        source, {"KIND": [1, 0]}, grid=256, Y=Y, repeats=1, stream_options=manner, **more
    )
    assert kinds(found) == [(0, "OK"), (1, "WORKER_SIGNAL")]
    assert found[0].spread == 0


def test_a_variant_may_need_fewer_arguments():
    """The optimiser removes what the kernel does not use. A number may depend on the values."""
    source = """#version 450
    layout(local_size_x = 64) in;
    layout(binding = 0) readonly buffer X { float x[]; };
    layout(binding = 1) buffer Y { float y[]; };
    layout(push_constant) uniform Push { float a; };
    void main() { y[gl_GlobalInvocationID.x] += USED ? a * x[gl_GlobalInvocationID.x] : 0.0; }
    """
    space = {"USED": ["false", "true"], "N": [2]}
    found = sweep(source, space, a=lambda values: 2 / values["N"], check={"Y": 1 + X})
    assert [one.verdict for one in found] == ["OK", "WRONG"]


def test_the_grid_may_depend_on_the_values(code):
    """Half of the grid leaves half of the elements as they were."""
    space = {"KIND": [RIGHT], "WORK": [1, 2]}
    found = sweep(code, space, grid=lambda values: 256 // values["WORK"])
    assert [one.verdict for one in found] == ["OK", "WRONG"]
    assert found[1].error == "Y[128] is 1.0, expected 16385.0; 128 of 256 are wrong"
    with pytest.raises(KeyError) as caught:
        sweep(code, space, grid=lambda values: values["none"])
    assert caught.value.__notes__ == ["sweep: with {'KIND': 0, 'WORK': 1}"]


def test_what_a_kernel_writes_is_new_for_each_run(code):
    """It adds to what is there: 1, as given, in each run of each variant."""
    sums = []
    sweep(code, {"KIND": [RIGHT], "WORK": [1, 2]}, check=lambda got: sums.append(got["Y"][3]))
    assert sums == [10.0, 10.0]
    zeros = sweep(code, {"KIND": [RIGHT]}, Y=bh.like("X"), check={"Y": X * X})
    assert zeros.best


def test_timed_runs_have_the_same_inputs(code, monkeypatch):
    filled, submit = [], bh.Stream.submit

    def record(self, commands, **more):
        filled.append(len(commands))
        return submit(self, commands, **more)

    monkeypatch.setattr(bh.Stream, "submit", record)
    sweep(code, {"KIND": [RIGHT]})
    # Before the check, before the timing, before each timed run and the one that warms up.
    assert filled == [1] * 6


def test_checks(code):
    one = {"KIND": [RIGHT]}
    near = {"Y": EXPECTED["Y"] * np.float32(1.001)}
    assert sweep(code, one, check=near)[0].verdict == "WRONG"
    assert sweep(code, one, check=near, rtol=1e-2).best
    assert sweep(code, one, check={"X": X})[0].error == "X: the kernel does not write it"

    def found(check, **got):
        return sweeper.objection(check, (1e-5, 1.5), got)

    def raises(outputs):
        assert outputs["Y"] == 5, "not five"

    for none in (None, lambda outputs: None, lambda outputs: np.True_, {}):
        assert found(none) == ""
    assert found(lambda outputs: np.False_) == "check: it returned False"
    assert found(raises, Y=5) == ""
    assert found(raises, Y=4).startswith("AssertionError: not five")
    integers = np.arange(4).reshape(2, 2)
    assert found({"Y": integers}, Y=integers + [[0, 0], [0, 1]]) == (
        "Y[1, 1] is 4, expected 3; 1 of 4 are wrong"  # the tolerance is not for integers
    )
    odd = np.float32([np.nan, np.inf, 1])
    assert found({"Y": odd}, Y=odd + 0.4) == ""
    assert found({"Y": odd}, Y=odd[::-1]).endswith("2 of 3 are wrong")
    refused(r"check: Y: its shape is \(3,\)", code, one, check={"Y": [1, 2, 3]})
    refused("check: there is no array 'Z'", code, one, check={"Z": Y})
    refused("check: a function", code, one, bh.InvalidType, check=5)


def test_restrictions(code):
    space = {"KIND": [WRONG], "WORK": [1, 2, 3, 4]}

    def left(restrict):
        return [one.values["WORK"] for one in sweep(code, space, restrict=restrict)]

    assert left("WORK * 2 < 6") == left(lambda values: values["WORK"] < 3) == [1, 2]
    assert left(["WORK > 1", lambda values: values["WORK"] % 2]) == [3]
    assert left("any(WORK == k for k in (1, 4))") == [1, 4]
    refused("no variant", code, space, restrict="WORK > 9")
    refused("restrict: 'WORK >': ", code, space, restrict="WORK >")
    refused("restrict: a function", code, space, bh.InvalidType, restrict=[5])
    with pytest.raises(NameError) as caught:
        left("NONE > 1")
    assert caught.value.__notes__ == ["sweep: with {'KIND': 1, 'WORK': 1}"]


def test_a_wrong_call_is_an_exception(code):
    one = {"KIND": [WRONG]}
    refused("sweep: no variant has a parameter 'Z'; there is X, Y$", code, one, Z=X)
    refused("sweep: Y: a Buffer, not", code, one, bh.InvalidType, Y=1, check=None)
    with pytest.raises(bh.InvalidArgument, match="^sweep: .*Y"):
        bh.sweep(code, one, grid=256, X=X)
    refused("constants: there is no 'NONE'; there is", code, {"NONE": [1]})
    refused("constants: the space has no 'NONE'", code, one, constants=["NONE"])
    refused("space: KIND: a list of values", code, {"KIND": "text"}, bh.InvalidType)
    refused("space: a dict", code, ["KIND"], bh.InvalidType)
    refused("Y: there is no array 'Z' to be like", code, one, Y=bh.like("Z"))
    refused("sweep: Y: a text is no array", code, one, bh.InvalidType, Y="text")
    for name in ("repeats", "jobs", "limit"):
        refused(f"sweep: {name}: 0 is no number above 0", code, one, **{name: 0})
    with pytest.raises(bh.InvalidArgument, match="sweep: deadline"):
        bh.sweep(code, one, deadline=-1)
    with pytest.raises(bh.LoadFailed, match="none.comp"):
        bh.sweep("none.comp", one)
    for cuda in ("__global__ void k() {}\n", b".version 8.0\n"):
        with pytest.raises(bh.InvalidArgument, match="template: it is for CUDA"):
            bh.sweep(cuda, one, language="cuda" if isinstance(cuda, str) else None)


def test_a_victim_is_tried_again_alone(code, monkeypatch):
    """One that fails for a reason that is not its own."""
    lost, submit = [], bh.Stream.submit

    def lose(self, commands, **more):
        if not lost:
            lost.append(self)
            raise bh.VictimError("lost", status=bh.Status.WORKER_LOST)
        return submit(self, commands, **more)

    monkeypatch.setattr(bh.Stream, "submit", lose)
    seen = []
    found = sweep(code, {"KIND": [RIGHT, WRONG]}, jobs=1, each=seen.append)
    assert lost[0].closed
    assert kinds(seen) == [(WRONG, "WRONG"), (RIGHT, "OK")] and found.best


def test_what_is_no_fault_of_a_variant_is_not_kept(code, monkeypatch, tmp_path):
    def lose(self, commands, **more):
        raise bh.VictimError("lost", status=bh.Status.WORKER_LOST)

    with monkeypatch.context() as patch:
        patch.setattr(bh.Stream, "submit", lose)
        found = sweep(code, {"KIND": [RIGHT]}, cache=tmp_path / "c")
        assert kinds(found) == [(RIGHT, "WORKER_LOST")] and found.best is None
    assert sweep(code, {"KIND": [RIGHT]}, cache=tmp_path / "c").best


def test_limit_and_deadline(code):
    space = {"KIND": [WRONG], "WORK": range(1, 9)}
    some = sweep(code, space, limit=3)
    assert (len(some), some.left, repr(some)) == (3, 5, "<Sweep: 0 right of 3, 5 left>")
    numbers = [one.number for one in some]
    assert numbers == sorted(numbers) != [0, 1, 2]
    assert numbers == [one.number for one in sweep(code, space, limit=3)]
    # A deadline of the sweep ends what runs.
    endless = {"KIND": [ENDLESS], "WORK": [1, 2, 3]}
    long = {"deadline": f"{60 * BOUND}s", "grace": f"{250 * SLOWNESS}ms"}
    found = bh.sweep(
        code, endless, groups=4096, X=X, Y=Y, jobs=1, deadline="100ms", stream_options=long
    )
    assert (len(found), found.left, found.best) == (0, 3, None)


def test_results_are_found_again(code, tmp_path):
    space, cache = {"KIND": [RIGHT, WRONG]}, tmp_path / "cache.json"
    first = sweep(code, space, cache=cache)
    written = cache.stat().st_mtime_ns
    again = sweep(code, space, cache=cache)
    assert [one.cached for one in [*first, *again]] == [False, False, True, True]
    assert [one.times for one in again] == [one.times for one in first]
    assert [one.outcome for one in again] == [one.outcome for one in first]
    assert cache.stat().st_mtime_ns == written  # there was nothing to write

    def cached(kinds, code=code, **more):
        found = sweep(code, {"KIND": kinds}, cache=cache, **more)
        return [one.values["KIND"] for one in found if one.cached]

    assert cached([WRONG, 9]) == [WRONG]  # resumed
    assert cached([WRONG], X=X + 1, check={"Y": Y}) == [WRONG]  # contents are no part of it
    for other in ({"grid": 128}, {"repeats": 1}, {"X": X[:128]}, {"deadline": "9s"}):
        assert cached([WRONG], **other) == [], other
    assert cached([RIGHT], check=None) == []
    assert cached([WRONG], SOURCE, constants="KIND") == []
    assert list(tmp_path.iterdir()) == [cache]


def test_results_are_kept_while_the_sweep_goes_on(code, tmp_path, monkeypatch):
    monkeypatch.setattr(sweep_cache, "_UNSAVED", 2)
    cache, kept = tmp_path / "cache.json", []

    def tell(result):
        kept.append(len(json.loads(cache.read_text())["results"]))

    sweep(code, {"KIND": [WRONG], "WORK": [1, 2, 3, 4, 5]}, cache=cache, each=tell)
    assert kept == [0, 2, 2, 4, 4]


def damaged(cache):
    """What is in a file that is no cache of a sweep: {why: bytes}."""
    whole = cache.read_text()
    assert "WRONG" in whole
    return {
        "cut": whole[: len(whole) // 2],
        "changed": whole.replace("WRONG", "RIGHT"),
        "empty": "",
        "foreign": '{"results": {}}',
        "no object": "[1]",
        "no text": b"\xff\xfe\x00",
        "deep": "[" * 100000,
    }


def test_a_damaged_or_foreign_cache_is_refused_and_kept(code, tmp_path):
    cache = tmp_path / "cache.json"
    sweep(code, {"KIND": [WRONG]}, cache=cache)
    for what, content in damaged(cache).items():
        content = content if isinstance(content, bytes) else content.encode()
        cache.write_bytes(content)
        refused(f"cache: {cache}: it is damaged", code, {"KIND": [WRONG]}, cache=cache)
        assert cache.read_bytes() == content, what
    cache.write_text(json.dumps({"sweep": 99, "sha256": "", "results": {}}))
    refused(f"cache: {cache}: another version", code, {"KIND": [WRONG]}, cache=cache)
    missing = tmp_path / "none" / "cache"
    refused(f"cache: {missing}: No such file", code, {"KIND": [0]}, bh.SystemFailed, cache=missing)
    refused(f"cache: {tmp_path}: Is a dir", code, {"KIND": [0]}, bh.LoadFailed, cache=tmp_path)


def test_a_full_disk_leaves_the_old_cache(code, tmp_path, monkeypatch):
    cache = tmp_path / "cache.json"
    sweep(code, {"KIND": [WRONG]}, cache=cache)
    before = cache.read_bytes()

    def fail(fd):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    refused(f"cache: {cache}: No space", code, {"KIND": [9]}, bh.SystemFailed, cache=cache)
    assert cache.read_bytes() == before and list(tmp_path.iterdir()) == [cache]


def test_ctrl_c_leaves_the_cache_whole(code, tmp_path):
    """In the middle of an endless kernel; what was known before is kept."""
    cache, told = tmp_path / "cache.json", threading.Event()

    def interrupt():
        told.wait(BOUND)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        sweep(
            code,
            {"KIND": [WRONG, ENDLESS]},
            60 * BOUND,
            groups=4096,
            grid=None,
            jobs=2,
            each=lambda one: told.set(),
            cache=cache,
        )
    thread.join(BOUND)
    assert list(tmp_path.iterdir()) == [cache]
    found = sweep(code, {"KIND": [WRONG]}, 60 * BOUND, groups=4096, grid=None, cache=cache)
    assert found[0].cached
