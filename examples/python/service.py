"""A service that runs kernels of several tenants, and survives each of them.

It takes one JSON object a line, on a Unix socket, and answers with one:

    {"tenant": "alice", "kernel": "saxpy.spv", "groups": 4, "buffers": {"X": [1, 2], "Y": [3, 4]},
     "push": {"a": 2, "n": 2}}
    {"tenant": "alice", "code": "OK", "buffers": {"Y": [5.0, 8.0]}}

A tenant has a stream, and so a worker, of its own. A kernel that crashes, hangs or takes too much
memory ends as a poisoned event; the answer says what happened. Nobody else notices.

Usage: service.py SOCKET FOLDER     FOLDER has the kernels
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import bulkhead as bh

DEADLINE = "1s"
MEMORY = "256M"
TYPES = {"f32": "float32", "i32": "int32", "u32": "uint32"}


class Service:
    """The streams of the tenants, and the kernels that were asked for."""

    def __init__(self, ctx: bh.Context, folder: Path, **options: Any) -> None:
        self._ctx, self._folder, self._options = ctx, folder, options
        self._streams: dict[str, bh.Stream] = {}
        self._kernels: dict[tuple[str, bool], bh.Kernel] = {}

    def _stream(self, tenant: str) -> bh.Stream:
        if tenant not in self._streams:
            options = {"deadline": DEADLINE, "memory": MEMORY} | self._options
            self._streams[tenant] = self._ctx.stream(tenant, tenant=tenant, **options)
        return self._streams[tenant]

    async def _kernel(self, name: str, trusted: bool) -> bh.Kernel:
        key = name, trusted
        if key not in self._kernels:
            path = self._folder / Path(name).name
            kernel = await asyncio.to_thread(self._ctx.kernel, path, trusted=trusted)
            await asyncio.to_thread(lambda: kernel.info)  # parses the module, in a sandbox
            self._kernels[key] = kernel
        return self._kernels[key]

    async def _run(self, request: dict[str, Any]) -> dict[str, Any]:
        tenant = str(request.get("tenant", ""))
        kernel = await self._kernel(str(request["kernel"]), bool(request.get("trusted")))
        buffers = {}
        for one in kernel.info.buffers:
            numbers = request["buffers"][one.name]
            buffers[one.name] = self._ctx.asarray(numbers, TYPES[one.type.split("[")[0]])
        event = self._stream(tenant).launch(
            kernel, groups=request["groups"], args=buffers | request.get("push", {})
        )
        await event
        written = {name: buffers[name].tolist() for name in kernel.info.outputs}
        return {"tenant": tenant, "code": "OK", "buffers": written}

    async def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run what a request asks for, and say what came of it."""
        tenant = str(request.get("tenant", ""))
        try:
            try:
                return await self._run(request)
            except bh.VictimError:  # lost with something else
                return await self._run(request)
        except bh.Error as error:
            return {"tenant": tenant, "code": error.code, "message": str(error)}
        except (KeyError, TypeError, ValueError, OSError) as error:
            return {"tenant": tenant, "code": "BAD_REQUEST", "message": repr(error)}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer each line of a connection."""
        while line := await reader.readline():
            try:
                answer = await self.answer(json.loads(line))
            except (json.JSONDecodeError, AttributeError) as error:
                answer = {"code": "BAD_REQUEST", "message": repr(error)}
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()
        writer.close()


async def main(socket: str, folder: str) -> None:
    """Serve until the task is cancelled (Ctrl-C)."""
    with bh.Context() as ctx:
        service = Service(ctx, Path(folder))
        async with await asyncio.start_unix_server(service.serve, socket) as server:
            await server.serve_forever()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        asyncio.run(main(sys.argv[1], sys.argv[2]))
    except KeyboardInterrupt:
        pass
