"""Games of Gymnasium for tests: one with texts, and one whose steps fail as their actions say."""

import random

import gymnasium
from gymnasium import spaces


class Echo(gymnasium.Env):
    """Repeat the word that was shown: an action is a text of up to 50 characters."""

    def __init__(self, noise="none"):
        letters = "abcdefghijklmnopqrstuvwxyz <>{}\"'"
        self.action_space = spaces.Text(50, charset=letters)
        self.observation_space = spaces.Text(50, charset=letters)
        self.noise = noise

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        # A game that draws from the generator that a whole process shares.
        self.word = f"word {random.choice('abcdefgh')}"
        return self.word, {}

    def step(self, action):
        solved = action == self.word
        seen = self.word + (random.choice("xyz") if self.noise == "shared" else "")
        if self.noise == "clock":
            import time

            seen = f"{time.time_ns()}"
        return seen, float(solved), solved, False, {}


class Broken(Echo):
    """A game that raises an exception, or pays what is no number."""

    def step(self, action):
        if action == "raise":
            raise RuntimeError("out of order")
        return self.word, {"nan": float("nan"), "text": "1"}.get(action, 0.0), False, False, {}


gymnasium.register("Echo-v0", Echo, max_episode_steps=6)
gymnasium.register("Broken-v0", Broken)


def corners(square):
    """Words of a square of the frozen lake."""
    return f"row {square // 4} column {square % 4}"


def nothing(square):
    """No words."""
