"""examples/python: the service survives each hostile kernel, the evaluator finds each fault."""

import asyncio
import json
import os
import re
import sys
from collections import Counter

import bulkhead as bh
from conftest import BOUND, BUILD, SHADERS, SLOWNESS, SOURCE

sys.path.insert(0, str(SOURCE / "examples" / "python"))
import autotune  # noqa: E402
import evaluator  # noqa: E402
import improve  # noqa: E402
import interop  # noqa: E402
import prometheus  # noqa: E402
import service  # noqa: E402

SLOW = min(SLOWNESS, 8)
GRACE = {"grace": f"{250 * SLOWNESS}ms", "deadline": f"{500 * SLOW}ms"}
ZEROS = [0] * 64
HEALTHY = {
    "kernel": "saxpy.spv",
    "groups": 1,
    "buffers": {"X": [1, 2], "Y": [3, 4]},
    "push": {"a": 2, "n": 2},
}
HOSTILE = [
    ({"kernel": "hang.spv", "groups": 4096, "buffers": {"Data": ZEROS}}, {"DEADLINE"}),
    (
        {"kernel": "crash_shared.spv", "groups": 16, "buffers": {"Data": ZEROS}, "trusted": True},
        {"WORKER_SIGNAL"},
    ),
    (
        {"kernel": "memory_bomb.spv", "groups": 1, "buffers": {"data": ZEROS}, "trusted": True},
        {"COMPILE_FAILED", "OUT_OF_HOST_MEMORY"},
    ),
    ({"kernel": "memory_bomb.spv", "groups": 1, "buffers": {"data": ZEROS}}, {"LIMIT_EXCEEDED"}),
    ({"kernel": "none.spv", "groups": 1, "buffers": {}}, {"LOAD_FAILED"}),
    (HEALTHY | {"groups": 0}, {"INVALID_ARGUMENT"}),
    (HEALTHY | {"push": {"a": 2}}, {"INVALID_ARGUMENT"}),
    (HEALTHY | {"buffers": {"X": [1]}}, {"BAD_REQUEST"}),
    (HEALTHY | {"kernel": "../../../../etc/passwd"}, {"LOAD_FAILED"}),
]


def test_the_service_survives(tmp_path):
    async def ask(reader, writer, request):
        writer.write(json.dumps(request).encode() + b"\n")
        return json.loads(await asyncio.wait_for(reader.readline(), 2 * BOUND))

    async def client(socket, tenant, requests):
        reader, writer = await asyncio.open_unix_connection(socket)
        answers = [await ask(reader, writer, request | {"tenant": tenant}) for request in requests]
        writer.close()
        return answers

    async def main():
        with bh.Context(spares=0) as ctx:
            served = service.Service(ctx, SHADERS, **GRACE)
            socket = str(tmp_path / "socket")
            async with await asyncio.start_unix_server(served.serve, socket):
                hostile = [
                    asyncio.ensure_future(client(socket, f"mallory-{n}", [request, HEALTHY]))
                    for n, (request, _) in enumerate(HOSTILE)
                ]
                healthy = asyncio.ensure_future(client(socket, "alice", [HEALTHY] * 30))
                for answer in await healthy:
                    assert answer == {"tenant": "alice", "code": "OK", "buffers": {"Y": [5, 8]}}
                for (request, codes), waits in zip(HOSTILE, hostile):
                    answer, after = await waits
                    assert answer["code"] in codes, (request, answer)
                    assert after["code"] == "OK"  # the tenant's next kernel runs
                reader, writer = await asyncio.open_unix_connection(socket)
                for nonsense in ([], 5, "text"):
                    assert (await ask(reader, writer, nonsense))["code"] == "BAD_REQUEST"
                writer.close()

    asyncio.run(main())


def test_the_service_is_right_while_its_processes_are_killed(tmp_path):
    async def main():
        with bh.Context() as ctx:
            served = service.Service(ctx, SHADERS, deadline=BOUND)
            chaos = await asyncio.create_subprocess_exec(
                BUILD / "bin" / "bulkhead",
                *"chaos --seed 3 --rate 10 --faults kill --targets worker,loader,zygote".split(),
                *("--count", "10", "--attach", str(os.getpid()), "--log", tmp_path / "log"),
            )
            asked = 0
            while chaos.returncode is None or asked < 10:
                answers = [served.answer(HEALTHY | {"tenant": name}) for name in ("alice", "bob")]
                for answer in await asyncio.gather(*answers):
                    assert answer["code"] == "OK", answer
                    assert answer["buffers"] == {"Y": [5, 8]}
                asked += 1
            assert chaos.returncode == 0

    asyncio.run(main())


def test_the_evaluator_finds_each_fault():
    variants = evaluator.generate(20)
    with bh.Context(spares=0, quarantine_deaths=0) as ctx:
        evaluator.evaluate(ctx, variants, compile_deadline=f"{10 * SLOW}s", **GRACE)
    found = Counter((variant.meant, variant.result) for variant in variants)
    assert found.pop(("right", "OK")) == 8
    endless = found.pop(("endless", "DEADLINE"), 0) + found.pop(("endless", "LOOP_LIMIT"), 0)
    assert endless == 2
    assert found == {
        ("does not compile", "COMPILE_FAILED"): 2,
        ("wrong", "WRONG"): 2,
        ("half", "WRONG"): 2,
        ("writes its input", "BINDING_MISMATCH"): 2,
        ("crashes", "WORKER_SIGNAL"): 2,
    }
    assert all((v.seconds is not None) == (v.meant == "right") for v in variants)


def test_a_kernel_improves():
    """Only right variants are kept, each faster than the one before."""
    task = improve.TASK | {"limits": {"deadline": f"{10 * SLOW}s"}}
    with bh.Judge(task, seed=5, time=True, warm=True, timed_runs=5) as judge:
        search = improve.improve(judge, 7, seed=3)
    assert sum(search.verdicts.values()) == 8
    assert set(search.verdicts) == {"CORRECT", "WRONG", "COMPILE_FAILED"}
    assert all(variant.loop < 2 and variant.form < 3 for variant, _ in search.steps)
    ratios = [ratio for _, ratio in search.steps]
    assert ratios == sorted(ratios, reverse=True)
    assert not ratios or (search.best, search.ratio) == search.steps[-1]


def test_autotuning_finds_the_right_variants():
    restrict = "LOCAL * GROUPS in (4096, 6144)"
    found = autotune.tune(restrict, repeats=2, stream_options=GRACE)
    verdicts = {(one.values["LOCAL"], one.values["FOLD"]): one.verdict for one in found}
    endless = {verdicts.pop((local, 1)) for local in (64, 96, 256)}
    assert endless <= {"DEADLINE", "LOOP_LIMIT"}
    right = {(local, fold): "OK" for local in (64, 256) for fold in (2, 4)}
    assert verdicts == right | {(96, 2): "WRONG", (96, 4): "WRONG"}
    assert found.best is found[0]


def test_tensors_of_another_package(capsys):
    interop.main()
    assert capsys.readouterr().out == "[1.0, 4.0, 9.0]\nviews of the result's memory: 1\n"


def test_statistics_as_prometheus_reads_them():
    with bh.Context(spares=0) as ctx:
        stream = ctx.stream(name='a "quoted" one', tenant="alice")
        for _ in range(3):
            stream.eval("x + 1", x=ctx.asarray([1.0])).event.wait(BOUND)
        stats = ctx.stats()
        text = prometheus.render(stats)
    series, seen = {}, []
    for line in text.splitlines():
        if not line.startswith("# TYPE "):
            match = re.fullmatch(r'(bulkhead_\w+)(\{(\w+="([^"\\]|\\.)*",?)+\})? ([0-9.e+-]+)', line)
            assert match, line
            assert series.setdefault(match[1] + (match[2] or ""), match[5]) == match[5]
            seen += [match[1]] if match[1] not in seen[-1:] else []
    buckets = [int(v) for k, v in series.items() if k.startswith("bulkhead_run_seconds_bucket")]
    assert len(seen) == len(set(seen))  # the lines of a metric are together
    assert buckets == sorted(buckets) and len(buckets) == 32 and buckets[-1] == 3
    assert series['bulkhead_run_seconds_count{tenant="alice"}'] == "3"
    assert series['bulkhead_submissions_total{status="OK",tenant="alice"}'] == "3"
    assert series['bulkhead_processes{kind="worker",state="ready"}'] == "1"
    (one,) = stats["tenants"]["alice"]["streams"]
    assert one["ended"] == stats["total"]["ended"] == {"OK": 3}
    assert one["run"] == stats["total"]["run"] and sum(one["run"]["counts"]) == 3
