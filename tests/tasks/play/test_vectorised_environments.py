"""Episodes that are cut after some turns and go on are those that are played in one go."""

from collections import defaultdict
from dataclasses import replace

import pytest
from support.batches import entry
from support.worker import environment, worker

from coevo.records.draws import extend, key
from coevo.tasks.play.play import Attempt, RolloutWorker
from coevo.tasks.play.vectorised_environments import RolloutPlan, VectorisedEnvironments


def attempt(update, slot, number):
    base = key(3, "slots", update, slot, number)
    (task,) = environment().sample(1, base)
    return Attempt(task, 0, (), f"rollout-{update}.{slot}.{number}", update, extend(base, task.id))


def plan(update, slots=3, turns=2, show=lambda it: it):
    return RolloutPlan(slots, turns, lambda slot, number: attempt(update, slot, number), show)


def updates(slots, count, worker=worker, **settings):
    """Parts and whole episodes of each update."""
    for update in range(count):
        parts = slots.play(worker(), plan(update, **settings))
        yield parts, slots.finish(parts)


@pytest.mark.parametrize("turns", [1, 2, 7])
def test_what_was_cut_and_went_on_is_what_is_played_in_one_go(turns):
    slots = VectorisedEnvironments()
    finished = {e.id: e for _, ended in updates(slots, 12 // turns + 1, turns=turns) for e in ended}
    started = [attempt(u, slot, n) for u in range(12 // turns + 1) for slot in range(3) for n in range(7)]
    alone = {e.id: e for e in worker().play([it for it in started if it.id in finished])}
    assert len(finished) >= 6
    for name, episode in finished.items():
        # Log-probs differ in their last digits with what else is in the batch.
        assert [t.completion.token_ids for t in episode.turns] == [t.completion.token_ids for t in alone[name].turns]
        assert [t.observation for t in episode.turns] == [t.observation for t in alone[name].turns]
        assert [t.prompt_ids for t in episode.turns] == [t.prompt_ids for t in alone[name].turns]
        outcome = (episode.success, episode.truncated, episode.progress, episode.start, episode.following)
        assert outcome == (alone[name].success, alone[name].truncated, alone[name].progress, 0, ())


@pytest.mark.parametrize("turns", [1, 3])
def test_every_slot_plays_the_same_turns_and_every_turn_is_in_one_part(turns):
    slots, seen = VectorisedEnvironments(), defaultdict(list)
    for parts, _ in updates(slots, 8, turns=turns):
        assert sum(len(part.turns) for part in parts) == 3 * turns
        assert sum(bool(part.following) for part in parts) == len(slots.running) == len(slots.earlier)
        for part in parts:
            seen[part.id].append(part)
    for parts in seen.values():
        starts = [0]
        for part in parts:
            assert part.start == starts[-1]
            starts.append(part.start + len(part.turns))
        assert all(part.following and not part.truncated and not part.success for part in parts[:-1])


def test_the_prompt_beyond_a_cut_is_the_first_of_the_next_part():
    slots = VectorisedEnvironments()
    first = {part.id: part for part in slots.play(worker(), plan(0, turns=1))}
    slots.finish(list(first.values()))
    later = [part for part in slots.play(worker(), plan(1, turns=1)) if part.start]
    assert later
    assert all(part.turns[0].prompt_ids == first[part.id].following for part in later)


def test_the_turn_limit_ends_an_episode_and_nothing_follows():
    short = RolloutWorker(worker().env, worker().context, worker().engine, max_turns=3)
    slots, ended = VectorisedEnvironments(), []
    for _, finished in updates(slots, 4, worker=lambda: short, turns=2):
        ended += finished
    assert {len(episode.turns) for episode in ended} <= {1, 2, 3}
    assert any(episode.truncated and not episode.following for episode in ended)


def test_experience_is_that_of_the_update():
    slots, lesson = VectorisedEnvironments(), entry("lotus mug in safe")
    slots.finish(slots.play(worker(), plan(0, turns=1)))
    told = slots.play(worker(), plan(1, turns=1, show=lambda it: replace(it, entries=(lesson,))))
    assert any(part.start for part in told)
    assert all(turn.retrieved == (lesson.id,) for part in told for turn in part.turns)


def test_an_attempt_whose_slot_there_is_no_more_is_given_up():
    slots = VectorisedEnvironments()
    slots.finish(slots.play(worker(), plan(0, turns=1)))
    lost = slots.running[2].attempt.id
    parts = slots.play(worker(), plan(1, slots=2, turns=1))
    assert lost not in {part.id for part in parts}
    slots.finish(parts)
    assert lost not in slots.earlier
    assert set(slots.running) <= {0, 1}
