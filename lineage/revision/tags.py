"""Tags of a run's revisions.

refs/tags/r<N>      revision N is kept whole
refs/dropped/r<N>   its artifacts and tables may be gone; commit and manifest stay
refs/tags/<name>    a name that a user gave a revision

A revision counts as dropped as soon as it has the second, even if a killed process left the first.
"""

import re
from collections.abc import Iterable, Sequence

from coevo.lineage.git import Git
from coevo.utilities.errors import CoevoError

OWN = re.compile(r"r\d+")
TAG = re.compile(r"(?!.*\.\.)(?!.*\.lock$)[A-Za-z0-9_]([A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?")

TARGET = "%(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)"
"""Git's format for the commit of a tag, with a message or without."""


class Tags:
    """Tags of one repository. Writing them needs the run's lock, or the lock of the workspace's runs."""

    def __init__(self, git: Git) -> None:
        self._git = git

    def named(self) -> dict[str, str]:
        """Commit by name, for the names that users gave."""
        return {name: commit for name, commit in self._refs("tags").items() if not OWN.fullmatch(name)}

    def dropped(self) -> set[int]:
        """Revisions that are no longer kept whole."""
        return {int(name[1:]) for name in self._refs("dropped")}

    def add(self, name: str, commit: str) -> None:
        """Name a commit.

        Raises:
            CoevoError: the name is malformed or taken.
        """
        # A file system may take R3 and r3 for one file.
        if not TAG.fullmatch(name) or OWN.fullmatch(name.lower()) or name.isdecimal():
            raise CoevoError(
                f"{name!r} cannot be a tag: use letters, digits, '.', '_' and '-', at most 100, no number or "
                "r<number> (in either case), no '..', no '.' or '-' at the beginning and no '.' or '.lock' at the end"
            )
        taken = next((each for each in self.named() if each.lower() == name.lower()), None)
        if taken is not None:
            which = "is taken" if taken == name else f"is {taken!r} for file systems that ignore case"
            raise CoevoError(f"tag {name!r} {which}: choose another one, or delete it with --delete")
        self._git("update-ref", "--stdin", stdin=f"create refs/tags/{name} {commit}\n")

    def delete(self, name: str) -> None:
        """Remove a name.

        Raises:
            CoevoError: the name does not exist.
        """
        known = self.named()
        if name not in known:
            has = f"it has {', '.join(sorted(known))}" if known else "it has none"
            raise CoevoError(f"tag {name!r} is not in {self._git.root}: {has}")
        self._git("update-ref", "-d", f"refs/tags/{name}")

    def drop(self, revisions: Iterable[int], commits: Sequence[str]) -> None:
        """Stop keeping these revisions whole, in one transaction of git."""
        numbers, present = sorted(revisions), self._refs("tags")
        self._update(
            [f"update refs/dropped/r{number} {commits[number]}" for number in numbers]
            + [f"delete refs/tags/r{number}" for number in numbers if f"r{number}" in present]
        )

    def mend(self, commits: Sequence[str]) -> list[str]:
        """Give every kept revision its ``r<N>``, and no other; return the refs that were missing or wrong."""
        present, marks = self._refs("tags"), self._refs("dropped")
        dropped = {int(name[1:]) for name in marks}
        wanted = {f"r{number}": commit for number, commit in enumerate(commits) if number not in dropped}
        wrong = sorted(name for name, commit in wanted.items() if present.get(name) != commit)
        stale = sorted(f"r{number}" for number in dropped if f"r{number}" in present)
        own = {f"r{number}": commit for number, commit in enumerate(commits) if number in dropped}
        moved = sorted(name for name, commit in own.items() if marks.get(name) != commit)
        self._update(
            [f"update refs/tags/{name} {wanted[name]}" for name in wrong]
            + [f"delete refs/tags/{name}" for name in stale]
            + [f"update refs/dropped/{name} {own[name]}" for name in moved]
        )
        return sorted({*wrong, *stale, *moved})

    def copy_from(self, other: "Tags", commits: Sequence[str]) -> None:
        """Copy kept and dropped marks of the same commits from another repository; names are not copied."""
        gone = [number for number in sorted(other.dropped()) if number < len(commits)]
        self._update([f"update refs/dropped/r{number} {commits[number]}" for number in gone])
        self.mend(commits)

    def _refs(self, kind: str) -> dict[str, str]:
        listed = self._git("for-each-ref", f"--format=%(refname) {TARGET}", f"refs/{kind}/").splitlines()
        pairs = (line.split() for line in listed)
        return {ref.removeprefix(f"refs/{kind}/"): commit for ref, commit in pairs}

    def _update(self, commands: Sequence[str]) -> None:
        if commands:
            self._git("update-ref", "--stdin", stdin="".join(f"{command}\n" for command in commands))
