"""Variants: a kernel with one set of values, and what became of it."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

Values = dict[Any, Any]
"""What a variant has for each name of the space, or for the id of a specialization constant."""


@dataclass(frozen=True)
class Variant:
    """A kernel with one set of values, and what became of it."""

    number: int
    """Its place in the space, of which the last name varies fastest."""
    values: Values
    verdict: str
    """'OK', 'WRONG', or the name of the status with which it failed, such as 'DEADLINE'."""
    error: str = ""
    """What is wrong: what the compiler, the check or the verdict says; '' if nothing is."""
    times: tuple[float, ...] = ()
    """Seconds of each timed run; () if it is not right."""
    device: bool = True
    """Whether the times are the device's; False: the host's, because the device has none."""
    cached: bool = False
    """Whether the result comes from the cache."""

    @property
    def ok(self) -> bool:
        """Whether it ran to its end, and the check had nothing against its outputs."""
        return self.verdict == "OK"

    @property
    def seconds(self) -> float | None:
        """The median of the times; None if it is not right."""
        return statistics.median(self.times) if self.times else None

    @property
    def spread(self) -> float | None:
        """The distance between the quartiles of the times, relative to the median: 0.02 is 2 %."""
        if not self.times:
            return None
        if len(self.times) < 2:
            return 0.0
        low, median, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return (high - low) / median

    @property
    def outcome(self) -> str:
        """The times, or what is wrong, as a text."""
        if self.seconds is None:
            return f"{self.verdict}: {self.error}" if self.error else self.verdict
        return f"{1e6 * self.seconds:.3f} us, spread {100 * (self.spread or 0):.1f} %"

    def __str__(self) -> str:
        named = " ".join(f"{name}={value}" for name, value in self.values.items())
        return f"{named}: {self.outcome}"
