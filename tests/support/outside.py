"""Parts from other packages: a module for each kind, as a folder of one's own or as an installed distribution."""

import sys
from typing import get_args

import pytest

from coevo.configs.outside_part import OutsidePartConfig

ADVANTAGE = '''
"""Places within the group: the best episode gets 1/2, the worst -1/2."""
import numpy as np
import coevo


class Rank(coevo.AdvantagePart):
    """Centred ranks within the group."""

    class Config(coevo.Config):
        scale: float = 1.0
        """Factor of all advantages."""

    def advantages(self, trajectories):
        values = np.array([self.place(each, trajectories) for each in trajectories])
        return coevo.of_episodes(trajectories, self.config.scale * values, values != 0, centred=True)

    def place(self, mine, trajectories):
        group = [other.total for other in trajectories if other.group == mine.group]
        return sum(np.sign(mine.total - other) for other in group) / (2 * max(len(group) - 1, 1))
'''
REWARD = '''
import numpy as np
import coevo


class Brief(coevo.RewardPart):
    """The environment's reward, less a price for each turn."""

    class Config(coevo.Config):
        price: float = 0.01

    whole = False

    def reward(self, episodes, penalties, baselines):
        turns = [np.array([turn.reward - self.config.price for turn in each.turns]) - cost
                 for each, cost in zip(episodes, penalties)]
        shaping = np.array([mine.sum() - each.reward for mine, each in zip(turns, episodes)])
        return coevo.Rewards(shaping, turns, metrics={"policy/reward/price": self.config.price})
'''
RETRIEVAL = '''
import numpy as np
import coevo


class Shared(coevo.RetrievalPart):
    """Number of words that a lesson shares with the query."""

    class Config(coevo.Config):
        least: int = 1

    def fit(self, library):
        words = [set(entry.strategy.split()) for entry in library.entries]

        def score(question):
            asked = set(question.text.split()) - question.without
            shared = np.array([len(words[row] & asked) for row in question.rows], float)
            return np.where(shared >= self.config.least, shared, coevo.NEVER)

        return score
'''
WRITER = '''
import coevo


class Feedback(coevo.WriterPart):
    """The last feedback of each success, as a lesson of its pool."""

    class Config(coevo.Config):
        most: int = 4

    def write(self, evidence):
        found = {}
        for episode in evidence.episodes:
            if episode.success and episode.turns:
                entry = self.lesson(episode, evidence.revision)
                found.setdefault(entry.id, entry)
        fresh = [entry for entry in found.values() if entry.id not in evidence.library.row_of]
        return coevo.Proposal(tuple(fresh[: self.config.most]), counts={"lessons": float(len(found))})

    def lesson(self, episode, revision):
        turn, scope = episode.turns[-1], self.key(episode.task)
        text = f"{turn.action} : {turn.feedback}"
        return coevo.Entry(coevo.entry_id(scope, text), text, "", turn.action, episode.task.instruction, scope,
                           episode.task.split, (episode.id,), revision, revision)
'''
ADMISSION = '''
import coevo


class First(coevo.AdmissionPart):
    """The first candidates, while there is room."""

    class Config(coevo.Config):
        room: int = 8

    def decide(self, proposal, library, replay, revision):
        fresh = [entry for entry in proposal.entries if entry.id not in library.row_of]
        taken = tuple(fresh[: max(0, self.config.room - len(library))])
        return coevo.Decision(taken, metrics={"bank/admission/taken": float(len(taken))})
'''
SCHEDULE = '''
import coevo


class InTurn(coevo.SchedulePart):
    """Policy and bank in turn."""

    class Config(coevo.Config):
        stretch: int = 1

    def phase(self, iteration, entries):
        learns = iteration // self.config.stretch % 2 == 0
        return coevo.Phase(learns, not learns, iteration - iteration % self.config.stretch)
'''
PARTS = {
    "update.advantage": ("my_rank", "Rank", ADVANTAGE, {"scale": 2.0}, "coevo.advantages"),
    "update.reward": ("my_reward", "Brief", REWARD, {"price": 0.02}, "coevo.rewards"),
    "bank.retrieval": ("my_retrieval", "Shared", RETRIEVAL, {"least": 2}, "coevo.retrieval"),
    "bank.writer": ("my_writer", "Feedback", WRITER, {"most": 3}, "coevo.writers"),
    "bank.admission": ("my_admission", "First", ADMISSION, {"room": 5}, "coevo.admission"),
    "schedule": ("my_schedule", "InTurn", SCHEDULE, {"stretch": 2}, "coevo.schedules"),
}
"""By section: module, class, source, an option that is not the default, and entry-point group."""


def built_in(union):
    """Configuration classes of a union, without the one for parts from other packages."""
    return [kind for kind in get_args(get_args(union)[0]) if not issubclass(kind, OutsidePartConfig)]


def reference(setting):
    module, name, *_ = PARTS[setting]
    return f"{module}:{name}"


def settings(folder, *sections):
    """Overrides that name these parts, all by default, in a folder."""
    chosen = [f"{each}={{type: '{reference(each)}', options: {PARTS[each][3]}}}" for each in sections or PARTS]
    return [*chosen, f"python_path=[{folder}]"]


def write(folder, *sections):
    """Write the modules of these parts, all by default."""
    for module, _, text, *_ in (PARTS[each] for each in sections or PARTS):
        (folder / f"{module}.py").write_text(text, encoding="utf-8")
    return folder


def install(folder):
    """Write all modules and the metadata of a distribution that registers each under the last part of its section."""
    write(folder)
    metadata = folder / "my_parts-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my-parts\nVersion: 1.0\n")
    lines = [f"[{each[4]}]\nmy-{setting.rpartition('.')[2]} = {reference(setting)}" for setting, each in PARTS.items()]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def fresh(monkeypatch):
    """No part is open, and none of the modules is imported; so it is again afterwards."""
    monkeypatch.setattr("coevo.configs.outside_part._opened", {})
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    forget()


def forget():
    """Let modules of parts be imported anew."""
    for name in [name for name in sys.modules if name.startswith("my_")]:
        del sys.modules[name]


def imported():
    return sorted(name for name in sys.modules if name.startswith("my_"))
