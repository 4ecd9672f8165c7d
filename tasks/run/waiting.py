"""Decision of a person about a pending approval."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vote:
    """A person's decision.

    Attributes:
        approved: yes or no.
        by: name of the person.
    """

    approved: bool
    by: str
