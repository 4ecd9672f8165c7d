"""The capability-evolution reward with the potential of reflections, worked out by hand."""

from dataclasses import replace

import pytest
from support.answering import Scripted
from support.batches import episode, turn
from support.listener import Listener
from support.sessions import opened, shaped
from support.worker import expert_worker

from coevo.configs.load.load import load_recipe
from coevo.memory.evidence.reflections import MALFORMED, Reflected, Reflection, Subtask
from coevo.memory.writers.quote.reflection import QuoteReflection
from coevo.records.task import BY_SCOPE
from coevo.records.writing import Credit, Drawn, Reply
from coevo.tasks.iteration.reflect import panel_reflections, potential_of
from coevo.tasks.publish.reporter import reporting_to
from coevo.tasks.writing.artifact import KeptWriting
from coevo.tasks.writing.ask_writer_model import Writing
from coevo.tasks.writing.journal import Journal

SMALL = ["warmstart=null", "evaluation.tasks=4", "update.invalid_penalty=0.0", "update.reward.gamma=0.5"]
SAID = {
    0: "Subtask: a | done\nSubtask: b | done\nSuccess: yes",
    1: "Subtask: a | done\nSubtask: b | open\nSuccess: no",
    2: "what a day",
}


def group():
    """One success and two failures of one task, two turns each; the environment says how far they came."""
    played = [episode(0, n, (turn(), turn(reward=float(n == 0)))) for n in range(3)]
    return [replace(each, success=n == 0, progress=(1.0, 0.2, 0.7)[n]) for n, each in enumerate(played)]


def returns_of(root, potential):
    config = load_recipe("homerules-retroagent", [*SMALL, f"update.reward.potential={potential}"])
    with opened(root, config, played=expert_worker()) as session:
        writer = QuoteReflection(config.bank.writer, BY_SCOPE, lambda played, *_: SAID[played.replica])
        session.parts = replace(session.parts, writer=writer)
        played, heard = group(), Listener()
        session.baselines = {played[0].task.id: 0.2}
        with reporting_to(heard):
            episodes = shaped(session, played).episodes
        assert heard.notes == (["r1 reflect", ""] if potential == "reflection" else [])
        assert [each.progress for each in session.pending.episodes] == [1.0, 0.2, 0.7]
        return [each.shaped for each in episodes], session.baselines[played[0].task.id], session.pending.metrics


def test_the_potential_of_a_reflection_is_what_is_gained_on_the_baseline(tmp_path):
    returns, baseline, metrics = returns_of(tmp_path, "reflection")
    # Potentials 1, 1/2 and, malformed, 0 gain .8, .3 and 0; totals 1.8, .3, 0 in halves, discounted with .5: 3/4 each.
    assert returns == pytest.approx([1.35, 0.225, 0.0])
    assert baseline == pytest.approx(1 / 3)
    assert metrics["policy/reflection/malformed"] == 1.0
    assert metrics["policy/reflection/accuracy"] == pytest.approx(2 / 3)
    # Potentials err by 0, .3 and .7.
    assert metrics["policy/reflection/potential_error"] == pytest.approx(1 / 3)


def test_an_episode_without_an_answer_has_the_potential_of_its_group():
    done, half = (Reflection((Subtask("a", True), Subtask("b", part)), True, ()) for part in (True, False))
    made = [Reflected(each, None, told) for each, told in zip(group(), (done, half, MALFORMED), strict=True)]
    silent = replace(made[2], answered=False)
    assert potential_of(made[2], made) == 0.0
    assert potential_of(silent, [*made[:2], silent]) == 0.75
    assert potential_of(silent, [silent]) == 0.0


def test_the_potential_of_the_environment_needs_no_reflection(tmp_path):
    returns, _, metrics = returns_of(tmp_path, "progress")
    # Progress 1, .2, .7 gains .8, 0, .5.
    assert returns == pytest.approx([1.35, 0.0, 0.375])
    assert not [name for name in metrics if name.startswith("policy/reflection/")]


TRAINED = ["evaluation.tasks=4", "evaluation.reflections=4", "rollout.tasks=2", "rollout.group_size=2"]
DRAWN = Drawn((1, 2), (3, 4))


def writing_of(session, root, said):
    """Writing of a session whose writer model gives one answer to every question."""
    writer_model = Scripted(lambda asked: Reply(said, True, 10, 4, drawn=DRAWN))
    journal, config = Journal(root / "journal", session.pending.revision), session.config.bank.writer.model
    return Writing(writer_model, config, journal, KeptWriting(), print, learns=True)


def test_predictions_become_samples_of_the_next_update(tmp_path):
    config = load_recipe("homerules-retroagent-trained", [*TRAINED, "update.writer.balance=false"])
    with opened(tmp_path, config, played=expert_worker()) as session:
        writing = writing_of(session, tmp_path, "% 1 / 2 ? yes")
        session.parts = replace(session.parts, writing=writing)
        shaped(session, group())
        metrics = session.pending.metrics
    assert metrics["policy/reflection/potential"] == 0.5
    assert [each.credits for each in writing.rewarded] == [(Credit(0, 2, reward),) for reward in (1.0, 0.0, 0.0)]
    assert metrics["policy/reflection/accuracy"] == pytest.approx(1 / 3)
    assert metrics["cost/writing/questions"] == 3.0


def test_reflections_on_a_panel_are_measured_and_nothing_of_them_is_kept(tmp_path):
    config = load_recipe("homerules-retroagent-trained", TRAINED)
    with opened(tmp_path, config, played=expert_worker()) as session:
        writing = writing_of(session, tmp_path, "% 1 / 2 ? yes # 1 lotus mug in safe")
        session.parts = replace(session.parts, writing=writing)
        played = [replace(each, success=n > 0) for n, each in enumerate(group())]
        found = panel_reflections(session, "seen-houses", played)
        kept = writing.freeze(session.pending.revision, [each.id for each in played])
    directory = "policy/reflection/seen-houses"
    assert found == {
        f"{directory}/recall_success": 1.0,
        f"{directory}/recall_failure": 0.0,
        f"{directory}/balanced_accuracy": 0.5,
    }
    assert (kept.answers, kept.rewarded, writing.cost()["cost/writing/questions"]) == ((), (), 0)
    assert not (tmp_path / "journal").exists()
