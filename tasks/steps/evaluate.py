"""Held-out measurement: panels played once per task, the bank read-only."""

from functools import partial

from coevo.configs.bank.bank_config import BankConfig
from coevo.envs.base import Environment
from coevo.memory.diversity import diversity
from coevo.memory.retrieval.index import Index
from coevo.records.draws import extend, key
from coevo.records.episode import Episode
from coevo.records.task import Panel
from coevo.tasks.draft import PanelOutcomes, Result
from coevo.tasks.play.attempt import Attempt
from coevo.tasks.play.expert import expert_success
from coevo.tasks.play.losses import check_losses, loss_metrics, report_losses
from coevo.tasks.play.play import Playing
from coevo.tasks.play.retrieve import Experience, recall
from coevo.tasks.session import Session
from coevo.tasks.stage import stage
from coevo.tasks.steps.discover import DiscoveryAgent, discover
from coevo.tasks.steps.gate import panel_of
from coevo.tasks.steps.reflect import panel_reflections
from coevo.tasks.steps.retrieval_quality import retrieval_quality
from coevo.tasks.steps.rollout import outcome_metrics
from coevo.tasks.writing.ask_author import aside_of


@stage("evaluate")
def evaluate(session: Session) -> Result[dict[str, PanelOutcomes]]:
    """Outcomes of the panels that are due, with the policy and bank of the revision in the making."""
    outcomes, metrics = dict[str, PanelOutcomes](), retrieval_quality(session)
    for name in session.panels_due():
        panel = panel_of(session, name)
        index = panel_index(session.parts.env, name, session.shown_index(session.updates()), session.config.bank)
        seen = recall(index, key(session.config.seed, "evaluate"))
        episodes = play_panel(session.parts.player, panel, seen, session.config.seed, session.draft.revision)
        report_losses(session.stores.reporter, episodes, name)
        check_losses(episodes, session.config.rollout.lost_limit, name)
        metrics |= outcome_metrics(episodes, name) | discovery_metrics(session, panel, seen, episodes)
        metrics |= panel_reflections(session, name, episodes)
        scores = diversity(episodes, session.config.evaluation.encoder)
        metrics |= {f"agent/vendi/{name}/{side}": score for side, score in scores.items()}
        metrics |= blind_expert(session, panel) if session.is_new() else {}
        outcomes[name] = PanelOutcomes(
            panel.hash, "".join("-" if each.lost else "01"[each.success] for each in episodes)
        )
    writing = session.parts.writing
    if writing is None:
        return Result(outcomes, metrics)
    return Result(outcomes, metrics, writing.requests(), writing.cost_aside())


def discovery_metrics(session: Session, panel: Panel, seen: Experience, first: list[Episode]) -> dict[str, float]:
    """Shares of Discovery@k, and the losses of all attempts.

    Raises:
        CoevoError: the environment lost too many of the attempts after the first, or none of them has a turn.
    """
    attempts, name = session.config.evaluation.discovery, panel.name
    shares, later = discover(learner_of(session), panel, seen, first, attempts)
    report_losses(session.stores.reporter, later, f"{name}, later attempts")
    solved = [episode for episode in first if episode.success]
    check_losses([*solved, *later], session.config.rollout.lost_limit, f"{name}, later attempts")
    found = {f"bank/discovery/{name}/{number}": share for number, share in shares.items()}
    return loss_metrics([*first, *later], name) | found


def learner_of(session: Session) -> DiscoveryAgent:
    """Policy and bank of the revision in the making, for repeated attempts."""
    parts, bank, revision = session.parts, session.bank, session.draft.revision
    return DiscoveryAgent(
        session.config,
        parts.player,
        parts.writer,
        start=bank,
        references=session.references,
        ask=aside_of(parts.writing, revision),
        revision=revision,
        iterations=session.updates(),
    )


def blind_expert(session: Session, panel: Panel) -> dict[str, float]:
    """Success of the scripted expert without notes, the most that is possible without experience."""
    env = session.parts.env
    if not env.has_expert:
        return {}
    base, most = key(session.config.seed, "expert"), session.config.rollout.max_turns
    return {f"agent/expert/{panel.name}": expert_success(env, panel.tasks, base, most)}


def play_panel(player: Playing, panel: Panel, seen: Experience, seed: int, revision: int) -> list[Episode]:
    """One episode per task. Draws depend on seed and task alone, so that any two policies or banks are paired."""
    base, stage = key(seed, "evaluate"), f"evaluate-{panel.name}"
    return player.play(
        [
            Attempt(task, 0, seen.of_task(task), stage, revision, extend(base, task.id), partial(seen.of_step, task))
            for task in panel.tasks
        ]
    )


def panel_index(env: Environment[object], panel: str, own: Index | None, bank: BankConfig | None) -> Index | None:
    """Index for a panel: over the run's bank, over the true entries of the panel's world, or None."""
    entries = env.panel_bank(panel)
    if entries is None:
        return own
    return Index(entries, (bank or BankConfig()).retrieval) if entries else None
