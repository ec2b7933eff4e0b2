"""Run GPU kernels that may crash or hang, and stay alive.

A `Context` owns workers: sandboxed processes that run kernels on a Vulkan device. A `Stream` is an
ordered queue of submissions with a worker of its own. `Stream.launch` submits a `Kernel` with
`Buffer` arguments and returns an `Event`. If the kernel crashes, hangs or takes too much memory,
waiting for the event raises `Poisoned`, whose verdict says what happened; the program goes on.

>>> import bulkhead as bh
>>> with bh.Context() as ctx:
...     stream = ctx.stream()
...     x = ctx.asarray([1.0, 2.0, 3.0], "float32")
...     y = stream.eval("2*x + 1", x=x)
...     y.tolist()
[3.0, 5.0, 7.0]

docs/python.md is a tutorial.
"""

from __future__ import annotations

from . import _install, _native
from ._status import Reason, Status, Subject
from .buffer import Buffer, copy, fill, out, read
from .completion import as_completed
from .context import Context, Quarantined, Tensor
from .cuda import CudaView
from .dtypes import DType
from .errors import (
    CallerError,
    Cancelled,
    Closed,
    CompileFailed,
    DeadlinePassed,
    EnvironError,
    Error,
    Forked,
    GuiltyError,
    InputError,
    InvalidArgument,
    InvalidType,
    KernelError,
    LoadFailed,
    NoMemory,
    NotCorrect,
    Poisoned,
    SystemFailed,
    Timeout,
    VictimError,
    ViewError,
    WorkerDied,
)
from .event import Event
from .history import History
from .judgement import Judgement, Largest, Timing, Wrong
from .judging import Judge, judge
from .kernel import Kernel, KernelInfo, Parameter, shaders
from .mapping import like, map
from .module import Module
from .report import Report
from .stream import Stream
from .sweeping import Sweep, sweep
from .triton import triton_kernel
from .variant import Variant
from .verdict import Blame, Class, Executed, Verdict

Launch = _native.Launch
__version__ = _native.version()

__all__ = [
    "Blame",
    "Buffer",
    "CallerError",
    "Cancelled",
    "Class",
    "Closed",
    "CompileFailed",
    "Context",
    "CudaView",
    "DType",
    "DeadlinePassed",
    "EnvironError",
    "Error",
    "Event",
    "Executed",
    "Forked",
    "GuiltyError",
    "History",
    "InputError",
    "InvalidArgument",
    "InvalidType",
    "Judge",
    "Judgement",
    "Largest",
    "Kernel",
    "KernelError",
    "KernelInfo",
    "Launch",
    "LoadFailed",
    "Module",
    "NoMemory",
    "NotCorrect",
    "Parameter",
    "Poisoned",
    "Quarantined",
    "Reason",
    "Report",
    "Status",
    "Stream",
    "Subject",
    "Sweep",
    "SystemFailed",
    "Tensor",
    "Timeout",
    "Timing",
    "Variant",
    "Verdict",
    "VictimError",
    "ViewError",
    "WorkerDied",
    "Wrong",
    "as_completed",
    "copy",
    "fill",
    "judge",
    "like",
    "map",
    "out",
    "read",
    "shaders",
    "sweep",
    "triton_kernel",
]
