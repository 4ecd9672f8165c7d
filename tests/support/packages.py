"""Packages of an untrained policy, and an agent that is asked without a server."""

from dataclasses import replace

from support.small_run import HEAT, MICROWAVE, MUG
from support.worker import CONFIG, environment

from coevo.flows.evaluation.served_worker import ServedWorker
from coevo.memory.clusters import Cluster
from coevo.memory.stats import Stats
from coevo.models.policy.context import CONTEXT_WORDS
from coevo.models.policy.policy import build, save
from coevo.records.demonstration import PastTurn
from coevo.records.draws import key
from coevo.records.entry import entry_id
from coevo.tasks.package.agent import TurnRequest
from coevo.tasks.package.package import PackageOrigin, pack

ORIGIN = PackageOrigin("first", 2, 2, "abc", "c" * 64, "d" * 64, 2, {"seen-houses": 0.5}, {"seen-houses": "p" * 64})


class Told:
    """A bank in memory: the same two lessons for every house, and one that nobody was asked about."""

    def active(self):
        scopes = {task.scope for task in environment().sample(64, key("scopes"))}
        said = [replace(each, scope=scope) for scope in sorted(scopes) for each in (MUG, MICROWAVE)]
        return [replace(each, id=entry_id(each.scope, each.strategy)) for each in said]

    def stats(self):
        return {entry_id("lotus", HEAT): Stats(entry_id("lotus", HEAT), 4, 3), "gone": Stats("gone", 9)}

    def clusters(self):
        return [Cluster(0, "at safe hold nothing", (entry_id("lotus", HEAT),))]


def untrained(directory, seed=1):
    """A policy whose answers are noise, but always the same noise for the same key."""
    save(build(CONFIG.policy, (*environment().vocabulary, *CONTEXT_WORDS), key(seed)), directory)
    return directory


def packaged(root, config=CONFIG, bank=Told, origin=ORIGIN):
    """A package under a directory."""
    return pack(root / "package", untrained(root / "policy"), bank and bank(), config, origin)


class AskedPlayer(ServedWorker):
    """Asks an agent in this process for what ``ServedWorker`` sends to a URL."""

    def __init__(self, env, agent, seed, max_turns=50):
        super().__init__(env, "http://127.0.0.1:9", seed, max_turns)
        self.agent = agent

    def _ask(self, rows):
        asked = [
            TurnRequest(
                row["instruction"],
                row["observation"],
                tuple(PastTurn(**turn) for turn in row["history"]),
                row["scope"],
                row["kind"],
                row["task"],
                row.get("guide", ""),
            )
            for row in rows
        ]
        return [
            {
                "text": reply.text,
                "thought": reply.answer.thought,
                "action": reply.answer.action,
                "fault": reply.fault,
                "over": reply.over,
                "retrieved": [{"id": entry.id} for entry in reply.shown],
            }
            for reply in self.agent.answer(asked, self._seed)
        ]
