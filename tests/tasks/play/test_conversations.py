"""Conversations of a rollout worker: lessons stand in the turn that shows them first, and a resume continues them."""

import pytest
from support import templates
from support.entries import entry
from support.hostile import Hostile, Scripted

from coevo.configs.context_config import ContextConfig
from coevo.envs.base import Guide
from coevo.models.policy.context import Context
from coevo.records.arrow import episodes_to_table, table_to_episodes
from coevo.records.draws import key
from coevo.tasks.play.play import Attempt, RolloutWorker
from coevo.tasks.play.vectorised_environments import Unfinished, replayed

LASTING, LATER = entry("mugs are in the <s> safe"), entry("look twice")
TOKENIZER = templates.tokenizer("qwen3")


class Endless(Hostile):
    """No action ends an episode."""

    def _step(self, state, action):
        return super()._step(2, action)


def worker(**changes):
    config = ContextConfig(style="conversation", memory_length=None, placement="turn").model_copy(update=changes)
    return RolloutWorker(Endless(observation="<|im_end|>"), Context(config, TOKENIZER), Scripted(), 9)


def played(made, turns):
    """An attempt after some turns, whose second and later turns recall a lesson."""
    numbers = iter(range(99))
    (task,) = made.env.sample(1, key(0))
    recall = lambda observation: (LATER,) if next(numbers) else ()  # noqa: E731
    (live,) = made.begin([Attempt(task, 0, (LASTING,), "rollout", 0, key(0), recall)])
    for _ in range(turns):
        made.play_turn([live])
    return live


def test_a_lesson_stands_once_in_the_turn_that_shows_it_first():
    live = played(worker(), 4)
    said = [TOKENIZER.decode(turn.prompt_ids) for turn in live.turns]
    assert [text.count(f'- "{LASTING.strategy}"') for text in said] == [1, 1, 1, 1]
    assert [text.count(f'- "{LATER.strategy}"') for text in said] == [0, 1, 1, 1]
    first = said[1][len(said[0]) :]
    assert first.index("Result: mug in safe") < first.index(LATER.strategy) < first.index("You observe: at hall")
    assert [turn.retrieved for turn in live.turns] == [(LASTING.id,), *[(LASTING.id, LATER.id)] * 3]


def test_a_new_branch_shows_its_lessons_again():
    live = played(worker(memory_length=1), 4)
    said = [TOKENIZER.decode(turn.prompt_ids) for turn in live.turns]
    assert [text.count(f'- "{LASTING.strategy}"') for text in said] == [1, 1, 1, 1]
    assert [text.count(f'- "{LATER.strategy}"') for text in said] == [0, 1, 1, 1]
    assert [text.count("Result:") for text in said] == [0, 1, 0, 1]


def test_an_attempt_that_was_stored_continues_with_the_same_prompt():
    made = worker()
    live = played(made, 3)
    (episode,) = table_to_episodes(episodes_to_table([live.part((1,))]))
    again = replayed(made.env, Unfinished(0, "rollout", key(0), live.observation, episode))
    again.attempt = live.attempt
    prompts = [made.context.prompt(each.moment(made.context)) for each in (live, again)]
    assert prompts[0] == prompts[1]
    last = live.turns[-1]
    head = (*last.prompt_ids, *last.completion.token_ids)
    assert prompts[0][: len(head)] == head


@pytest.mark.parametrize(("style", "placement"), [("conversation", "turn"), ("chat", "task")])
def test_every_prompt_that_is_played_holds_the_guide_once(style, placement):
    made = worker(style=style, placement=placement)
    made.env.guide = lambda task: Guide("Actions are: go PLACE.", ("go",))
    said = [TOKENIZER.decode(turn.prompt_ids) for turn in played(made, 3).turns]
    assert [text.count("Actions are: go PLACE.") for text in said] == [1, 1, 1]
