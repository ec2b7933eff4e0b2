"""Runs a kernel with an installed package, and sees that all of Bulkhead comes from given folders.

Usage: place.py PACKAGE FOLDER...    the package, and where its library and worker may be
"""

import os
import sys

import bulkhead as bh

package, *folders = sys.argv[1:]
assert os.path.dirname(bh.__file__) == package, bh.__file__
with bh.Context(spares=0) as ctx, ctx.stream() as stream:
    kernel = ctx.kernel(bh.shaders() / "saxpy.spv")
    x, y = ctx.asarray(memoryview(bytes(range(16))).cast("f")), ctx.empty(4)
    seconds = 60 * int(os.environ.get("BULKHEAD_TEST_SLOWNESS", "1"))
    stream.launch(kernel, grid=4, X=x, Y=bh.out(y), a=0, n=4).wait(seconds)
    assert y.tolist() == [0, 0, 0, 0]
    assert stream.eval("x + 1", x=bytearray([1, 2])).tolist() == [2, 3]
    for pid in ("self", *open("/proc/self/task/%d/children" % os.getpid()).read().split()):
        for line in open(f"/proc/{pid}/maps"):
            path = line.split(maxsplit=5)[-1].strip()
            if "bulkhead" in path and path.startswith("/") and "memfd" not in path:
                assert os.path.dirname(path) in (package, *folders), path
    print(bh.__version__)
