"""Held-out play: paired draws, and the bank that belongs to a panel."""

from dataclasses import replace
from itertools import chain

import pytest
from support.batches import entry, episode, turn
from support.sessions import committed, opened
from support.worker import CONFIG, environment, worker

from coevo.configs.bank.retrieval_config import TfidfConfig
from coevo.configs.load.load import load_recipe
from coevo.memory.retrieval.index import Index
from coevo.records.draws import key
from coevo.records.failure_reasons import LessonUse
from coevo.tasks.iteration.held_out import play_panel
from coevo.tasks.play.lesson_use import lesson_use
from coevo.tasks.play.retrieve import NOTHING, at_random, recall
from coevo.tasks.steps.evaluate import evaluate, expert_success, panel_index, play_expert


def test_a_panel_is_played_with_its_own_bank():
    own = Index([entry()], TfidfConfig())
    assert panel_index(environment(), "seen-houses", own, CONFIG.bank) is own
    assert panel_index(environment(), "no-bank", own, CONFIG.bank) is None
    told = panel_index(environment(), "other-houses", own, CONFIG.bank)
    task = environment().panel("other-houses", 4).tasks[0]
    assert {e.scope for e in recall(told, key(1)).of_task(task)} == {task.scope}


def completions(seed, revision):
    """Answers in a panel, turn by turn."""
    episodes = play_panel(worker(), environment().panel("seen-houses", 8), NOTHING, seed, revision)
    return [[turn.completion for turn in episode.turns] for episode in episodes]


def fresh_completions(seed, revision):
    """The same by an engine that has computed nothing before."""
    worker().engine.forget()
    return completions(seed, revision)


def test_draws_depend_on_seed_and_task_alone():
    assert fresh_completions(7, 1) == fresh_completions(7, 2)
    assert fresh_completions(7, 1) != fresh_completions(8, 1)


def test_what_was_computed_before_changes_no_draw():
    before, after = fresh_completions(7, 1), completions(7, 2)
    assert [[made.token_ids for made in turns] for turns in after] == [[made.token_ids for made in t] for t in before]
    for one, other in zip(chain(*before), chain(*after), strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)


def test_entries_at_random_are_of_the_bank_different_and_repeatable():
    entries = [entry(f"lesson {n}") for n in range(9)]
    tasks = environment().sample(5, key(2))
    orders = ((entries, tasks), (entries[::-1], tasks[::-1]))
    drawn, again = (at_random(bank, 4, order, key(1)) for bank, order in orders)
    found = [drawn.of_task(task) for task in tasks]
    assert found == [again.of_task(task) for task in tasks]
    assert all(len({e.id for e in each}) == 4 and set(each) <= set(entries) for each in found)
    assert len(set(found)) > 1
    assert [at_random([], 4, tasks, key(1)).of_task(task) for task in tasks] == [()] * 5


def test_the_blind_expert_finds_its_way_one_time_in_four():
    tasks = environment().panel("seen-houses", 192).tasks
    # 1,536 episodes at .25: the standard error is .011.
    assert abs(expert_success(environment(), tasks, key(4)) - 0.25) < 0.045


def test_an_expert_that_is_told_everything_succeeds():
    (task,) = environment().panel("other-houses", 1).tasks
    told = tuple(e.strategy for e in environment().panel_bank("other-houses") if e.scope == task.scope)
    shown = play_expert(environment(), task, told, key(1))
    assert shown[-1][2]
    assert [len(moment.history) for moment, _, _ in shown] == list(range(len(shown)))


def test_panels_have_vendi_scores_with_the_encoder_of_the_run(tmp_path):
    small = ("warmstart=null", "iterations=3", "rollout.tasks=2", "rollout.max_turns=2", "evaluation.tasks=4")
    scores = []
    for number, settings in enumerate(((), ("evaluation.encoder=all-MiniLM-L6-v2",))):
        config = load_recipe("homerules-grpo", [*small, *settings])
        with opened(tmp_path / str(number), config) as session:
            found = evaluate(session).metrics
            assert {name.split("/")[2] for name in found if "/vendi/" in name} >= {"seen-houses"}
            scores.append({name: value for name, value in found.items() if "/vendi/" in name})
    words, vectors = scores
    assert words.keys() == vectors.keys()
    assert words != vectors


def test_held_out_episodes_are_kept_with_reasons_in_a_bounded_size(tmp_path):
    small = ("warmstart=null", "evaluation.tasks=6", "evaluation.every=1", "rollout.max_turns=2")
    for size, expected in ((64, 6), (0, 0)):
        config = load_recipe("homerules-coevo-rl", [*small, f"lineage.held_out={size}"])
        with opened(tmp_path / f"{size}", config) as session:
            session.pending.measure(evaluate(session))
            kept = session.pending.outcomes["seen-houses"].kept
            assert len(kept) == expected
            assert all(bool(each.reason) != each.episode.success for each in kept)
            assert all(each.lessons == "no bank" for each in kept if each.reason)
            committed(session)
            assert session.stores.lineage.artifacts.path("held_out").exists() == bool(expected)


def test_a_small_size_keeps_the_first_tasks_of_a_panel(tmp_path, monkeypatch):
    monkeypatch.setattr("coevo.tasks.steps.evaluate.MIB", 2_500)
    config = load_recipe("homerules-coevo-rl", ["warmstart=null", "evaluation.tasks=6", "lineage.held_out=1"])
    with opened(tmp_path, config) as session:
        kept = evaluate(session).value["seen-houses"].kept
        panel = session.parts.env.panel("seen-houses", 6).tasks
        assert 0 < len(kept) < 6
        assert [each.episode.task for each in kept] == list(panel[: len(kept)])


SAFE, OTHER, ELSEWHERE = entry("s mug in safe"), entry("s mug in drawer"), entry("s mug in safe", scope="t", id="e9")
NEEDED = ("s mug in safe",)


def use(entries, read=(), needed=NEEDED, reworded=False, **fields):
    """Part of the lessons in an episode with the task ``do 0`` of scope ``s`` and one turn."""
    index = Index(entries, TfidfConfig(k=1, per="task")) if entries else None
    seen = recall(index, key(1))
    failed = replace(episode(turns=(turn(retrieved=read),)), **fields)
    task = replace(failed.task, instruction=fields.get("instruction", "mug safe"))
    return lesson_use(replace(failed, task=task), needed, index, seen, reworded)


CASES = {
    "no bank": ({"entries": []}, "no bank"),
    "another fact": ({"entries": [OTHER]}, "no fitting lesson"),
    "the fact of another scope": ({"entries": [ELSEWHERE]}, "no fitting lesson"),
    "one of two facts": ({"entries": [SAFE], "needed": (*NEEDED, "s pan in chest")}, "no fitting lesson"),
    "found and not shown": ({"entries": [SAFE]}, "left out"),
    "read": ({"entries": [SAFE], "read": (SAFE.id,)}, "not followed"),
    "the environment cannot tell": ({"entries": [SAFE], "needed": None}, "unknown"),
    "a model's words": ({"entries": [entry("s the safe hides it")], "reworded": True}, "unknown"),
    "a model, and nothing of this scope": ({"entries": [ELSEWHERE], "reworded": True}, "no fitting lesson"),
    "the environment failed": ({"entries": [SAFE], "lost": "crash: gone"}, "unknown"),
}


@pytest.mark.parametrize(("given", "expected"), CASES.values(), ids=CASES)
def test_the_part_of_the_lessons(given, expected):
    assert use(**given) == expected


def test_a_fitting_lesson_that_no_search_finds_was_not_retrieved():
    better = entry("mug safe mug safe")
    assert use([SAFE, better], read=(better.id,)) == LessonUse.NOT_RETRIEVED


def test_what_a_household_needs_is_what_its_true_bank_says():
    env = environment()
    index = Index(env.panel_bank("other-houses"), TfidfConfig())
    for task in env.panel("other-houses", 16).tasks:
        failed = replace(episode(turns=(turn(retrieved=()),)), task=task)
        assert lesson_use(failed, env.needed(task), index, NOTHING, False) == LessonUse.NOT_RETRIEVED
        assert lesson_use(failed, (*env.needed(task), "nobody knows"), index, NOTHING, False) == LessonUse.NONE_FITS
