"""Kernels that Triton has compiled. Triton itself is not needed: what it returns is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .buffer import out
from .dtypes import BY_CODE, DType
from .errors import InvalidArgument, InvalidType
from .kernel import Kernel, create, read_ptx
from .source import read

if TYPE_CHECKING:
    from .context import Context

_SCALARS = re.compile(r"(u|i|fp|bf)(\d+)")
_HIDDEN = ("global_scratch", "profile_scratch")
_NULL = bytes(8)


def _part(of: Any, name: str, otherwise: Any = None) -> Any:
    """An attribute, or an entry of a dict."""
    return of.get(name, otherwise) if isinstance(of, Mapping) else getattr(of, name, otherwise)


def _refuse(what: str) -> InvalidArgument:
    return InvalidArgument(f"triton_kernel: compiled: {what}")


def _position(name: str, type_: object, size: int | None) -> tuple[int, int]:
    """(dtype, bytes) of a parameter; `size` is what the PTX says."""
    if isinstance(type_, str) and type_.startswith("*"):
        return DType("uint64").code, 8
    match = _SCALARS.fullmatch(type_) if isinstance(type_, str) else None
    if not match:
        raise _refuse(f"{name} is {type_}, which is not supported: pass pointers and numbers")
    kind = {"u": "uint", "i": "int", "fp": "float", "bf": "bfloat"}[match[1]]
    bits = 8 * size if size else max(8, int(match[2]))
    if kind == "bfloat" and bits == 32:  # it is given as a float
        kind = "float"
    found = next((one for one in BY_CODE if one == f"{kind}{bits}"), None)
    return (0 if found is None else found.code), bits // 8


def _number(metadata: Any, name: str, otherwise: int) -> int:
    found = _part(metadata, name, otherwise)
    if not isinstance(found, int) or not 0 <= found < 1 << 32:
        raise _refuse(f"its {name} is {found!r}")
    return found


def _scratch(metadata: Any, name: str, context: Context, blocks: int | None) -> Any:
    """What a hidden parameter gets."""
    size = _number(metadata, f"{name}_size", 0)
    if not size:
        return _NULL
    if blocks is None:
        raise InvalidArgument(
            f"triton_kernel: blocks: the kernel has {size} bytes of {name} for each block: say how "
            "many a grid has at most"
        )
    if _number(metadata, f"{name}_align", 1) > 4096:
        raise _refuse(f"its {name} is aligned to more than 4096 bytes")
    return out(context.empty(size * blocks, "uint8"))


def triton_kernel(
    context: Context,
    compiled: Any,
    *,
    signature: Mapping[str, Any] | None = None,
    blocks: int | None = None,
) -> Kernel:
    """Make a CUDA kernel of what Triton has compiled: by `softmax.warmup(...)`, `triton.compile`.

    `args` of a launch has the arguments of the Triton function in order. Its constexprs are
    compiled in, so leave them out, or give all: then those are dropped. Threads and shared memory
    are Triton's. `blocks` is needed where a kernel has scratch memory: the most that a grid will
    have.

    `compiled` needs `asm`, `metadata` and `src.signature` (or `signature`), as attributes or entries
    of a dict, which another process may have made.
    """
    asm, metadata = _part(compiled, "asm"), _part(compiled, "metadata")
    source = _part(compiled, "src")
    named = signature, _part(compiled, "signature"), _part(source, "signature")
    types = next((one for one in named if one is not None), None)
    if not isinstance(asm, Mapping) or metadata is None or not isinstance(types, Mapping):
        raise InvalidType(
            "triton_kernel: compiled: it has asm, metadata and src.signature, unlike "
            f"{type(compiled)}"
        )
    backend = _part(_part(metadata, "target"), "backend", "cuda")
    image = asm.get("cubin") or asm.get("ptx")
    name = _part(metadata, "name") or _part(compiled, "name")
    if backend != "cuda" or not image or not isinstance(name, str):
        raise _refuse(f"it is for '{backend}', and has {', '.join(asm) or 'nothing'}: no cubin")
    if _number(metadata, "num_ctas", 1) != 1 or _part(metadata, "launch_cooperative_grid", False):
        raise _refuse("clusters (num_ctas) and cooperative grids are not supported")
    if blocks is not None and (not isinstance(blocks, int) or not 0 < blocks < 1 << 32):
        raise InvalidArgument(f"triton_kernel: blocks: a number above 0, not {blocks!r}")
    visible = [one for one, type_ in types.items() if type_ != "constexpr"]
    positions = [_position(str(one), types[one], None) for one in visible]
    ptx = asm.get("ptx") or b""
    ptx = ptx.encode() if isinstance(ptx, str) else ptx
    if not isinstance(ptx, bytes):
        raise _refuse(f"its PTX is {type(ptx)}")
    declared = read_ptx(ptx, name) if ptx else None
    if declared is None:
        hidden = sum(_part(metadata, f"{one}_size") is not None for one in _HIDDEN)
    else:
        hidden, bytes_ = len(declared) - len(visible), [size for _, size in declared]
        if not 0 <= hidden <= len(_HIDDEN) or any(size != 8 for size in bytes_[len(visible) :]):
            raise _refuse(f"its PTX has {len(declared)} parameters, not those of {visible}")
        positions = [
            _position(str(one), types[one], size) for one, size in zip(visible, bytes_)
        ]
    positions += [(0, 8)] * hidden
    more = [_scratch(metadata, one, context, blocks) for one in _HIDDEN[:hidden]]
    has_scratch = any(one is not _NULL for one in more)
    taken = read(
        "triton_kernel",
        None,
        source=image,
        name=None,
        entry=name,
        defines=None,
        include=None,
        language=None,
        options=None,
        optimize=True,
        deadline=None,
        tenant=None,
        memory=None,
    )
    threads = _number(metadata, "num_warps", 4) * _number(metadata, "warp_size", 32)
    shared = _number(metadata, "shared", 0)
    kernel = create(context, taken, None, False, threads, shared)
    kernel._arrange = _arranger(types, visible, more)
    kernel._set_positions(positions, True, blocks if has_scratch and blocks else 0)
    return kernel


def _arranger(types: Mapping[Any, Any], visible: list[Any], more: list[Any]) -> Any:
    constant = [type_ == "constexpr" for type_ in types.values()]
    pointer = [isinstance(types[one], str) and types[one].startswith("*") for one in visible]

    def arrange(args: Any) -> tuple[Any, ...]:
        given = tuple(args)
        if len(given) == len(constant) != len(visible):
            given = tuple(one for one, drop in zip(given, constant) if not drop)
        if len(given) != len(visible):
            names = ", ".join(map(str, visible))
            raise InvalidArgument(
                f"launch: args: {len(given)} arguments, and the kernel takes {len(visible)}: "
                f"{names}"
            )
        kinds = zip(given, pointer)
        return (*(0 if one is None and at else one for one, at in kinds), *more)

    return arrange
