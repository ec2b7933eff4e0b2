"""Sources of kernels, as calls take them: a path, bytes or a text, and what it is compiled with."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Union

from .errors import InvalidArgument, InvalidType, LoadFailed
from .values import Duration, Size, to_bytes, to_ns

Include = Union[Mapping[str, str], Iterable[Union[str, "os.PathLike[str]"]], str, None]
"""Files and folders for #include, or names and texts."""
LANGUAGES = {None: 0, "spirv": 1, "glsl": 2, "hlsl": 3, "cuda": 4}  # bh_language
_SUFFIXES = {".hlsl": "hlsl", ".cu": "cuda"}
_SPIRV = (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03")
IMAGES = (b"\x7fELF", b"\x50\xed\x55\xba")  # a cubin, a fat binary
_PTX = re.compile(rb"(\s|//[^\n]*\n|/\*.*?\*/)*\.version\s", re.DOTALL)
_FOREIGN = {
    ".wgsl": "WGSL: compile it with naga, or tint --format spirv",
    ".cl": "OpenCL C: compile it with clspv",
    ".slang": "Slang: compile it with slangc -target spirv",
    ".hip": "HIP: port it to GLSL or HLSL",
    ".metal": "Metal: port it to GLSL or HLSL",
}


class Source(NamedTuple):
    """A source."""

    kind: str
    """'text', which a sandboxed process compiles, 'spirv', or 'image', which is for CUDA."""
    fields: tuple[Any, ...]
    """(text, name, entry, tenant, options, defines, includes, compiler's options), as the native
    module takes it."""

    def defining(self, more: Mapping[str, object]) -> Source:
        """The same with more macros."""
        *before, defines, includes, options = self.fields
        return self._replace(fields=(*before, [*defines, *_to_texts(more)], includes, options))

    @property
    def cuda(self) -> bool:
        """Whether its kernels are for CUDA."""
        return self.kind == "image" or self.fields[4]["language"] == LANGUAGES["cuda"]


def read(
    call: str,
    path: Any,
    *,
    source: Any,
    name: str | None,
    entry: str | None,
    defines: Mapping[str, object] | None,
    include: Any,
    language: str | None,
    options: str | Iterable[str] | None,
    optimize: bool,
    deadline: Duration,
    tenant: str | None,
    memory: Size | None,
) -> Source:
    """Take the arguments of `call`, and read the files that they name."""
    code, file_name = _read_code(call, source, path, language)
    kind = _find_kind(code, language)
    language = language or _SUFFIXES.get(Path(file_name or "").suffix, "glsl")
    if kind == "text" and not isinstance(code, str) and b"\0" in code:
        where = "the bytes are" if path is None or file_name is None else f"{path}: it is"
        raise InvalidArgument(
            f"{call}: {where} neither SPIR-V nor an image for CUDA nor a text in UTF-8"
        )
    if kind != "text" and (defines or include or options):
        what = "a SPIR-V module" if kind == "spirv" else "an image for CUDA"
        raise InvalidArgument(f"{call}: defines, include, options: {what} is compiled already")
    if kind == "image" and isinstance(code, str):
        code = code.encode()
    if name is None and file_name is not None and kind != "image":
        name = file_name if kind == "text" else file_name.removesuffix(".spv")
    if options is not None and not isinstance(options, str):
        options = " ".join(options)
    limits = {
        "unoptimized": not optimize,
        "language": LANGUAGES[language],
        "deadline": to_ns(deadline, f"{call}: deadline"),
        "memory": to_bytes(memory, f"{call}: memory"),
    }
    made = to_defines(call, defines, include)
    return Source(kind, (code, name, entry, tenant, limits, *made, options))


def to_defines(
    call: str, defines: Mapping[str, object] | None, include: Include
) -> tuple[list[tuple[str, str | None]], list[tuple[str, Any]]]:
    """Defines and includes, as the native module takes them."""
    if defines is not None and not isinstance(defines, Mapping):
        raise InvalidType(f"{call}: defines: a dict, not {type(defines)}")
    return _to_texts(defines or {}), _read_includes(call, include)


def _to_texts(defines: Mapping[str, object]) -> list[tuple[str, str | None]]:
    return [
        (key, None if value is None else str(int(value) if isinstance(value, bool) else value))
        for key, value in defines.items()
    ]


def _find_kind(code: str | bytes, language: str | None) -> str:
    if language not in (None, "spirv"):
        return "text"
    start = code[:4096].encode(errors="replace") if isinstance(code, str) else code[:4096]
    if language == "spirv" or start.startswith(_SPIRV):
        return "spirv"
    return "image" if start.startswith(IMAGES) or _PTX.match(start) else "text"


def _read_file(call: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        failed = LoadFailed(f"{call}: {path}: {error.strerror}")
        failed.errno = error.errno or 0
        raise failed from None
    except ValueError as error:
        raise InvalidArgument(f"{call}: {path!r}: {error}") from None


def _read_code(call: str, source: Any, path: Any, language: str | None) -> tuple[Any, str | None]:
    """(code, name)"""
    if language not in LANGUAGES:
        raise InvalidArgument(f"{call}: language: '{language}' is none of glsl, hlsl, cuda, spirv")
    if (source is None) == (path is None):
        raise InvalidArgument(f"{call}: give a path, or source=")
    if source is not None:
        if not isinstance(source, (str, bytes, bytearray, memoryview)):
            raise InvalidType(f"{call}: source: a text or bytes, not {type(source)}")
        return source if isinstance(source, str) else bytes(source), None
    if isinstance(path, str) and ("\n" in path or path.lstrip().startswith("#version")):
        raise InvalidArgument(f"{call}: path: this is a text, not a path: give it as source=")
    if isinstance(path, (bytes, bytearray, memoryview)):
        return bytes(path), None
    try:
        file = Path(os.fspath(path))
    except TypeError:
        raise InvalidType(f"{call}: a path or bytes, not {type(path)}") from None
    if file.suffix in _FOREIGN:
        raise InvalidArgument(f"{call}: {file}: it is {_FOREIGN[file.suffix]}")
    return _read_file(call, file), file.name


def _read_includes(call: str, include: Include) -> list[tuple[str, Any]]:
    """Files by name: of a mapping, or of files and folders."""
    if include is None:
        return []
    if isinstance(include, Mapping):
        return list(include.items())
    if isinstance(include, (str, os.PathLike)):
        include = [include]
    found: list[tuple[str, Any]] = []
    for one in include:
        path = Path(one)
        files = (
            sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        )
        root = path if path.is_dir() else path.parent
        found += [
            (file.relative_to(root).as_posix(), _read_file(f"{call}: include", file))
            for file in files
        ]
    return found
