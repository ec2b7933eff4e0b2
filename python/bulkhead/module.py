"""Module: a source that is compiled while the program goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from . import _native, kernel as kernels
from .errors import InvalidArgument
from .values import with_hints

if TYPE_CHECKING:
    from .context import Context
    from .kernel import Kernel
    from .source import Source


class Module(_native.Module):
    """A source that a sandboxed process compiles. `Context.compile` makes it.

    `event` is that of the compile. It is POISONED if the source has errors, and the exception's
    `log` has them all. A module that you drop is compiled all the same: `event.cancel()` ends that.
    """

    __slots__ = ("__weakref__", "_entry")
    _entry: str | None

    @with_hints("kernel")
    def kernel(
        self,
        name: str | None = None,
        *,
        constants: Mapping[str | int, float] | None = None,
        trusted: bool = False,
        block: int | tuple[int, ...] | None = None,
        shared: int = 0,
    ) -> Kernel:
        """Make a kernel, as `Context.kernel` does. Does not wait: raises `Error` (PENDING) while
        the compile goes on.

        >>> module = ctx.compile(source='''
        ...     #version 450
        ...     layout(local_size_x = 64) in;
        ...     layout(constant_id = 0) const uint N = 1;
        ...     layout(set = 0, binding = 0) buffer X { uint x[]; };
        ...     void main() { x[gl_GlobalInvocationID.x] = N; }''')
        >>> module.event.wait()
        >>> seven, x = module.kernel(constants={"N": 7}), ctx.empty(64, "uint32")
        >>> stream.launch(seven, grid=64, X=x).wait()
        >>> x.tolist()[:3]
        [7, 7, 7]
        """
        launch = kernels.to_block("kernel", block, shared)
        made = kernels.specialize(
            lambda specializations: self._kernel(name, trusted, specializations, *launch), constants
        )
        made._entry = self._entry
        return made

    @property
    def code(self) -> bytes:
        """The SPIR-V module, or the PTX of CUDA C++. Does not wait, as `kernel` does not."""
        with self._kernel(None, False, [], (0, 0, 0), 0) as kernel:
            return kernel.code

    def __repr__(self) -> str:
        return f"<bulkhead.Module, {self.event.state}>"


def compile_source(context: Context, source: Source) -> Module:
    """Start a compile (`Context.compile`)."""
    if source.kind != "text":
        what = "SPIR-V" if source.kind == "spirv" else "an image for CUDA"
        raise InvalidArgument(f"compile: this is {what} already: Context.kernel takes it")
    made: Module = _native.module_compile(context, source.fields)
    made._entry = source.fields[2]
    return made
