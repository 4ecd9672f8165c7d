"""What a check of the stores finds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not agree with the rest.

    Attributes:
        subject: where: a run, ``RUN@N``, or a path below the workspace.
        problem: what is wrong there.
        remedy: what to do about it.
        mendable: whether ``coevo fsck --repair`` does it.
    """

    subject: str
    problem: str
    remedy: str
    mendable: bool


BACKUP = "copy it back from a backup, or `coevo pull` the run from a remote into a new workspace"


def mendable(subject: str, problem: str, how: str) -> Finding:
    """A finding that ``--repair`` mends; ``how`` completes "--repair ..."."""
    return Finding(subject, problem, f"`coevo fsck --repair` {how}", True)


def lost(subject: str, problem: str, remedy: str = BACKUP) -> Finding:
    """A finding that nothing here can mend."""
    return Finding(subject, problem, remedy, False)
