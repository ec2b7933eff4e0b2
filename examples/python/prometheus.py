"""Writes the statistics of a context as Prometheus reads them.

    from prometheus import render
    ...
    return render(ctx.stats())   # from whatever answers GET /metrics
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import bulkhead as bh


def line(name: str, value: float, **labels: Any) -> str:
    quoted = (
        '{}="{}"'.format(key, str(text).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n"))
        for key, text in labels.items()
    )
    inside = ",".join(quoted)
    return f"bulkhead_{name}{{{inside}}} {value}" if inside else f"bulkhead_{name} {value}"


def work(of: dict[str, Any], **labels: Any) -> Iterator[str]:
    yield line("queued", of["queued"], **labels)
    yield line("in_flight", of["in_flight"], **labels)
    yield line("deaths_total", of["deaths"], **labels)
    yield line("restarts_total", of["restarts"], **labels)
    yield line("dependents_total", of["dependents"], **labels)
    for status, count in of["ended"].items():
        yield line("submissions_total", count, status=status, **labels)


def histogram(name: str, of: dict[str, Any], **labels: Any) -> Iterator[str]:
    below = 0
    for i, count in enumerate(of["counts"][:-1]):  # the last one has no bound
        below += count
        yield line(f"{name}_seconds_bucket", below, le=2 ** (10 + i) / 1e9, **labels)
    total = sum(of["counts"])
    yield line(f"{name}_seconds_bucket", total, le="+Inf", **labels)
    yield line(f"{name}_seconds_sum", of["sum"], **labels)
    yield line(f"{name}_seconds_count", total, **labels)


def metrics(stats: dict[str, Any]) -> Iterator[str]:
    for name, value in stats.items():
        if isinstance(value, int):
            yield line(name, value)
    for kind, states in stats["processes"].items():
        for state, count in states.items():
            yield line("processes", count, kind=kind, state=state)
    for status, count in stats["deaths"].items():
        yield line("worker_deaths_total", count, status=status)
    for tenant, of in stats["tenants"].items():
        yield from work(of, tenant=tenant)
        yield from histogram("wait", of["wait"], tenant=tenant)
        yield from histogram("run", of["run"], tenant=tenant)
        for stream in of["streams"]:  # names need not differ: the number tells
            labels = {"tenant": tenant, "stream": stream["stream"], "number": stream["number"]}
            yield line("stream_queued", stream["queued"], **labels)
            yield line("stream_in_flight", stream["in_flight"], **labels)
            yield line("stream_restarts_total", stream["restarts"], **labels)


def render(stats: dict[str, Any]) -> str:
    """Return the text of one scrape: the lines of each metric together, as the format wants it."""
    by_name: dict[str, list[str]] = {}
    for text in metrics(stats):
        name = text.split("{")[0].split(" ")[0]
        by_name.setdefault(re.sub("_seconds_(bucket|sum|count)$", "_seconds", name), []).append(text)
    lines = []
    for name, texts in by_name.items():
        if name.endswith("_seconds"):
            lines.append(f"# TYPE {name} histogram")
        lines += texts
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    with bh.Context() as ctx, ctx.stream(name="demo", tenant="alice") as stream:
        stream.eval("x + 1", x=ctx.asarray([1.0, 2.0])).event.wait()
        print(render(ctx.stats()), end="")
