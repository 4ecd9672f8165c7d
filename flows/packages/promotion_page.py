"""Page for a person's decision about a promotion: an artifact in Prefect."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coevo.flows.servers.server_secret import VARIABLE
from coevo.flows.servers.servers import prefect_in_use, use_prefect
from coevo.lineage.workspace import Workspace
from coevo.records.episode import Episode
from coevo.tasks.package.champion import PromotionVerdict
from coevo.tasks.package.model_registry import Registered
from coevo.tasks.package.package import Package
from coevo.tasks.publish.proposal_page import SAMPLE, changes, episode_table
from coevo.tasks.publish.revision_page import plain


@dataclass(frozen=True, slots=True)
class Match:
    """A panel that two packages have played.

    Attributes:
        verdict: result of the challenger.
        mine: the challenger's episodes, in the order of the tasks.
        theirs: the champion's episodes.
    """

    verdict: PromotionVerdict
    mine: Sequence[Episode]
    theirs: Sequence[Episode]


def promotion_page(challenger: Registered, champion: Registered, mine: Package, theirs: Package, match: Match) -> str:
    """The page of a promotion that is pending approval."""
    return "\n".join(_lines(challenger, champion, mine, theirs, match)) + "\n"


def first_page(challenger: Registered, mine: Package) -> str:
    """The page of a pending promotion if the model has no champion."""
    return "\n".join(_asked(challenger, mine, "there is no champion yet")) + "\n"


def show(workspace: Workspace, challenger: Registered, page: str) -> None:
    """Create the artifact of a version.

    Raises:
        ServerError: no Prefect server is running.
    """
    url = use_prefect(workspace.root)
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.actions import ArtifactCreate
    from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

    from coevo.tasks.publish.prefect import key_of

    made = ArtifactCreate(
        key=key_of(challenger.name, "approval"), type="markdown", data=page, description=challenger.name
    )
    # Playing with a package has imported Prefect before the URL was set.
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
            yield from episode_table(episode)


def _asked(challenger: Registered, mine: Package, rival: str) -> Iterator[str]:
    yield f"# {plain(challenger.name)} waits for approval"
    yield ""
    yield f"It is {plain(mine.origin.name)}, {rival}. Yes: "
    yield f"`coevo approve {challenger.name}`. No: `coevo approve {challenger.name} --reject`."
    if mine.origin.success:
        shown = [f"{plain(panel)} {success:.3f}" for panel, success in mine.origin.success.items()]
        yield f"Success at revision {mine.origin.evaluated}: {', '.join(shown)}."
