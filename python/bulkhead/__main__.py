"""`python -m bulkhead` is the command `bulkhead`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def find_program() -> str | None:
    """Return the program: the package's own, that of its build or prefix, or that of the PATH."""
    package = Path(__file__).resolve().parent
    around = [parent / "bin" for parent in package.parents]
    for place in (package / "bin", *around, Path(sys.prefix) / "bin"):
        program = place / "bulkhead"
        if program.is_file() and os.access(program, os.X_OK):
            return str(program)
    return shutil.which("bulkhead")


def main() -> int:
    """Become the program."""
    program = find_program()
    if program is None:
        print("python -m bulkhead: the program bulkhead is not installed", file=sys.stderr)
        return 127
    os.execv(program, ["bulkhead", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
