"""What a run tells whoever watches it."""

from typing import Protocol, runtime_checkable

from lineage.manifest import Manifest


@runtime_checkable
class Reporter(Protocol):
    """The command line shows it; a scheduled run logs it."""

    def note(self, text: str) -> None:
        """Something is under way; a later note replaces it."""
        ...

    def warn(self, text: str) -> None:
        """Something did not go as it should; the run goes on."""
        ...

    def revision(self, manifest: Manifest) -> None:
        """A revision was committed."""
        ...


class Silent:
    """Tells nobody."""

    def note(self, text: str) -> None:
        """Ignore the note."""

    def warn(self, text: str) -> None:
        """Ignore the warning."""

    def revision(self, manifest: Manifest) -> None:
        """Ignore the revision."""
