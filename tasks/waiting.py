"""Whether a run waits for a person, and what a person says."""

from dataclasses import dataclass

from lineage.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Vote:
    """A person's decision.

    Attributes:
        approved: yes or no.
        by: who says so, as they are known here.
    """

    approved: bool
    by: str


def waits(head: Manifest | None) -> bool:
    """Whether a run can go no further than this revision until a person has decided."""
    return head is not None and bool(head.state.get("waiting", False))
