"""Promotion of a version of a registered model to the champion: both play the same tasks, and the better one stays."""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from coevo.envs.registry import make
from coevo.flows.evaluation.panel_evaluation import check_panel
from coevo.flows.packages.proof import prove
from coevo.flows.servers.server_secret import VARIABLE
from coevo.flows.servers.servers import prefect_in_use, use_prefect
from coevo.lineage.scratch import scratch_directory
from coevo.lineage.trust import Consent, confirmed_before
from coevo.lineage.workspace import Workspace
from coevo.records.episode import Episode
from coevo.records.task import Panel
from coevo.tasks.package.champion import (
    PromotionVerdict,
    ask,
    champion,
    judge,
    make_champion,
    needs_a_person,
    played,
    previous,
    record,
    restore,
)
from coevo.tasks.package.model_registry import Registered, find
from coevo.tasks.package.package import Package
from coevo.tasks.publish.mlflow.tracking_store import TrackingStore, tracking_store
from coevo.tasks.publish.proposal_page import SAMPLE, changes, episode_table
from coevo.tasks.publish.reporter import in_stage
from coevo.tasks.publish.revision_page import plain
from coevo.utilities.errors import CoevoError


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


@dataclass(frozen=True, slots=True)
class Promotion:
    """Result of a promotion.

    Attributes:
        challenger: version to promote.
        over: champion at that time, or None.
        verdict: result against the champion; None without one.
        waits: whether it passed and is pending approval.
    """

    challenger: Registered
    over: Registered | None
    verdict: PromotionVerdict | None
    waits: bool = False

    @property
    def passed(self) -> bool:
        """Report whether the challenger is champion now."""
        return not self.waits and (self.verdict is None or self.verdict.passed)


@dataclass(frozen=True)
class PromotionTerms:
    """Terms on which a version becomes champion.

    Attributes:
        panel: held-out panel that both play; by default the first one of the version's own evaluations.
        tasks: number of its tasks, at least two; by default that of these evaluations.
        margin: bound that the lower bound of the difference has to exceed.
        seed: seed of the draws, equal for both.
    """

    panel: str | None = None
    tasks: int | None = None
    margin: float = 0.0
    seed: int = 0


def promote(
    mention: str, terms: PromotionTerms, workspace: Workspace, consent: Consent = confirmed_before
) -> Promotion:
    """Make a version the champion of its model if it plays better than the current one, or if there is none.

    If its recipe sets ``approval.promotion: person``, it becomes pending approval instead. Both packages are proven
    first, see ``coevo.flows.packages.proof``.

    Args:
        mention: ``MODEL/VERSION`` or ``MODEL@ALIAS``.
        terms: panel, tasks, margin and seed.
        workspace: the workspace.
        consent: called with what has to be confirmed of the two versions.

    Raises:
        CoevoError: the version does not exist, is champion already, is neither proven nor confirmed, or plays other
            tasks than the champion.
    """
    store = tracking_store(workspace.root)
    challenger = find(store, mention)
    reigning = champion(store, challenger.model)
    over = None if reigning is None else Registered(challenger.model, reigning)
    if over == challenger:
        raise CoevoError(f"{challenger.name} is the champion already: name another version")
    with scratch_directory(workspace.root) as scratch:
        mine, *others = prove(store, [challenger, *([over] if over else ())], scratch, workspace, consent)
        waits = needs_a_person(store, challenger) or mine.config.approval.promotion == "person"
        if over is None:
            if waits:
                show(workspace, challenger, first_page(challenger, mine))
            return _concluded(store, challenger, None, None, waits)
        match = gate(mine, others[0], terms)
        if waits and match.verdict.passed:
            show(workspace, challenger, promotion_page(challenger, over, mine, others[0], match))
    return _concluded(store, challenger, over, match.verdict, waits)


def _concluded(
    store: TrackingStore, challenger: Registered, over: Registered | None, verdict: PromotionVerdict | None, waits: bool
) -> Promotion:
    """Move the alias or ask a person if the challenger passed; record the verdict in any case."""
    reigning = None if over is None else over.version
    if verdict is not None and reigning is not None and not verdict.passed:
        record(store, challenger, reigning, verdict)
        return Promotion(challenger, over, verdict)
    (ask if waits else make_champion)(store, challenger, reigning, verdict)
    return Promotion(challenger, over, verdict, waits)


def gate(mine: Package, theirs: Package, terms: PromotionTerms) -> Match:
    """Let two packages play the same held-out tasks with the same draws.

    Raises:
        CoevoError: the panel does not exist, or its tasks differ.
    """
    evaluation = mine.config.evaluation
    name, size = terms.panel or evaluation.panels[0], max(2, terms.tasks or evaluation.tasks)
    env, other = make(mine.config.env), make(theirs.config.env)
    check_panel(env, name)
    check_panel(other, name)
    asked: Panel = env.at(mine.origin.iteration).panel(name, size)
    if other.at(mine.origin.iteration).panel(name, size).hash != asked.hash:
        raise CoevoError(
            f"panel {name!r}: {mine.origin.name} and the champion, {theirs.origin.name}, play different tasks: "
            "package it under another model's name"
        )
    with closing(env), closing(other), in_stage(f"plays {name} with {mine.origin.name} and with {theirs.origin.name}"):
        left, right = played(mine, env, asked, terms.seed), played(theirs, other, asked, terms.seed)
    both = [(one.success, other.success) for one, other in zip(left, right, strict=True) if not one.lost + other.lost]
    if len(both) < 2:
        raise CoevoError(f"panel {name!r}: the environment lost nearly all episodes, first {left[0].lost}: mend it")
    mine_solved, theirs_solved = zip(*both, strict=True)
    return Match(judge(asked, mine_solved, theirs_solved, terms.margin), left, right)


def demote(model: str, workspace: Workspace, consent: Consent = confirmed_before) -> Registered:
    """Restore the previous champion of a model, once it is proven.

    Raises:
        CoevoError: the model had no previous champion, or that one is neither proven nor confirmed.
    """
    store = tracking_store(workspace.root)
    with scratch_directory(workspace.root) as scratch:
        prove(store, [previous(store, model)], scratch, workspace, consent)
    return restore(store, model)


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
