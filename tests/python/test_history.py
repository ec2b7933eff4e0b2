"""A history that a program keeps, and what `bulkhead chaos --check` says of it."""

import json
import subprocess

import bulkhead as bh
import pytest
from conftest import BUILD


def check(path):
    done = subprocess.run(
        [BUILD / "bin" / "bulkhead", "chaos", "--check", path, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(done.stdout)


def serve(history, stream, ctx, request, *, ignores=False):
    """Answers a request: a buffer of its number."""
    expected = request.to_bytes(4, "little") * 4
    while True:
        numbers = ctx.empty(4, "uint32")
        event = stream.fill(numbers, request)
        history.submitted(request, event, expected=expected)
        good = event.exception() is None
        history.saw(event)
        if good or ignores:
            history.used(event, numbers.numpy() if good else b"")
            history.answered(request, True)
            return


@pytest.mark.parametrize("ignores", [False, True])
def test_a_history_is_judged(tmp_path, ignores):
    path = tmp_path / "history.jsonl"
    with bh.Context(chaos="seed=3 device_lost=40%") as ctx, ctx.stream() as stream:
        with bh.History(path, patience="60m") as history:
            for request in range(1, 7):
                serve(history, stream, ctx, request, ignores=ignores)
                history.rested()
    report = check(path)
    assert report["poisoned"] > 0
    assert report["verdict"] == ("invalid" if ignores else "valid")
    assert (report["anomalies"]["false_success"] > 0) == ignores
    assert report["power"]["compared"] == report["ready"]


def test_an_exception_leaves_it_torn(tmp_path):
    path = tmp_path / "history.jsonl"
    with pytest.raises(KeyError), bh.History(path) as history:
        history.answered(1, False)
        raise KeyError
    assert not check(path)["complete"]
