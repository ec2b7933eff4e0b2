"""Arrays of other packages in and out, by DLPack: whichever of PyTorch, JAX and NumPy is there.

No package is named in the code that computes. What goes out is the memory that the worker wrote;
what comes in is copied once into memory that workers share.

Usage: interop.py
"""

from __future__ import annotations

import importlib
from typing import Any

import bulkhead as bh


def find_package() -> Any:
    """Return (a function that makes a tensor of numbers, the package's from_dlpack)."""
    for name in ("torch", "jax.numpy", "numpy"):
        try:
            package = importlib.import_module(name)
        except ImportError:
            continue
        make = package.tensor if name == "torch" else package.asarray
        return make, package.from_dlpack
    raise SystemExit("interop.py: there is neither PyTorch nor JAX nor NumPy")


def squares(ctx: bh.Context, stream: bh.Stream, tensor: Any) -> bh.Buffer:
    """Square each number of any package's tensor."""
    return stream.eval("x*x", x=ctx.from_dlpack(tensor))


def main() -> None:
    """Take a tensor in, compute, and show the result as a tensor without a copy."""
    make, from_dlpack = find_package()
    with bh.Context() as ctx, ctx.stream() as stream:
        result = squares(ctx, stream, make([1.0, 2.0, 3.0]))
        tensor = from_dlpack(result)  # waits, and raises the verdict if the kernel failed
        print([float(number) for number in tensor])
        print("views of the result's memory:", result.views)


if __name__ == "__main__":
    main()
