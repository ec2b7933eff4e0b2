"""The file in which sweeps keep results."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from pathlib import Path
from typing import Any

from .errors import InvalidArgument, LoadFailed, SystemFailed
from .variant import Values, Variant

_SCHEMA = 1
_UNSAVED = 16  # results that a killed process may lose


class Cache:
    """Results in a file, by the hash of all that they depend on. Without a path it keeps none."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._path = None if path is None else Path(path)
        self._results: dict[str, Any] = {}
        self._unsaved = 1  # a file that cannot be written is known before the first result
        if self._path is not None:
            self._load(self._path)
            self.save()

    def _load(self, path: Path) -> None:
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            failed = LoadFailed(f"sweep: cache: {path}: {error.strerror}")
            failed.errno = error.errno or 0
            raise failed from None
        try:
            found = json.loads(text)
            schema, digest, self._results = found["sweep"], found["sha256"], found["results"]
        except (ValueError, KeyError, TypeError, RecursionError):
            schema = digest = None
        if schema is not None and schema != _SCHEMA:
            what = f"another version of this package has written it (schema {schema})"
        elif digest is None or digest != digest_of(self._results):
            what = "it is damaged, or no cache of a sweep"
        else:
            self._unsaved = 0
            return
        raise InvalidArgument(f"sweep: cache: {path}: {what}: remove it, or name another file")

    def get(self, key: str, number: int, values: Values) -> Variant | None:
        entry = self._results.get(key)
        if entry is None:
            return None
        verdict, error, times, device = entry
        return Variant(number, values, verdict, error, tuple(times), device, cached=True)

    def put(self, key: str, one: Variant) -> None:
        self._results[key] = [one.verdict, one.error, list(one.times), one.device]
        self._unsaved += 1
        if self._unsaved >= _UNSAVED:
            self.save()

    def save(self) -> None:
        """Write the whole file beside the old one, and put it in its place."""
        if self._unsaved == 0 or self._path is None:
            return
        part = self._path.with_name(
            f"{self._path.name}.{os.getpid()}-{threading.get_native_id()}.part"
        )
        whole = {"sweep": _SCHEMA, "sha256": digest_of(self._results), "results": self._results}
        try:
            with open(part, "w") as file:
                json.dump(whole, file, indent=0)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, self._path)
        except OSError as error:
            failed = SystemFailed(f"sweep: cache: {self._path}: {error.strerror}")
            failed.errno = error.errno or 0
            raise failed from None
        finally:
            part.unlink(missing_ok=True)
        self._unsaved = 0


def digest_of(what: Any) -> str:
    """A hash of something that JSON can say, or of the texts of what it cannot."""
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()
