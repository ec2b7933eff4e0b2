"""Sources of kernels, as calls take them: a path, bytes or a text, and what it is compiled with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .errors import InvalidArgument, InvalidType, LoadFailed
from .values import Duration, Size, to_bytes, to_ns

LANGUAGES = {None: 0, "spirv": 1, "glsl": 2, "hlsl": 3}  # bh_language
_SPIRV = (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03")
_FOREIGN = {
    ".wgsl": "WGSL: compile it with naga, or tint --format spirv",
    ".cl": "OpenCL C: compile it with clspv",
    ".slang": "Slang: compile it with slangc -target spirv",
    ".cu": "CUDA: bulkhead run takes it; for Python port it to GLSL or HLSL",
    ".hip": "HIP: port it to GLSL or HLSL",
    ".metal": "Metal: port it to GLSL or HLSL",
    ".ptx": "PTX: compile its source for Vulkan",
}


class Source(NamedTuple):
    """A source."""

    compiles: bool
    """False: it is SPIR-V."""
    fields: tuple[Any, ...]
    """(text, name, entry, tenant, options, defines, includes), as the native module takes it."""


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
    optimize: bool,
    deadline: Duration,
    tenant: str | None,
    memory: Size | None,
) -> Source:
    """Take the arguments of `call`, and read the files that they name."""
    code, file_name, hlsl = _read_code(call, source, path, language)
    compiles = language != "spirv" and (isinstance(code, str) or not code.startswith(_SPIRV))
    if compiles and not isinstance(code, str) and b"\0" in code:
        where = "the bytes are" if path is None or file_name is None else f"{path}: it is"
        raise InvalidArgument(f"{call}: {where} neither SPIR-V nor a text in UTF-8")
    if not compiles and (defines or include):
        raise InvalidArgument(f"{call}: defines, include: a SPIR-V module is compiled already")
    if name is None and file_name is not None:
        name = file_name if compiles else file_name.removesuffix(".spv")
    if defines is not None and not isinstance(defines, Mapping):
        raise InvalidType(f"{call}: defines: a dict, not {type(defines)}")
    options = {
        "unoptimized": not optimize,
        "language": LANGUAGES["hlsl" if hlsl else "glsl"],
        "deadline": to_ns(deadline, f"{call}: deadline"),
        "memory": to_bytes(memory, f"{call}: memory"),
    }
    texts = [
        (key, None if value is None else str(int(value) if isinstance(value, bool) else value))
        for key, value in (defines or {}).items()
    ]
    includes = _read_includes(call, include)
    return Source(compiles, (code, name, entry, tenant, options, texts, includes))


def _read_file(call: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        failed = LoadFailed(f"{call}: {path}: {error.strerror}")
        failed.errno = error.errno or 0
        raise failed from None
    except ValueError as error:
        raise InvalidArgument(f"{call}: {path!r}: {error}") from None


def _read_code(
    call: str, source: Any, path: Any, language: str | None
) -> tuple[Any, str | None, bool]:
    """(code, name, whether it is HLSL)"""
    if language not in (None, "glsl", "hlsl", "spirv"):
        raise InvalidArgument(f"{call}: language: '{language}' is none of glsl, hlsl, spirv")
    if (source is None) == (path is None):
        raise InvalidArgument(f"{call}: give a path, or source=")
    if source is not None:
        if not isinstance(source, (str, bytes, bytearray, memoryview)):
            raise InvalidType(f"{call}: source: a text or bytes, not {type(source)}")
        return source if isinstance(source, str) else bytes(source), None, language == "hlsl"
    if isinstance(path, str) and ("\n" in path or path.lstrip().startswith("#version")):
        raise InvalidArgument(f"{call}: path: this is a text, not a path: give it as source=")
    if isinstance(path, (bytes, bytearray, memoryview)):
        return bytes(path), None, language == "hlsl"
    try:
        file = Path(os.fspath(path))
    except TypeError:
        raise InvalidType(f"{call}: a path or bytes, not {type(path)}") from None
    if file.suffix in _FOREIGN:
        raise InvalidArgument(f"{call}: {file}: it is {_FOREIGN[file.suffix]}")
    return _read_file(call, file), file.name, language == "hlsl" or file.suffix == ".hlsl"


def _read_includes(
    call: str, include: Iterable[Any] | Mapping[str, str] | None
) -> list[tuple[str, Any]]:
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
