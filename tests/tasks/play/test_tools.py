"""An environment that offers tools: prompts declare them, calls are actions, and other calls are counted faults."""

import json

from support import templates

from coevo.configs.context_config import ContextConfig
from coevo.envs.base import Guide
from coevo.envs.homerules.homerules import HomeRules
from coevo.models.policy.context import Context
from coevo.records.draws import extend, key
from coevo.records.episode import Completion
from coevo.tasks.play.play import Attempt, RolloutWorker

WHERE = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
TOOLS = ({"type": "function", "function": {"name": "go", "description": "Go to a place.", "parameters": WHERE}},)


class Called(HomeRules):
    """The household by tool calls."""

    def guide(self, task):
        return Guide("", (), TOOLS)

    def step(self, states, actions):
        calls = [json.loads(action) if action else {} for action in actions]
        words = [f"{call['name']} {call['arguments']['place']}" if call else "" for call in calls]
        return super().step(states, words)


class Scripted:
    """Engine that answers with these texts."""

    longest_prompt = 2**20

    def __init__(self, tokenizer, texts):
        self.tokenizer, self.texts = tokenizer, list(texts)

    def generate(self, requests):
        text = self.texts.pop(0)
        return [Completion(tuple(self.tokenizer.encode(text)), (-0.5,), text, True) for _ in requests]


def test_an_episode_of_tool_calls():
    answers = [
        '<tool_call>{"name": "fly", "arguments": {"place": "safe"}}</tool_call>',
        '<tool_call>{"name": "go", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "go", "arguments": {"place": "safe"}}</tool_call>',
        '<tool_call>{"name": "go", "argum',
    ]
    home, tokenizer = Called(level=2), templates.tokenizer("qwen3")
    context = Context(ContextConfig(style="conversation", memory_length=None, placement="turn"), tokenizer)
    (task,) = home.sample(1, key(5))
    attempt = Attempt(task, 0, (), "rollout-0", 1, extend(key(3), task.id, 0))
    (episode,) = RolloutWorker(home, context, Scripted(tokenizer, answers), len(answers)).play([attempt])
    assert [turn.fault for turn in episode.turns] == ["unknown tool", "missing argument", "", "malformed call"]
    assert [turn.valid for turn in episode.turns] == [False, False, True, False]
    assert json.loads(episode.turns[2].action) == {"name": "go", "arguments": {"place": "safe"}}
    last = tokenizer.decode(episode.turns[3].prompt_ids)
    system = last.partition("<|im_start|>user")[0]
    assert "Go to a place." in system
    assert "Answer with one tool call." in system
    assert "Action:" not in system
    assert last.count("<tool_response>\n") == 3
