"""Classes with TRL's protocol of environments, as users write them, and TRL's own class without its server."""

import random
from types import SimpleNamespace


class Counter:
    """Count to a target that ``reset`` tells."""

    def __init__(self, step=1):
        self.step, self.done = step, False

    def reset(self, target=3, **kwargs) -> str | None:
        self.target, self.count, self.done = target, 0, False
        return f"count to {target} without going over it"

    def increment(self, by: int) -> str:
        """
        Add to the counter.

        Args:
            by: How much to add.

        Returns:
            The new count.
        """
        if by < 0:
            raise ValueError("it only goes up")
        self.count += by * self.step
        self.done = self.count >= self.target
        return f"count is {self.count}"

    async def look(self, tags: list | None = None) -> str:
        """Look at the counter."""
        return f"count is {self.count}"

    def get_reward(self) -> float:
        return float(self.count == self.target)

    def _close(self):
        self.closed = True


class Dice(Counter):
    """A class that says nothing at first, draws from the shared generator, and owns no reward."""

    get_reward = None

    def reset(self, **kwargs):
        self.count, self.target, self.seed = 0, 100, kwargs.get("seed")

    def throw(self) -> dict:
        """Throw a die."""
        self.count += random.randint(1, 6)
        return {"count": self.count}


class Silent:
    """A class without ``reset``."""


class Undescribed(Counter):
    def wave(self) -> str:
        return "hello"


def answered(prompts, completions, environments, target, **kwargs):
    """A reward function of TRL's form."""
    assert "count to" in prompts[0][-1]["content"]
    return [float(messages[-1].get("content") == str(goal)) for messages, goal in zip(completions, target, strict=True)]


def even(environments, **kwargs):
    """A reward that does not always apply."""
    return [None if each.count % 2 else 0.5 for each in environments]


def openreward():
    """TRL's adapter for servers of Open Reward, with a session in place of a server."""
    from trl.experimental.openreward.environment import _RolloutEnvironment

    class Session:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def get_prompt(self):
            return [SimpleNamespace(type="text", text="say the secret word")]

        def call_tool(self, name, arguments):
            right = arguments["word"] == "open"
            said = SimpleNamespace(type="text", text="yes" if right else "no")
            return SimpleNamespace(blocks=[said], reward=float(right), finished=right, metadata=None)

    schema = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    tool = SimpleNamespace(name="say", description="Say a word.", input_schema=schema)
    server = SimpleNamespace(session=lambda **_: Session())
    return _RolloutEnvironment(base_url="http://127.0.0.1:9", _client=object(), _env=server, _tool_specs=[tool])


def openreward_reward(environments, **kwargs):
    """The reward that this class keeps."""
    return [each.reward or 0.0 for each in environments]
