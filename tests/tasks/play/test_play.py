"""Episodes are a function of their attempt: neither order nor company changes them."""

from dataclasses import replace

import pytest
from support.batches import entry
from support.worker import CONFIG, alone, environment, worker

from coevo.configs.load.load import load_recipe
from coevo.models.policy.context import CONTEXT_WORDS
from coevo.models.policy.policy import build
from coevo.records.draws import extend, key
from coevo.tasks.play.play import Attempt, RolloutWorker
from coevo.tasks.run.assemble import worker_of


def attempts(count=4, replicas=2, entries=()):
    base = key(3, "play")
    return [
        Attempt(task, n, tuple(entries), "rollout-0", 1, extend(base, task.id, n))
        for task in environment().sample(count, key(5))
        for n in range(replicas)
    ]


@pytest.fixture(scope="module")
def played():
    return worker().play(attempts())


def test_episodes_come_in_the_order_of_their_attempts(played):
    assert [episode.id for episode in played] == [attempt.id for attempt in attempts()]
    assert [(episode.task, episode.replica) for episode in played] == [(a.task, a.replica) for a in attempts()]


def test_company_and_order_change_nothing(played):
    shuffled = attempts()[::-1][:5]
    again = {episode.id: episode for episode in worker().play(shuffled)}
    for episode in played:
        if episode.id in again:
            alone = again[episode.id]
            assert [t.completion.token_ids for t in alone.turns] == [t.completion.token_ids for t in episode.turns]
            assert (alone.success, alone.truncated) == (episode.success, episode.truncated)


def test_each_turn_is_timed(played):
    assert all(turn.seconds > 0 for episode in played for turn in episode.turns)


def test_replicas_differ(played):
    first, second = ([turn.completion.token_ids for turn in episode.turns] for episode in played[:2])
    assert first != second


def test_what_was_retrieved_stands_in_prompt_and_record():
    lesson = entry("lotus mug in safe")
    (episode, *_) = worker().play(attempts(1, 1, [lesson]))
    shown = worker().context._tokenizer.decode(episode.turns[0].prompt_ids)
    assert "lotus mug in safe" in shown
    assert all(turn.retrieved == (lesson.id,) for turn in episode.turns)


def test_a_turn_shows_what_its_observation_recalls_behind_what_lasts():
    lasting, told = entry("lotus mug in safe"), [entry("lotus fork in safe"), entry("lotus heat with microwave")]
    asked = []

    def recall(observation):
        asked.append(observation)
        return (lasting, told[len(asked) % 2])

    (attempt,) = attempts(1, 1, [lasting])
    (episode,) = worker().play([replace(attempt, recall=recall)])
    assert asked == [turn.observation for turn in episode.turns]
    assert len(asked) > 1
    for number, turn in enumerate(episode.turns, 1):
        assert turn.retrieved == (lasting.id, told[number % 2].id)
        shown = worker().context._tokenizer.decode(turn.prompt_ids)
        assert f"lessons . lotus mug in safe . {told[number % 2].strategy} . recent" in shown


def untrained(*settings):
    """A rollout worker with other settings than the recipe's."""
    policy = build(CONFIG.policy, (*environment().vocabulary, *CONTEXT_WORDS), key(1))
    return worker_of(load_recipe("homerules-coevo-rl", [*settings]), environment(), policy)


def leading():
    """A rollout worker whose lessons stand in the system message."""
    return untrained("context.placement=system")


def test_what_does_not_fit_the_prompt_does_not_count_as_retrieved():
    told = [entry(f"lotus {thing} in safe") for thing in ("mug", "fork", "plate")]
    (attempt,) = attempts(1, 1, told[:2])
    tight = untrained("context.experience_tokens=6")
    (episode,) = tight.play([replace(attempt, recall=lambda observation: (told[2],))])
    for turn in episode.turns:
        assert turn.retrieved == (told[0].id,)
        assert " lessons . lotus mug in safe . recent " in tight.context._tokenizer.decode(turn.prompt_ids)


def asking(lesson, count=2, replicas=3):
    """Attempts that recall what depends on their observation besides what lasts."""

    def recall(observation):
        return (entry(f"lotus fork in {observation.split()[1]}"),)

    return [replace(attempt, recall=recall) for attempt in attempts(count, replicas, [lesson])]


@pytest.mark.parametrize("made", [worker, leading])
def test_lessons_of_a_turn_change_no_episode_by_company(made):
    asked = asking(entry("lotus mug in safe"))
    for attempt, episode in zip(asked, made().play(asked), strict=True):
        (alone,) = made().play([attempt])
        for one, other in zip(alone.turns, episode.turns, strict=True):
            assert one.prompt_ids == other.prompt_ids
            assert one.completion.token_ids == other.completion.token_ids
            assert one.completion.logprobs == pytest.approx(other.completion.logprobs, abs=1e-5)
    said = made().context._tokenizer.decode(episode.turns[-1].prompt_ids)
    told = f"lessons . lotus mug in safe . lotus fork in {episode.turns[-1].observation.split()[1]} . "
    assert said.startswith(f"system {told}user ") if made is leading else f" {told}recent " in said


def test_what_a_turn_recalls_belongs_to_the_shared_head_where_it_leads():
    groups = []
    for made in (worker, leading):
        played = made()
        asked, engine = [], played.engine

        class Listening:
            longest_prompt = engine.longest_prompt

            def generate(self, requests, engine=engine, asked=asked):
                asked.append(requests)
                return engine.generate(requests)

        RolloutWorker(played.env, played.context, Listening(), 3).play(asking(entry("lotus mug in safe")))
        groups.append(asked)
    behind, leads = groups
    assert len({request.group for turn in behind for request in turn}) == 2
    # At first all of a task see the same; later those share a head that see the same.
    assert len({request.group for request in leads[0]}) == 2
    for turn in leads:
        heads = {}
        for request in turn:
            block = leading().context._tokenizer.decode(request.prompt_ids).partition(" recent ")[0]
            assert heads.setdefault(request.group, block) == block


def test_an_episode_ends_with_the_environment_or_at_the_limit(played):
    assert all(1 <= len(episode.turns) <= 5 for episode in played)
    short = RolloutWorker(worker().env, worker().context, worker().engine, max_turns=2)
    for episode in short.play(attempts(2, 1)):
        assert len(episode.turns) == 2
        assert episode.truncated
        assert not episode.success


def test_no_attempts_no_episodes():
    assert worker().play([]) == []


@pytest.mark.parametrize("width", [1, 3, 64])
@pytest.mark.parametrize("pace", ["turn", "episode"])
def test_each_attempt_ends_once_whatever_else_is_in_progress(played, width, pace):
    ended, begun = [], []

    def asked():
        for attempt in attempts():
            begun.append(attempt.id)
            assert len(begun) - len(ended) <= width
            yield attempt

    (worker() if pace == "turn" else alone()).play_each(asked(), width, ended.append)
    assert sorted(map(outcome, ended)) == sorted(map(outcome, played))


def outcome(episode):
    """All but log-probs, which a batch changes in their last bits."""
    turns = [(turn.prompt_ids, turn.completion.token_ids, turn.action, turn.reward) for turn in episode.turns]
    return episode.id, turns, episode.success, episode.truncated


def test_a_failure_of_what_keeps_an_episode_frees_the_others():
    class Counted(type(environment())):
        held = 0

        def try_start(self, tasks):
            self.held += len(tasks)
            return super().try_start(tasks)

        def release(self, states):
            self.held -= len(states)

    env, real = Counted(), worker()

    def full(episode):
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        RolloutWorker(env, real.context, real.engine, 2).play_each(attempts(), 4, full)
    assert env.held == 0
