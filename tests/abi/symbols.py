"""Every function of the public headers is a symbol of its name, and a call by that name arrives.

Each is found with dlsym and called through ctypes with zeros for all its arguments, which every
function must survive (a NULL is refused, never followed). What a symbol returns is checked where
zeros leave no choice: a status is BH_INVALID_ARGUMENT, or BH_OK for what accepts NULL.

Usage: symbols.py INCLUDE_DIR LIBRARY JUDGE_LIBRARY
"""

import ctypes
import pathlib
import re
import sys

BH_OK, BH_INVALID_ARGUMENT = 0, 3
ARGUMENTS = 12  # more than any function has
# What accepts zeros, besides what begins with bh_status_ or ends in _retain and _release.
ACCEPTS = {
    "bh_context_destroy",
    "bh_event_wait_all",
    "bh_verdict_classify",
}



class Binding(ctypes.Structure):  # bh_binding, returned by value
    _fields_ = [
        ("set", ctypes.c_uint32),
        ("binding", ctypes.c_uint32),
        ("buffer", ctypes.c_void_p),
        ("offset", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("access", ctypes.c_int),
        ("element", ctypes.c_uint32),
    ]


include, library, judge = sys.argv[1:]
text = "".join(path.read_text() for path in sorted(pathlib.Path(include, "bulkhead").glob("*.h")))
text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
declared = re.findall(r"^BH_API\s+([^;(]*?)\b(bh_\w+)\(", text, flags=re.M)
if len(declared) < 80:
    sys.exit(f"the headers were not understood: {len(declared)} functions")
inline = re.findall(r"^(?:BH_INLINE|static inline)\s[^(]*?\b(bh_\w+)\(", text, flags=re.M)
if inline:
    sys.exit(f"these are no symbols: {', '.join(inline)}")

ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
wrong = []
for returns, name in declared:
    home = ctypes.CDLL(judge if name.startswith("bh_judge") else library)
    try:
        function = getattr(home, name)
    except AttributeError:
        wrong.append(f"dlsym does not find {name}")
        continue
    is_status = re.search(r"\bbh_status\b", returns) is not None
    function.restype = ctypes.c_int if is_status else ctypes.c_void_p
    if returns.strip() == "bh_binding":
        function.restype = Binding
    print(name, flush=True)  # the last line names what dies
    result = function(*[ctypes.c_void_p(None)] * ARGUMENTS)
    accepts = name in ACCEPTS or name.endswith(("_retain", "_release"))
    if is_status and result not in ((BH_OK, BH_INVALID_ARGUMENT) if accepts else (BH_INVALID_ARGUMENT,)):
        wrong.append(f"{name}(0, …) returns {result}")
access = {"bh_bind_read": 1, "bh_bind_write": 2, "bh_bind_read_write": 3}
for name, bits in access.items():
    bind = getattr(ctypes.CDLL(library), name)
    bind.restype, bind.argtypes = Binding, [ctypes.c_uint32, ctypes.c_void_p]
    got = bind(5, 64)
    values = tuple(getattr(got, field) for field, _ in Binding._fields_)
    if values != (0, 5, 64, 0, 2**64 - 1, bits, 0):
        wrong.append(f"{name}(5, 64) is {values}")
if wrong:
    sys.exit("\n".join(wrong))
print(f"{len(declared)} functions")
