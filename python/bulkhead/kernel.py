"""Kernel: a module with an entry point and constants, and what it declares."""

from __future__ import annotations

import difflib
import re
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from .dtypes import BY_CODE, DType
from .errors import InvalidArgument, InvalidType
from .scope import Scoped
from .source import IMAGES, Source

if TYPE_CHECKING:
    from .context import Context

_ACCESS = {1: "read", 2: "write", 3: "read_write"}
_DTYPE_CODES = {dtype.short: dtype.code for dtype in BY_CODE}
_OPTIONS = ("grid", "groups", "block", "shared", "args", "after", "deadline", "alone", "timed")
_ALL_DTYPES = (1 << len(BY_CODE)) - 1
# What SPIR-V has no type for is bound by its bytes.
_STAND_INS = {"u8": ("bool", "f8_e4m3", "f8_e5m2", "f8_e8m0"), "u16": ("bf16",)}
_STAND_INS |= {"i8": _STAND_INS["u8"], "i16": _STAND_INS["u16"]}


@dataclass(frozen=True)
class Parameter:
    """What a launch gives by name: a buffer, or a push constant."""

    name: str
    type: str
    """As the kernel declares it: 'f32[]', 'u32'."""
    access: str | None = None
    """Of a buffer: 'read', 'write' or 'read_write'; None: a push constant."""
    set: int | None = None
    binding: int | None = None
    count: int = 1
    """Buffers of the binding: more than 1 is an array of buffers."""
    offset: int | None = None
    """Of a push constant: in bytes."""


@dataclass(frozen=True)
class KernelInfo:
    """What a kernel declares."""

    local_size: tuple[int, int, int]
    """Invocations of a workgroup along each axis."""
    push_size: int
    """Bytes of push constants."""
    shared_bytes: int
    """At least this much workgroup memory."""
    parameters: tuple[Parameter, ...]
    constants: dict[str, int] = field(default_factory=dict)
    """Specialization constants: their ids by name."""
    capabilities: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    """All entry points of the module."""

    @property
    def buffers(self) -> tuple[Parameter, ...]:
        """Those of the parameters that are buffers."""
        return tuple(one for one in self.parameters if one.access)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the buffers that the kernel writes."""
        return tuple(one.name for one in self.buffers if one.access != "read")


class Kernel(_native.Kernel, Scoped):
    """A kernel. `Context.kernel` makes it; what is in it is looked at when that is needed.

    >>> kernel = ctx.kernel(shaders / "saxpy.spv")
    >>> [f"{one.name}: {one.type}" for one in kernel.info.parameters]
    ['X: f32[]', 'Y: f32[]', 'a: f32', 'n: u32']
    """

    __slots__ = ("__weakref__", "_arrange", "_entry", "_info")
    _arrange: Callable[[Any], tuple[Any, ...]]
    """Of a kernel with parameters that launches do not give (triton_kernel)."""
    _entry: str | None

    @property
    def info(self) -> KernelInfo:
        """What the kernel declares. A sandboxed process without a device parses the module, once.

        Raises `InputError` if the module is not valid. An image for CUDA declares nothing.
        """
        if self.cuda:
            raise InvalidArgument("info: a CUDA kernel declares no names: it has args=(…)")
        self._reflect()
        return self._info

    def _reflect(self) -> None:
        if self.cuda:
            self._set_positions(read_ptx(self.code, getattr(self, "_entry", None) or self.name))
        elif not hasattr(self, "_info"):
            info, parameters = _read_inspection(self._inspect())
            self._set_parameters(*parameters)
            self._info: KernelInfo = info

    def _leave(self) -> None:
        self.release()

    def __repr__(self) -> str:
        if self.released:
            return "<bulkhead.Kernel, released>"
        known = getattr(self, "_info", None)
        text = f"<bulkhead.Kernel {self.name}"
        if known:
            text += f"({', '.join(f'{one.name}: {one.type}' for one in known.parameters)})"
        return text + ">"


def shaders() -> Path:
    """Return the folder of the kernels that come with the library, such as saxpy.spv."""
    package = Path(__file__).resolve().parent
    # A wheel has them in the package, a build or a prefix in one of the folders around it.
    around = (parent / "share" / "bulkhead" / "shaders" for parent in package.parents)
    for folder in (package / "share", *around):
        if folder.is_dir():
            return folder
    raise FileNotFoundError("the kernels of the library are not here")


# -- what a module declares ------------------------------------------------------------------------


def _takes(declared: str) -> int:
    """The types of arrays that may be bound where the kernel declares this type, as bits.

    A scalar, its vectors, matrices and arrays, and structs of nothing else, take that scalar. Other
    structs, unknown types, and texts that are cut take anything. Of several declarations at one
    binding, one has to take it.
    """
    if not declared or "..." in declared or re.search(r"(^|[^\[])\?", declared):
        return _ALL_DTYPES
    bits = 1 << _DTYPE_CODES["raw"]
    for one in declared.split(" | "):
        scalars = set(re.findall(r"[a-z]+\d*", re.sub(r"\[[^\]]*\]|(?<=\d)x\d+(x\d+)?", "", one)))
        if len(scalars) != 1:
            return _ALL_DTYPES
        scalar = scalars.pop()
        for name in (scalar, *_STAND_INS.get(scalar, ())):
            if name in _DTYPE_CODES:
                bits |= 1 << _DTYPE_CODES[name]
    return bits


def _member_shape(name: str, declared: str, offset: int, stride: int, step: int, size: int) -> Any:
    """(dtype, offset, stride, step, length, width) of a push constant."""
    match = re.fullmatch(r"([a-z]+\d*)(?:x(\d+))?(?:x(\d+)|\[(\d+)\])?", declared)
    scalar = "u32" if match and match[1] == "bool" else match[1] if match else ""
    if not match or scalar not in _DTYPE_CODES:
        raise InvalidType(f"push constant {name} is {declared}, which cannot be given by name")
    code = _DTYPE_CODES[scalar]
    width, length = int(match[2] or 1), int(match[3] or match[4] or 1)
    last = offset + (length - 1) * stride + (width - 1) * step + BY_CODE[code].itemsize
    if not 0 < width <= 4096 or not 0 < length <= 4096 or last > size:
        raise InvalidType(f"push constant {name} is {declared}, which is not within {size} bytes")
    return code, offset, stride, step, length, width


def _read_inspection(answer: Any) -> tuple[KernelInfo, Any]:
    (
        local_size,
        push_size,
        shared_bytes,
        bindings,
        members,
        constants,
        capabilities,
        entries,
    ) = answer
    push_room = (push_size + 3) // 4 * 4
    # A name that is not there, or there twice, is replaced by a number.
    counts = Counter(one[0] for one in bindings) + Counter(one[0] for one in members)
    described, native_bindings, native_members = [], [], []
    for name, declared, set_, binding, count, access, _ in bindings:
        if not name or counts[name] > 1:
            name = f"{set_}.{binding}"
        described.append(Parameter(name, declared, _ACCESS[access], set_, binding, count))
        native_bindings.append(
            (name, declared, set_, binding, count, access, _takes(declared), count > 1)
        )
    for name, declared, offset, stride, step in members:
        if not name or counts[name] > 1:
            name = f"push[{offset}]"
        described.append(Parameter(name, declared, offset=offset))
        shape = _member_shape(name, declared, offset, stride, step, push_room)
        native_members.append((name, declared, *shape))
    if push_size and not members:
        raise InvalidType("the kernel's module does not say what its push constants are")
    info = KernelInfo(
        (local_size[0], local_size[1], local_size[2]),
        push_size,
        shared_bytes,
        tuple(described),
        {name or str(id_): id_ for name, id_, _, _ in constants},
        tuple(capabilities),
        tuple(entries),
    )
    return info, (tuple(local_size), push_size, native_bindings, native_members)


# The types of parameters in PTX; of b32 and the like nobody knows what they are.
_PTX_DTYPES = {"u": "u", "s": "i", "f": "f"}
_PTX_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PTX_ENTRY = re.compile(rb"\.entry\s+([\w$%]+)\s*(?:\(([^)]*)\))?")
_PTX_PARAMETER = re.compile(
    rb"\.param\s+(?:\.align\s+\d+\s+)?\.([usfb])(\d+)\s[^\[]*?(?:\[\s*(\d+)\s*\])?\s*$"
)


def read_ptx(image: bytes, name: str) -> list[tuple[int, int]] | None:
    """(dtype, bytes) of each parameter of a kernel; None: the image does not say."""
    if image.startswith(IMAGES):
        return None
    entries: dict[bytes, bytes] = dict(_PTX_ENTRY.findall(_PTX_COMMENT.sub(b" ", image)))
    wanted = name.encode()
    mangled = b"_Z%d%s" % (len(wanted), wanted)
    found = [one for one in entries if one == wanted or one.startswith(mangled)]
    if len(entries) != 1 and len(found) != 1:
        return None
    positions = []
    for text in entries[(found or list(entries))[0]].split(b","):
        match = _PTX_PARAMETER.match(text.strip())
        if match:
            kind, size, length = match[1].decode(), int(match[2]) // 8, match[3]
            short = f"{_PTX_DTYPES.get(kind)}{8 * size}"
            known = length is None and short in _DTYPE_CODES
            positions.append((_DTYPE_CODES[short] if known else 0, size * int(length or 1)))
        elif text.strip():
            return None
    return positions


def explain_name(kernel: Kernel, name: object) -> str:
    """Say that a kernel has no parameter of a name, and which it has."""
    if kernel.cuda:
        option = difflib.get_close_matches(str(name), _OPTIONS, 1)
        return (
            f"the parameters of a CUDA kernel have no names, so there is no '{name}': give them in "
            "order, as args=(x, y, 2.0, n)" + (f"; did you mean '{option[0]}'?" if option else "")
        )
    there = [one.name for one in kernel.info.parameters]
    if not isinstance(name, str):
        return f"args: a name is a text, not {name!r}"
    near = [one for one in there if one.lower() == name.lower()]
    near = near or difflib.get_close_matches(name, there, 1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    if not near and (option := difflib.get_close_matches(name, _OPTIONS, 1)):
        hint = f"; did you mean the option '{option[0]}'?"
    return f"the kernel has no parameter '{name}'; it has {', '.join(there) or 'none'}{hint}"


# -- creation --------------------------------------------------------------------------------------


def _number_bits(name: str, value: Any, dtype: DType) -> tuple[int, int]:
    """(size, bits) of a specialization constant; a bool has 4 bytes."""
    formats = {"float16": "<e", "float32": "<f", "float64": "<d", "bool": "<I"}
    integer = {1: "<b", 2: "<h", 4: "<i", 8: "<q"}[dtype.itemsize]
    format_ = formats.get(dtype, integer.upper() if dtype.startswith("uint") else integer)
    try:
        packed = struct.pack(format_, bool(value) if dtype == "bool" else value)
    except (struct.error, OverflowError, TypeError) as error:
        raise InvalidArgument(
            f"kernel: constants: {name}: {value!r} is no {dtype.short}: {error}"
        ) from None
    return len(packed), int.from_bytes(packed, "little")


def to_specializations(constants: Mapping[Any, Any], declared: Any) -> list[tuple[int, int, int]]:
    """(id, size, bits) of each, as the native module takes them; `declared` are the module's."""
    by_name = {name: (id_, dtype) for name, id_, dtype, _ in declared if name}
    by_id = {id_: (id_, dtype) for _, id_, dtype, _ in declared}
    found = []
    for name, value in constants.items():
        one = by_name.get(name) if isinstance(name, str) else by_id.get(name)
        if one is None:
            there = ", ".join(f"{n or '?'} ({i})" for n, i, _, _ in declared) or "none"
            raise InvalidArgument(f"kernel: constants: there is no {name!r}; there is {there}")
        found.append((one[0], *_number_bits(str(name), value, BY_CODE[one[1]])))
    return found


def specialize(
    make: Callable[[list[tuple[int, int, int]]], Kernel], constants: Mapping[Any, Any] | None
) -> Kernel:
    """Make a kernel with values of specialization constants."""
    if constants is not None and not isinstance(constants, Mapping):
        raise InvalidType(f"kernel: constants: a dict, not {type(constants)}")
    kernel = make([])
    if constants:  # their types are in the module
        kernel = make(to_specializations(constants, kernel._inspect()[5]))
    return kernel


def _is_u32(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < 1 << 32


def to_block(call: str, block: Any, shared: Any) -> tuple[tuple[int, int, int], int]:
    """(block, shared_bytes) of a CUDA kernel's options; 0: each launch says it."""
    given = (0, 0, 0) if block is None else block if isinstance(block, (tuple, list)) else (block,)
    if not 1 <= len(given) <= 3 or not all(_is_u32(one) for one in given):
        raise InvalidArgument(f"{call}: block: a number, or up to three of them, not {block!r}")
    if not _is_u32(shared):
        raise InvalidArgument(f"{call}: shared: bytes, not {shared!r}")
    x, y, z = (*given, 1, 1)[:3]
    return (x, y, z), shared


def create(
    context: Context,
    source: Source,
    constants: Mapping[Any, Any] | None,
    trusted: bool,
    block: Any,
    shared: int,
) -> Kernel:
    """Make a kernel (`Context.kernel`)."""
    launch = to_block("kernel", block, shared)

    def make(specializations: list[tuple[int, int, int]]) -> Kernel:
        made: Kernel = _native.kernel_create(
            context, source.fields, source.kind, trusted, specializations, *launch
        )
        made._entry = source.fields[2]
        return made

    return specialize(make, constants)
