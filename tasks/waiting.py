"""Whether a run waits for a person."""

from lineage.manifest import Manifest


def waits(head: Manifest | None) -> bool:
    """Whether a run can go no further than this revision until a person has decided."""
    return head is not None and bool(head.state.get("waiting", False))
