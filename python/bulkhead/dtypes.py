"""Types of elements."""

from __future__ import annotations

import importlib
from typing import Any

from . import _native
from .errors import InvalidType


class DType(str):
    """The type of an array's elements: a text that NumPy takes, too, such as 'float32'.

    It equals each of its names: 'f32', 'f4', '<f4', numpy.float32, numpy.dtype('float32'). The
    names 'i8' and 'u8' are refused: they are one byte for kernels, and eight for NumPy.

    >>> DType("f32")
    DType('float32')
    >>> DType("float32") == "f32"
    True
    >>> DType("bfloat16").itemsize
    2
    """

    code: int
    short: str
    """As kernels and the command line name it: 'f32'."""
    typestr: str
    """As `__array_interface__` names it: '<f4'."""
    itemsize: int

    def __new__(cls, value: object) -> DType:
        """Find the type that `value` names, in whichever convention."""
        return value if isinstance(value, DType) else _find(value)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.code == other.code
        try:
            return self.code == _find(other).code
        except TypeError:
            return NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __repr__(self) -> str:
        return f"DType('{self}')"

    def __reduce__(self) -> tuple[type[DType], tuple[str]]:
        return DType, (str(self),)


def _make(code: int, name: str, short: str, typestr: str, itemsize: int) -> DType:
    dtype = str.__new__(DType, name)
    dtype.code, dtype.short, dtype.typestr, dtype.itemsize = code, short, typestr, itemsize
    return dtype


BY_CODE = [_make(*fields) for fields in _native.dtypes()]
_BY_NAME: dict[str, DType] = {}
for _dtype in BY_CODE:
    for _name in (str(_dtype), _dtype.short, _dtype.typestr, _dtype.typestr.lstrip("<|")):
        _BY_NAME.setdefault(_name, _dtype)
# "u1" is uint8, not raw bytes, and several types are "V1".
for _name in ("|u1", "u1"):
    _BY_NAME[_name] = _BY_NAME["uint8"]
# "u8" is one byte for kernels, and eight for NumPy.
_AMBIGUOUS = {"i8": "int8 or int64", "u8": "uint8 or uint64"}
for _name in ("|V1", "V1", "|V2", "V2", *_AMBIGUOUS):
    del _BY_NAME[_name]
_WITHOUT_FORMAT = {str(dtype) for dtype in BY_CODE if "V" in dtype.typestr}
_BY_NAME["float"] = _BY_NAME["float64"]
_BY_NAME["int"] = _BY_NAME["int64"]
_BY_NAME["f8e4m3"] = _BY_NAME["f8_e4m3"]
_BY_NAME["f8e5m2"] = _BY_NAME["f8_e5m2"]


def _find(value: object) -> DType:
    name: Any = value
    if not isinstance(value, str):
        if getattr(value, "byteorder", "=") == ">":
            raise InvalidType(f"dtype: {value} is big-endian; arrays are little-endian")
        # numpy.dtype and torch-like objects have a name; classes such as numpy.float32 are one.
        name = getattr(value, "__name__", None) or getattr(value, "name", None)
    found = _BY_NAME.get(name) if isinstance(name, str) else None
    if name in _AMBIGUOUS:
        raise InvalidType(
            f"dtype: '{name}' is one byte for kernels, eight for NumPy: write {_AMBIGUOUS[name]}"
        )
    if found is None:
        raise InvalidType(f"dtype: {value!r} is no type that the library has")
    return found


def of_array(array: object) -> DType | None:
    """The type of an array whose type NumPy has no format for, as the package ml_dtypes has
    them.
    """
    dtype = getattr(array, "dtype", None)
    name = getattr(dtype, "name", None)
    if getattr(dtype, "kind", "") == "V" and name in _WITHOUT_FORMAT:
        return _BY_NAME[name]
    return None


def for_numpy(dtype: DType) -> Any:
    """The type of NumPy arrays of it. bfloat16 and 8-bit floats are those of the package ml_dtypes;
    without it their bits are integers.
    """
    if str(dtype) not in _WITHOUT_FORMAT:
        return str(dtype)
    try:
        return getattr(importlib.import_module("ml_dtypes"), dtype)
    except (ImportError, AttributeError):
        return f"uint{8 * dtype.itemsize}"
