"""Verdicts: what became of a submission."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from ._status import Reason, Status, Subject


class Executed(enum.StrEnum):
    """Whether a submission executed."""

    NO = "no"
    """It never started: no side effects."""
    UNKNOWN = "unknown"
    """It had started, and did not finish."""
    YES = "yes"
    """It ran to its end."""


class Blame(enum.StrEnum):
    """How certain it is that the submission caused the failure."""

    NONE = "none"
    """It is READY, or the cause lies outside the submission and its worker."""
    SUSPECTED = "suspected"
    """Its worker was given another kernel, too, which may be the cause: submit it with
    alone=True.
    """
    CERTAIN = "certain"
    """Its worker was given nothing else."""


class Class(enum.StrEnum):
    """What kind of failure a status is: who has to act, and whether trying again can help."""

    NONE = "none"
    CALLER = "caller"
    INPUT = "input"
    GUILTY = "guilty"
    VICTIM = "victim"
    ENVIRON = "environ"


_CLASSES = [Class.NONE, Class.CALLER, Class.INPUT, Class.GUILTY, Class.VICTIM, Class.ENVIRON]
_EXECUTED = [Executed.NO, Executed.UNKNOWN, Executed.YES]
_BLAME = [Blame.NONE, Blame.SUSPECTED, Blame.CERTAIN]


@dataclass(frozen=True)
class Verdict:
    """What became of a submission. It is final."""

    status: Status
    """OK: it is READY. Any other: it is poisoned."""
    kind: Class
    """The class of the failure. A dependent of a poisoned event is a victim."""
    executed: Executed
    """Whether it ran."""
    signal: int
    """The signal that killed the worker; 0: none."""
    exit_code: int
    """Of the worker; -1: it did not exit."""
    vk_result: int
    """The VkResult; 0: none."""
    errno: int
    """0: none."""
    event: int
    """The id of this event."""
    origin: int
    """The id of the event where the poison began."""
    hops: int
    """Dependencies between origin and this event; 0: it began here."""
    other_causes: int
    """How many other origins were known."""
    command_index: int | None
    """The command in its submission."""
    worker_pid: int
    """The worker of the origin; 0: it never reached a worker."""
    limit: int
    """The limit that was hit, in ns or bytes; 0: none."""
    submitted_ns: int
    """CLOCK_MONOTONIC, as are the other times."""
    started_ns: int
    """When its turn came on the worker; 0: never."""
    ended_ns: int
    """When it ended."""
    kernel: str
    """The name of the kernel; '': none."""
    kernel_hash: bytes
    """What identifies the kernel."""
    stream: str
    """The name of the submission's stream."""
    message: str
    """One paragraph for a person."""
    blame: Blame
    """How certain it is that the submission, or its origin, is the cause."""
    device_ns: int
    """How long the device was busy with it (timed=True); 0: not known."""
    device: str
    """The device of the worker; '': no worker was involved."""
    reason: Reason
    """Why, where the status alone does not say it."""
    subject: Subject
    """What subject_name names."""
    subject_name: str
    """What the reason is about; '': nothing."""
    value: int
    """What was asked for, where the reason has a number for it."""

    @property
    def code(self) -> str:
        """The name of the status, such as 'DEADLINE'."""
        return self.status.name

    @property
    def ready(self) -> bool:
        """Whether the submission ran to its end."""
        return self.status == Status.OK

    @property
    def advice(self) -> str:
        """What to do about it."""
        return self.reason.advice or self.status.advice

    @property
    def seconds(self) -> float:
        """How long it took on its worker, compiling included; 0.0: it never started."""
        return (self.ended_ns - self.started_ns) / 1e9 if self.started_ns else 0.0

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.message else self.code


def class_of(number: int) -> Class:
    """The class that the library calls `number`."""
    return _CLASSES[number]


def from_fields(fields: tuple[Any, ...]) -> Verdict:
    """Make a verdict of what the native module says, in its order."""
    values = list(fields)
    values[0] = Status(fields[0])
    values[1] = _CLASSES[fields[1]]
    values[2] = _EXECUTED[fields[2]]
    values[11] = None if fields[11] == 0xFFFFFFFF else fields[11]
    # The message of a quarantine names the function of C.
    values[20] = fields[20].replace("bh_quarantine_release", "Context.quarantine_release()")
    values[21] = _BLAME[fields[21]]
    values[24] = Reason(fields[24])
    values[25] = Subject(fields[25])
    return Verdict(*values)
