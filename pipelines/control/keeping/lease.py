"""The right to act on a job: a numbered lease that one autopilot holds, and that passes on when its holder stops renewing it.

    autopilot/J/leases/NUMBER.json   created exclusively; rewritten by its holder every RENEW_S seconds

The highest number has the right. Who waits and sees the newest file unchanged for LEASE_S seconds of its own clock creates the
next one, which only one can: no clocks are compared. The number is the fencing token: every intent to act names it, is created
exclusively under the job's next number, and is preceded by a look at whether a higher lease exists. A holder acts only within
LEASE_S - MARGIN_S of its last renewal by its own clock. Flink itself knows no token: a process that is halted between that look
and its request, for as long as a lease lasts, may still send it; its successor then sees requirements that it did not set,
treats them as someone else's rescale, and leaves them.
"""

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import Field

from models.errors import SluiceError
from models.schema import SCHEMA_VERSION, Format, Label, PositiveInt
from pipelines.store.locks import this_process
from pipelines.store.workspace import Damaged, Missing, Workspace, to_json

LEASE_S: Final = 30.0
RENEW_S: Final = 8.0
MARGIN_S: Final = 10.0
_FILE: Final = re.compile(r"(\d{12})\.json")


class LeaseLost(SluiceError):
    """Another autopilot has the job now."""


class Leased(Format):
    """A lease as it is stored."""

    schema_version: Literal[1] = SCHEMA_VERSION
    number: PositiveInt = Field(description="The fencing token.")
    holder: Label = Field(description="Process and host.")
    beat: str = Field(description="Another text at each renewal.")
    released: bool = Field(False, description="Whether its holder has ended.")


@dataclass
class Lease:
    """A lease that this process holds."""

    workspace: Workspace
    job: str
    number: int
    holder: str
    clock: Callable[[], float]
    renewed_s: float

    def renew(self, *, always: bool = False) -> None:
        """Renew it, if that is due. One that may have passed on meanwhile is taken again under the next number.

        Raises:
            LeaseLost: another autopilot has it.
        """
        since_s = self.clock() - self.renewed_s
        if since_s > LEASE_S - MARGIN_S:
            self._take_again()
        elif always or since_s >= RENEW_S:
            self.check()
            began_s = self.clock()
            self.workspace.write_bytes(_key(self.job, self.number), to_json(self._stored(released=False)))
            self.renewed_s = began_s

    def _take_again(self) -> None:
        """After a halt of this process; of all that try, one can."""
        newest, began_s = newest_number(self.workspace, self.job), self.clock()
        if newest == self.number:
            self.number += 1
            try:
                self.workspace.create_bytes(_key(self.job, self.number), to_json(self._stored(released=False)))
            except FileExistsError:
                newest = self.number
            else:
                self.renewed_s = began_s
                return
        raise LeaseLost(f"another autopilot acts on {self.job}, under lease {newest}")

    def check(self) -> None:
        """Raise unless this process may act now."""
        newest = newest_number(self.workspace, self.job)
        if newest != self.number:
            raise LeaseLost(f"another autopilot acts on {self.job}, under lease {newest} after {self.number}")
        if self.clock() - self.renewed_s > LEASE_S - MARGIN_S:
            raise LeaseLost(
                f"lease {self.number} of {self.job} was not renewed for {self.clock() - self.renewed_s:.0f} s, so another "
                "autopilot may have taken over"
            )

    def release(self) -> None:
        """Let another autopilot begin at once."""
        if newest_number(self.workspace, self.job) == self.number:
            self.workspace.write_bytes(_key(self.job, self.number), to_json(self._stored(released=True)))

    def _stored(self, *, released: bool) -> Leased:
        return Leased(number=self.number, holder=self.holder, beat=secrets.token_hex(8), released=released)


@dataclass
class LeaseSeeker:
    """Tries to get the lease of a job, again and again."""

    workspace: Workspace
    job: str
    clock: Callable[[], float]
    holder: str = ""

    def __post_init__(self) -> None:
        self.holder = self.holder or this_process()
        self._seen: tuple[bytes, float] = (b"", self.clock())
        self.held_by: str | None = None
        """Who has it, after an attempt that failed."""

    def attempt(self) -> Lease | None:
        """The lease, if it is free, was released, or was not renewed for LEASE_S since it was first seen here."""
        newest = newest_number(self.workspace, self.job)
        if newest and not self._is_free(newest):
            return None
        now_s = self.clock()
        lease = Lease(self.workspace, self.job, newest + 1, self.holder, self.clock, now_s)
        try:
            self.workspace.create_bytes(_key(self.job, lease.number), to_json(lease._stored(released=False)))
        except FileExistsError:
            return None
        for old in range(max(newest - 3, 1), newest):
            self.workspace.delete(_key(self.job, old))
        return lease

    def _is_free(self, number: int) -> bool:
        try:
            content = self.workspace.read_bytes(_key(self.job, number))
            stored = self.workspace.read(_key(self.job, number), Leased)
        except Missing:
            return False
        except Damaged:
            stored, content = None, b"damaged"
        if content != self._seen[0]:
            self._seen = (content, self.clock())
        self.held_by = None if stored is None else stored.holder
        released = stored is not None and stored.released
        return released or self.clock() - self._seen[1] > LEASE_S


def newest_number(workspace: Workspace, job: str) -> int:
    """Number of the newest lease; 0 without one."""
    names = (_FILE.fullmatch(key.rpartition("/")[2]) for key in workspace.list(f"autopilot/{job}/leases"))
    return max((int(match[1]) for match in names if match), default=0)


def _key(job: str, number: int) -> str:
    return f"autopilot/{job}/leases/{number:012d}.json"
