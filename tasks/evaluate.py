"""Held-out measurement: panels played once a task, the bank read-only."""

from functools import partial

from configs.bank import BankConfig
from envs.base import Environment
from memory.index import Index
from records.draws import extend, key
from records.episode import Episode
from records.task import Panel
from tasks.discover import discover, learner_of
from tasks.expert import expert_success
from tasks.play import Attempt, Playing
from tasks.retrieve import Experience, recall
from tasks.rollout import outcome_metrics
from tasks.session import Session
from tasks.stage import stage


@stage("evaluate")
def evaluate(session: Session) -> None:
    """Play the panels that are due with the policy and bank of the revision in the making."""
    for name in session.panels_due():
        panel = session.parts.env.panel(name, session.config.evaluation.tasks)
        index = panel_index(session.parts.env, name, session.shown_index(session.updates()), session.config.bank)
        seen = recall(index, key(session.config.seed, "evaluate"))
        episodes = play_panel(session.parts.player, panel, seen, session.config.seed, session.draft.revision)
        found = discover(learner_of(session), panel, seen, episodes, session.config.evaluation.discovery)
        session.draft.metrics |= outcome_metrics(episodes, name)
        session.draft.metrics |= {f"discovery/{name}/{number}": share for number, share in found.items()}
        session.draft.panels[name] = panel.hash
        session.draft.metrics |= blind_expert(session, panel) if session.is_new() else {}
        session.draft.outcomes[name] = "".join("01"[episode.success] for episode in episodes)


def blind_expert(session: Session, panel: Panel) -> dict[str, float]:
    """Success of the environment's expert that is told nothing: more is not to be had without experience."""
    env = session.parts.env
    if not env.has_expert:
        return {}
    base, most = key(session.config.seed, "expert"), session.config.rollout.max_turns
    return {f"expert/{panel.name}": expert_success(env, panel.tasks, base, most)}


def play_panel(player: Playing, panel: Panel, seen: Experience, seed: int, revision: int) -> list[Episode]:
    """One episode a task. Draws depend on seed and task alone, so that any two policies or banks are paired."""
    base, stage = key(seed, "evaluate"), f"evaluate-{panel.name}"
    return player.play(
        [
            Attempt(task, 0, seen.of_task(task), stage, revision, extend(base, task.id), partial(seen.of_step, task))
            for task in panel.tasks
        ]
    )


def panel_index(env: Environment[object], panel: str, own: Index | None, bank: BankConfig | None) -> Index | None:
    """What a panel is played with: the run's own bank, the true entries of the panel's world, or nothing."""
    entries = env.panel_bank(panel)
    if entries is None:
        return own
    return Index(entries, (bank or BankConfig()).retrieval) if entries else None
