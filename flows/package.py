"""From a revision to a package, to a version of a registered model, and to the champion."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from configs.errors import CoevoError
from envs.registry import find as find_env
from envs.registry import make
from flows import history
from flows.promotion_page import Match, first_page, promotion_page, show
from flows.reference import Reading, reading
from lineage.code import code_of
from lineage.trust import extend_path
from lineage.workspace import NAME, Workspace
from records.task import Panel
from tasks.catchup import tracker_of
from tasks.champion import ASKS, Verdict, ask, champion, crown, judge, needs_a_person, played, record
from tasks.package import Origin, Package, pack
from tasks.registry import CODE, Registered, fetch, find, known, packaged, register
from tasks.tracking.store import Store, tracking_store

PACKED_BY = "coevo.packed_by"
"""Tag of a version: the code that it carries, which need not be that of its run."""


@dataclass(frozen=True, slots=True)
class Promotion:
    """What became of a promotion.

    Attributes:
        challenger: the version that asked for it.
        over: the champion at that time; None where there was none.
        verdict: how the challenger did against it; None where there was nobody to beat.
        waits: whether it has passed, and a person is to decide.
    """

    challenger: Registered
    over: Registered | None
    verdict: Verdict | None
    waits: bool = False

    @property
    def passed(self) -> bool:
        """Whether the challenger is champion now."""
        return not self.waits and (self.verdict is None or self.verdict.passed)


def package(opened: Reading, into: Path) -> Package:
    """Write the package of a revision into a directory.

    Raises:
        CoevoError: the revision was dropped, or something of it is gone.
    """
    manifest, state = opened.manifest, opened.manifest.state
    opened.lineage.require(manifest.revision)
    last = history.evaluated(opened.history)
    panels = {} if last is None else last.state["panels"]
    origin = Origin(
        run=opened.paths.name,
        revision=manifest.revision,
        iteration=manifest.iteration,
        commit=opened.lineage.commit_hash(manifest.revision),
        config_hash=state["config_hash"],
        code=state["code"],
        evaluated=None if last is None else last.revision,
        success={} if last is None else {name: last.state["metrics"][f"success/{name}"] for name in panels},
        panels=panels,
    )
    with TemporaryDirectory(prefix="coevo-") as scratch:
        policy = opened.lineage.materialise(manifest.revision, "policy", Path(scratch) / "policy")
        return pack(into, policy, opened.bank() if opened.config.bank else None, opened.config, origin)


def register_revision(reference: str, model: str | None, place: Workspace) -> tuple[Registered, Package]:
    """Package ``RUN[@N]`` and make it the next version of a model; one named as the recipe where none is given.

    A revision that this code has packaged already keeps its version, so that the command may be repeated after a kill.

    Raises:
        CoevoError: there is no such revision, a setting is not confirmed, the name cannot be a model's, or MLflow does
            not take it.
    """
    with reading(reference, place) as opened, TemporaryDirectory(prefix="coevo-") as scratch:
        place.trust.demand(opened.paths.name, opened.config)
        name = opened.config.recipe if model is None else model
        if not NAME.fullmatch(name):
            raise CoevoError(f"{name!r} cannot name a model: use letters, digits, '.', '_' and '-', at most 100")
        made = package(opened, Path(scratch) / "package")
        asks = {} if opened.config.approval.promotion == "none" else {ASKS: opened.config.approval.promotion}
        store, wanted = tracking_store(place.root), tags(made.origin) | {PACKED_BY: code_of(*CODE)} | asks
        there = known(store, name, wanted)
        if there is not None:
            return there, made
        tracker = tracker_of(place.root, opened.paths, find_env(opened.config.env.type).name)
        return register(store, name, made, tracker.placement(), wanted), made


def tags(origin: Origin) -> dict[str, str]:
    """Tags of a version: where it comes from, and how it did."""
    known = {
        "run": origin.run,
        "revision": origin.revision,
        "iteration": origin.iteration,
        "commit": origin.commit,
        "config": origin.config_hash,
        "code": origin.code,
        "evaluated": origin.evaluated,
        **{f"success.{panel}": f"{success:.4f}" for panel, success in origin.success.items()},
        **{f"panel.{panel}": found for panel, found in origin.panels.items()},
    }
    return {f"coevo.{name}": str(value) for name, value in known.items() if value is not None}


def promote(
    mention: str, panel: str | None, tasks: int | None, margin: float, seed: int, place: Workspace
) -> Promotion:
    """Make a version the champion of its model, if it plays better than the present one or there is none.

    Where its recipe says ``approval.promotion: person``, it waits for a person instead.

    Args:
        mention: ``MODEL/VERSION`` or ``MODEL@ALIAS``.
        panel: held-out panel that both play; the first one of the version's own evaluations where None.
        tasks: how many of its tasks, at least two; as many as in these evaluations where None.
        margin: what the lower bound of the difference has to exceed.
        seed: of the draws, which both sides share.
        place: the workspace.

    Raises:
        CoevoError: it is not there, is champion already, or the two do not play the same tasks.
    """
    store = tracking_store(place.root)
    challenger = find(store, mention)
    reigning = champion(store, challenger.model)
    waits = needs_a_person(store, challenger)
    enthrone = ask if waits else crown
    if reigning is None:
        if waits:
            _show_first(store, challenger, place)
        enthrone(store, challenger, None, None)
        return Promotion(challenger, None, None, waits)
    over = Registered(challenger.model, reigning)
    if over == challenger:
        raise CoevoError(f"{challenger.name} is the champion already: name another version")
    with TemporaryDirectory(prefix="coevo-") as scratch:
        mine, theirs = (packaged(fetch(store, each, Path(scratch) / str(each.version))) for each in (challenger, over))
        match = gate(mine, theirs, panel, tasks, margin, seed)
        if waits and match.verdict.passed:
            show(place, challenger, promotion_page(challenger, over, mine, theirs, match))
    verdict = match.verdict
    if verdict.passed:
        enthrone(store, challenger, reigning, verdict)
    else:
        record(store, challenger, reigning, verdict)
    return Promotion(challenger, over, verdict, waits and verdict.passed)


def gate(mine: Package, theirs: Package, panel: str | None, tasks: int | None, margin: float, seed: int) -> Match:
    """Let two packages play the same held-out tasks with the same draws.

    Raises:
        CoevoError: there is no such panel, or its tasks are not the same for both.
    """
    evaluation = mine.config.evaluation
    name, size = panel or evaluation.panels[0], max(2, tasks or evaluation.tasks)
    for side in (mine, theirs):  # what is registered was confirmed when it was packaged
        extend_path(side.config)
    env, other = make(mine.config.env), make(theirs.config.env)
    for each in (env, other):
        if name not in each.panels:
            raise CoevoError(f"{name!r} is no panel of {each.name}: choose one of {', '.join(each.panels)}")
    asked: Panel = env.panel(name, size)
    if other.panel(name, size).hash != asked.hash:
        raise CoevoError(
            f"panel {name!r}: {mine.origin.name} and the champion, {theirs.origin.name}, play different tasks: "
            "package it under another model's name"
        )
    left, right = played(mine, env, asked, seed), played(theirs, other, asked, seed)
    mine_solved, theirs_solved = ([episode.success for episode in side] for side in (left, right))
    return Match(judge(asked, mine_solved, theirs_solved, margin), left, right)


def _show_first(store: Store, challenger: Registered, place: Workspace) -> None:
    with TemporaryDirectory(prefix="coevo-") as scratch:
        mine = packaged(fetch(store, challenger, Path(scratch) / "fetched"))
        show(place, challenger, first_page(challenger, mine))
