"""What a person sees who decides about a promotion: an artifact on Prefect's pages."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from flows.secret import VARIABLE
from flows.servers import prefect_in_use, use_prefect
from lineage.workspace import Workspace
from records.episode import Episode
from tasks.champion import Verdict
from tasks.package import Package
from tasks.proposal_page import SAMPLE, changes, told
from tasks.registry import Registered
from tasks.revision_page import plain


@dataclass(frozen=True, slots=True)
class Match:
    """A panel that two packages have played.

    Attributes:
        verdict: how the challenger did.
        mine: the challenger's episodes, in the order of the tasks.
        theirs: those of the champion.
    """

    verdict: Verdict
    mine: Sequence[Episode]
    theirs: Sequence[Episode]


def promotion_page(challenger: Registered, champion: Registered, mine: Package, theirs: Package, match: Match) -> str:
    """The page of a promotion that waits."""
    return "\n".join(_lines(challenger, champion, mine, theirs, match)) + "\n"


def first_page(challenger: Registered, mine: Package) -> str:
    """The page of a promotion that waits where there is no champion to beat."""
    return "\n".join(_asked(challenger, mine, "there is no champion yet")) + "\n"


def show(place: Workspace, challenger: Registered, page: str) -> None:
    """Make the artifact of a version.

    Raises:
        ServerError: there is no Prefect server.
    """
    url = use_prefect(place.root)
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import ArtifactCreate
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

    from tasks.artifacts import key_of

    made = ArtifactCreate(
        key=key_of(challenger.name, "approval"), type="markdown", data=page, description=challenger.name
    )
    # Whoever has played with a package has imported Prefect before there was a URL.
    server = {PREFECT_API_URL: url, PREFECT_API_AUTH_STRING: os.environ.get(VARIABLE)}
    with temporary_settings(server), prefect_in_use(), get_client(sync_client=True) as client:
        client.create_artifact(made)


def _lines(challenger: Registered, champion: Registered, mine: Package, theirs: Package, match: Match) -> Iterator[str]:
    yield from _asked(challenger, mine, f"the champion is {plain(theirs.origin.name)}")
    yield from ("", "## Gate", plain(match.verdict.sentence(challenger.name, champion.name)))
    yield from ("", "## Bank, against the champion's", *changes(theirs.entries(), mine.entries()))
    for side, other, name in ((match.mine, match.theirs, challenger.name), (match.theirs, match.mine, champion.name)):
        alone = [own for own, its in zip(side, other, strict=True) if own.success and not its.success]
        yield from ("", f"# Solved by {plain(name)} alone: {len(alone)} tasks")
        for episode in alone[:SAMPLE]:
            yield from told(episode)


def _asked(challenger: Registered, mine: Package, rival: str) -> Iterator[str]:
    yield f"# {plain(challenger.name)} waits for approval"
    yield ""
    yield f"It is {plain(mine.origin.name)}, {rival}. Yes: "
    yield f"`coevo approve {challenger.name}`. No: `coevo approve {challenger.name} --reject`."
    if mine.origin.success:
        told = [f"{plain(panel)} {success:.3f}" for panel, success in mine.origin.success.items()]
        yield f"Success at revision {mine.origin.evaluated}: {', '.join(told)}."
