"""Cost of learning: every token of rollouts and replays, none of evaluations."""

from dataclasses import replace

from support.entries import entry
from support.sessions import batch, do, opened, shaped
from support.worker import ExpertWorker, expert_worker

from coevo.configs.load.load import load_recipe
from coevo.memory.writers.writer import Proposal
from coevo.tasks.steps.bank_steps import judge
from coevo.tasks.steps.evaluate import evaluate

SMALL = ["warmstart=null", "rollout.tasks=2", "evaluation.tasks=4"]


class Counting(ExpertWorker):
    """An expert that remembers how many turns it has played; each has one token in and one out."""

    turns = 0

    def play_turn(self, running):
        self.turns += len(running)
        super().play_turn(running)


def cost(session):
    return session.pending.metrics.get("cost/episodes"), session.pending.metrics.get("cost/tokens")


def test_rollouts_and_both_sides_of_a_replay_count_and_evaluations_do_not(tmp_path):
    config = load_recipe("homerules-experience-only", [*SMALL, "rollout.group_size=4", "bank.admission.replays=3"])
    worker = expert_worker(Counting)
    with opened(tmp_path, config, played=worker) as session:
        session.pending.measure(evaluate(session))
        assert cost(session) == (None, None)
        worker.turns = 0
        episodes = batch(session)
        assert cost(session) == (8, 2 * worker.turns)
        assert [session.pending.metrics[f"cost/rollout/{kind}"] for kind in ("episodes", "tokens")] == [*cost(session)]
        session.recent.extend(episodes)
        turns = worker.turns
        task = episodes[0].task
        do(session, judge, Proposal((replace(entry("mug in safe", scope=task.scope), sources=(episodes[0].id,)),)))
        assert cost(session) == (8 + 2 * 3, 2 * worker.turns)
        apart = [session.pending.metrics[f"cost/judging/{kind}"] for kind in ("episodes", "tokens")]
        assert apart == [2 * 3, 2 * (worker.turns - turns)]
        assert session.pending.metrics["cost/rollout/episodes"] == 8


def test_an_episode_in_parts_counts_where_it_ends(tmp_path):
    config, worker = load_recipe("homerules-context-lite", [*SMALL, "rollout.turns=1"]), expert_worker(Counting)
    with opened(tmp_path, config, played=worker) as session:
        ended = 0.0
        while ended < 2:
            shaped(session, batch(session))
            ended += session.pending.metrics["agent/episodes/ended"]
            assert cost(session) == (ended, 2 * worker.turns)
            session.iteration += 1
