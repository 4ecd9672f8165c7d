"""Counters of the bank's entries for retirement: how long each was neither judged nor retrieved."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from json import dumps
from typing import Annotated

from pydantic import ConfigDict, Field, with_config

from coevo.memory.validate import listed


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class RetirementCounter:
    """Firings in a row that passed an entry by.

    Attributes:
        id: id of the entry.
        waited: firings that did not judge it.
        unseen: firings without an episode that retrieved it.
    """

    id: str
    waited: Annotated[int, Field(ge=0)] = 0
    unseen: Annotated[int, Field(ge=0)] = 0


def counted(
    counters: Mapping[str, RetirementCounter], entries: Iterable[str], seen: Collection[str], judged: Collection[str]
) -> dict[str, RetirementCounter]:
    """Counters after a firing, by entry id; without any retrieval the bank was not shown, and no entry is unseen.

    Args:
        counters: those after the firing before.
        entries: ids of the active entries.
        seen: ids of the entries that episodes since the firing before retrieved.
        judged: ids of the entries that this firing judged.
    """
    known = ((name, counters.get(name, RetirementCounter(name))) for name in sorted(entries))
    return {
        name: RetirementCounter(
            name, 0 if name in judged else old.waited + 1, 0 if name in seen else old.unseen + (len(seen) > 0)
        )
        for name, old in known
    }


def text(counters: Mapping[str, RetirementCounter]) -> str:
    """Canonical JSON, by id."""
    return dumps([asdict(counters[name]) for name in sorted(counters)], sort_keys=True, indent=0)


def parse(lines: str) -> dict[str, RetirementCounter]:
    """Parse the output of ``text``; a pulled run may hold anything.

    Raises:
        CoevoError: it has another form.
    """
    return {each.id: each for each in listed(RetirementCounter, lines, "retirement counters")}
