"""Exceptions.

Their hierarchy is that of the library's classes of statuses: who has to act. Those of a poisoned
event are `Poisoned`, too, and carry the verdict.

    Error
    ├── CallerError      an argument or a call is wrong: the same call fails again
    │   ├── InvalidArgument (ValueError), InvalidType (TypeError)
    │   ├── ViewError (BufferError)
    │   └── Closed, Forked
    ├── KernelError      the kernel or its data
    │   ├── InputError   refused before it ran
    │   │   └── CompileFailed, LoadFailed
    │   ├── GuiltyError  a crash, a hang, a limit
    │   │   └── WorkerDied, DeadlinePassed
    │   └── NotCorrect   a judge says so, for one of these reasons or because of its results
    ├── VictimError      lost with something else: it can be submitted again
    │   └── Cancelled
    ├── EnvironError     the machine cannot do it now
    │   └── NoMemory (MemoryError), SystemFailed (OSError)
    ├── Timeout (TimeoutError)  a wait ended; nothing has changed
    └── Poisoned         of an event, with its verdict
"""

from __future__ import annotations

import re
from errno import EMFILE, ENOMEM
from typing import TYPE_CHECKING, Any, cast

from ._status import Reason, Status, Subject
from .verdict import Blame, Class, Executed, Verdict

if TYPE_CHECKING:
    from .event import Event
    from .judgement import Judgement


class Error(Exception):
    """Every exception of this package."""

    status: Status = Status.OK
    reason: Reason = Reason.NONE
    """Why, where the status alone does not say it."""
    subject: Subject = Subject.NONE
    """What subject_name names."""
    subject_name: str = ""
    """Such as 'options.spares', or a file; '': nothing is named."""
    value: int = 0
    """What was asked for or found, if the reason has a number for it."""
    limit: int = 0
    """Its limit."""

    def __init__(self, message: str = "", *, status: Status | None = None) -> None:
        super().__init__(message)
        if status is not None:
            self.status = status

    @property
    def code(self) -> str:
        """The name of the status, such as 'INVALID_ARGUMENT'."""
        return self.status.name

    @property
    def advice(self) -> str:
        """What to do about it."""
        return self.reason.advice or self.status.advice


class CallerError(Error):
    """An argument or a call is wrong: the same call fails again."""

    status = Status.INVALID_ARGUMENT


class InvalidArgument(CallerError, ValueError):
    """An argument has a wrong value. The message names it."""


class InvalidType(CallerError, TypeError):
    """An argument has a wrong type. The message names it."""


class ViewError(CallerError, BufferError):
    """A view and a submission would use one memory at the same time, or memory has no address."""


class Closed(CallerError):
    """The object, or its context, was closed."""

    status = Status.CLOSED


class Forked(CallerError):
    """The context belongs to the parent process."""

    status = Status.FORKED


class KernelError(Error):
    """The kernel or its data is wrong."""


class InputError(KernelError):
    """The kernel or its data was refused before it ran."""


class CompileFailed(InputError):
    """The kernel could not be compiled."""

    status = Status.COMPILE_FAILED
    log: str = ""
    """The compiler's errors and warnings."""


class LoadFailed(InputError):
    """An input or a kernel could not be loaded from its file."""

    status = Status.LOAD_FAILED
    errno: int = 0


class GuiltyError(KernelError):
    """The kernel crashed, hung or exceeded a limit."""


class WorkerDied(GuiltyError):
    """The kernel ended its worker: a crash, an exit, a forbidden system call."""


class DeadlinePassed(GuiltyError):
    """The kernel ran until its deadline."""

    status = Status.DEADLINE


class NotCorrect(KernelError):
    """A judge says that a kernel does not compute what its task wants (`Judgement.check`)."""

    status = Status.NOT_CORRECT
    judgement: Judgement | None = None

    @property
    def code(self) -> str:
        """The verdict, such as 'WRONG' or 'DEADLINE'."""
        return self.judgement.verdict if self.judgement else super().code


class VictimError(Error):
    """Lost with something else: it can be submitted again."""


class Cancelled(VictimError):
    """It was cancelled."""

    status = Status.CANCELLED


class EnvironError(Error):
    """The machine cannot do it now; `python -m bulkhead doctor` can say why."""


class NoMemory(EnvironError, MemoryError):
    """The host is out of memory."""

    status = Status.NO_MEMORY


class SystemFailed(EnvironError, OSError):
    """A system call failed."""

    status = Status.SYSTEM
    errno: int = 0


class Timeout(Error, TimeoutError):
    """A wait ended before what it waits for. Nothing has changed: wait again, or cancel."""

    status = Status.TIMEOUT


class Poisoned(Error):
    """A submission was poisoned. Its verdict says what happened.

    Each is an instance of a class of failures, too: `KernelError`, `VictimError`, `EnvironError`.
    """

    verdict: Verdict | None = None
    """None: the call only knows the status."""
    event: Event | None = None

    @property
    def executed(self) -> Executed:
        """Whether the submission ran."""
        return self.verdict.executed if self.verdict else Executed.UNKNOWN

    @property
    def blame(self) -> Blame:
        """How certain it is that the submission, or its origin, is the cause."""
        return self.verdict.blame if self.verdict else Blame.NONE

    def __reduce__(self) -> tuple[Any, ...]:
        kept = {name: value for name, value in vars(self).items() if name in ("log", "errno", *_WHY)}
        return _unpickle, (_type_of_poisoned(self), str(self), self.status, self.verdict), kept


# -- by status -------------------------------------------------------------------------------------

_BY_CLASS: dict[Class, type[Error]] = {
    Class.NONE: Error,
    Class.CALLER: CallerError,
    Class.INPUT: InputError,
    Class.GUILTY: GuiltyError,
    Class.VICTIM: VictimError,
    Class.ENVIRON: EnvironError,
}
_BY_STATUS: dict[Status, type[Error]] = {
    Status.TIMEOUT: Timeout,
    Status.INVALID_ARGUMENT: InvalidArgument,
    Status.TOO_LARGE: InvalidArgument,
    Status.NO_MEMORY: NoMemory,
    Status.SYSTEM: SystemFailed,
    Status.FORKED: Forked,
    Status.CLOSED: Closed,
    Status.WORKER_SIGNAL: WorkerDied,
    Status.WORKER_EXIT: WorkerDied,
    Status.SECCOMP: WorkerDied,
    Status.DEADLINE: DeadlinePassed,
    Status.LOAD_FAILED: LoadFailed,
    Status.COMPILE_FAILED: CompileFailed,
    Status.CANCELLED: Cancelled,
}
_WHY = ("reason", "subject", "subject_name", "value", "limit")
_CALLS = {  # of the library; those of others are the end of their names
    "buffer_create": "empty",
    "buffer_cuda_device": "cuda",
    "buffer_map": "view",
    "buffer_write_cuda": "array",
    "context_create": "Context",
    "cuda_view_create": "cuda",
    "judge_create": "Judge",
    "kernel_create_source": "kernel",
    "kernel_create_spirv": "kernel",
    "kernel_inspect": "kernel",
    "quarantine_list": "quarantined",
    "queue_create": "Event",
    "stream_create": "stream",
}
_OBJECTS = r"(buffer|context|file|judge|kernel|module|queue|stream)_"
_poisoned: dict[type[Error], type[Poisoned]] = {}


def _type_of(status: Status) -> type[Error]:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return _BY_CLASS[status.kind]


def _poisoned_type(base: type[Error]) -> type[Poisoned]:
    """The class that is both `Poisoned` and `base`."""
    found = _poisoned.get(base)
    if found is None:
        names = {"__doc__": Poisoned.__doc__, "__module__": __name__}
        made = type(f"Poisoned{base.__name__}", (Poisoned, base), names)
        found = _poisoned[base] = cast(type[Poisoned], made)
    return found


def _type_of_poisoned(error: Poisoned) -> type[Error]:
    return next(base for base, poisoned in _poisoned.items() if type(error) is poisoned)


def _unpickle(base: type[Error], message: str, status: Status, verdict: Verdict | None) -> Poisoned:
    error = _poisoned_type(base)(message, status=status)
    error.verdict = verdict
    return error


def _explain(error: Error, why: tuple[Any, ...]) -> None:
    """Set the reason, its subject and its numbers. `why` has all of them, or none."""
    for name, kind, value in zip(_WHY, (Reason, Subject, str, int, int), why):
        setattr(error, name, kind(value))


def _translate(message: str) -> str:
    """A message of the library with the names of Python: the call, and the option if it is about
    one.
    """

    def name(match: re.Match[str]) -> str:
        function, option = match[1], match[2]
        call = _CALLS.get(function) or re.sub(rf"^{_OBJECTS}", "", function)
        text = "eval: " if function.startswith("template_") else f"{call}: "
        if option:
            option = "memory" if option == "memory_limit" else option.removesuffix("_ns")
            text += f"{option}: it is "
        return text

    message = re.sub(r"\bBH_MEMORY_(HOST|AUTO)\b", lambda match: f"'{match[1].lower()}'", message)
    return re.sub(r"^bh_(\w+): (?:(?:options|source)\.(\w+) is )?", name, message)


def make_error(
    number: int, message: str, errno: int, cause: int, signal: int, why: tuple[Any, ...]
) -> Error:
    """Make the exception of a call that failed."""
    status = Status(number)
    message = _translate(message)
    if status == Status.NO_MEMORY or errno in (ENOMEM, EMFILE):
        message += "; release() buffers that you no longer need "
        message += "(a notebook's Out keeps what cells show)"
    error = _type_of(status)(message, status=status)
    _explain(error, why)
    if isinstance(error, (LoadFailed, SystemFailed)):
        error.errno = errno
    return error


def make_poison(event: Event | None, number: int, message: str, why: tuple[Any, ...]) -> Poisoned:
    """Make the exception of a poisoned event, or of the code of a verdict."""
    verdict = event.verdict if event is not None else None
    if verdict is None:
        status, kind, message = Status(number), Status(number).kind, _translate(message)
    else:
        status, kind, message = verdict.status, verdict.kind, str(verdict)
        if verdict.reason.advice:
            message += f"; {verdict.reason.advice}"
    lost = kind == Class.VICTIM and status.kind != kind
    if lost and event is not None and event._lost is not None:
        name, origin, is_output = event._lost
        message += f"; {name} is poisoned by event {origin}: write or fill it"
        if is_output:
            message += ", or bind it by bulkhead.out() if the kernel overwrites all of it"
    base = _type_of(status)
    if lost:
        base = VictimError
    error = _poisoned_type(base)(message, status=status)
    _explain(error, tuple(getattr(verdict, name) for name in _WHY) if verdict is not None else why)
    error.verdict = verdict
    error.event = event
    if isinstance(error, CompileFailed) and event is not None:
        error.log = event._log
    if isinstance(error, (LoadFailed, SystemFailed)) and verdict is not None:
        error.errno = verdict.errno
    return error


def rename(error: Error, *names: tuple[str, str]) -> None:
    """Name calls and arguments in a message as those know them who called a Python function:
    (pattern, replacement), ...
    """
    message = str(error)
    for pattern, name in names:
        message = re.sub(pattern, name, message, count=1)
    error.args = (message,)


def make_view_error(message: str) -> ViewError:
    """Make the exception of a view that is in the way."""
    return ViewError(message)


def make_type_error(message: str) -> InvalidType:
    """Make the exception of an argument of a wrong type."""
    return InvalidType(message)
