"""The writer's lock of a run at a remote: one machine at a time continues a run.

<remote>/locks/<run>.json   who continues the run, since when, and when it last said so

It is created and replaced by conditional writes only, so that of several machines one gets it. Its holder renews it; a
machine that has died does not, and whoever comes next reads the owner and the age. A holder that was frozen meanwhile
learns at its next renewal that another machine has its lock; nothing that it did is lost or mixed, since its push is
refused where the histories part.
"""

import os
import socket
import time
from collections.abc import Callable
from secrets import token_hex
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coevo.lineage.remote.remote_store import Overtaken, SmallFile, Store, one_line
from coevo.utilities.errors import CoevoError

RENEWAL_S = 20.0
"""Seconds between two renewals."""
LOST_S = 180.0
"""Seconds without a renewal after which a lock counts as lost; clocks of machines may differ by less than a minute."""
UNKNOWN = "an unknown process"
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class LockRecord(BaseModel):
    """Content of a lock.

    Attributes:
        owner: machine, process and purpose of the holder; empty once it is free.
        since: time at which the holder took it, in seconds since 1970.
        seen: time of its last renewal, likewise.
        token: differs for every holder.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    owner: Annotated[str, Field(max_length=300, pattern=r"^[ -~]*$")]
    since: Seconds
    seen: Seconds
    token: Annotated[str, Field(max_length=64)]


class RemoteLock:
    """Lock of one run at a remote, held by this process from ``take`` to ``release``.

    Args:
        store: the remote.
        run: name of the run.
        purpose: what this process does with the run, for others.
        clock: returns seconds since 1970.
    """

    def __init__(self, store: Store, run: str, purpose: str = "", clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._run = run
        self._clock = clock
        owner = f"process {os.getpid()} on {socket.gethostname()[:100]}{f' ({purpose})' if purpose else ''}"
        self._mine = LockRecord(owner=owner, since=0.0, seen=0.0, token=token_hex(16))
        self._held: SmallFile | None = None

    def take(self, take_over: bool = False, if_lost: bool = False) -> None:
        """Take the lock.

        Args:
            take_over: take it from whoever has it.
            if_lost: take a lost one, too.

        Raises:
            CoevoError: another process has it; the line names the owner, the age and the remedy.
        """
        found = self._read()
        record = _parsed(found)
        taken = found is not None and (record is None or bool(record.owner))
        if taken and not (take_over or (if_lost and self._is_lost(record))):
            raise self._refusal(record)
        now = self._clock()
        try:
            self._write(self._mine.model_copy(update={"since": now, "seen": now}), found)
        except Overtaken:
            raise self._refusal(_parsed(self._read())) from None

    def await_lost(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Take the lock once it is free or lost: the process that a session follows may have died just now.

        Raises:
            CoevoError: another process renews it.
        """
        give_up = self._clock() + LOST_S + RENEWAL_S
        while True:
            try:
                return self.take(if_lost=True)
            except CoevoError:
                if self._clock() > give_up:
                    raise
            sleep(RENEWAL_S / 4)

    def renew(self) -> None:
        """Tell others that the holder is alive.

        Raises:
            Overtaken: another process has taken the lock.
            CoevoError: the remote does not answer.
        """
        self._write(self._mine.model_copy(update={"seen": self._clock()}), self._held)

    def release(self) -> None:
        """Free the lock, unless another process has taken it."""
        try:
            self._write(self._mine.model_copy(update={"owner": ""}), self._held)
        except Overtaken:
            return

    def owner(self) -> str | None:
        """Who has the lock and when that process was last seen, in words; None if it is free."""
        found = self._read()
        record = _parsed(found)
        if found is None or (record is not None and not record.owner):
            return None
        return UNKNOWN if record is None else f"{record.owner}, seen {self._age(record)} ago"

    def _read(self) -> SmallFile | None:
        with one_line(self._store):
            return self._store.read(*self._path)

    def _write(self, record: LockRecord, held: SmallFile | None) -> None:
        content = record.model_dump_json().encode() + b"\n"
        with one_line(self._store):
            try:
                self._held = self._store.write(content, held, *self._path)
            except Overtaken:
                found = self._store.read(*self._path)
                there = _parsed(found)
                if there is None or there.token != self._mine.token:
                    raise
                # The client of the store repeated a write of ours whose answer was lost.
                self._held = self._store.write(content, found, *self._path)
        self._mine = record

    @property
    def _path(self) -> tuple[str, str]:
        return "locks", f"{self._run}.json"

    def _is_lost(self, record: LockRecord | None) -> bool:
        return record is None or self._clock() - record.seen > LOST_S

    def _age(self, record: LockRecord) -> str:
        return _duration(max(0.0, self._clock() - record.seen))

    def _refusal(self, record: LockRecord | None) -> CoevoError:
        what = f"run {self._run!r} at {self._store.label}"
        if record is None:
            return CoevoError(f"{what}: its lock is damaged: if no machine continues the run, repeat with --take-over")
        if self._is_lost(record):
            return CoevoError(
                f"{what}: its lock is lost: {record.owner} was last seen {self._age(record)} ago: if that process has "
                "ended, repeat with --take-over"
            )
        since = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(record.since))
        return CoevoError(
            f"{what} is in use by {record.owner} since {since}, seen {self._age(record)} ago: wait for it, or stop it"
        )


def _parsed(found: SmallFile | None) -> LockRecord | None:
    try:
        return None if found is None else LockRecord.model_validate_json(found.content)
    except ValidationError:
        return None


def _duration(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
