"""Customer service of tau2-bench as a run sees it: tasks, panels, the policy, and the reference solutions."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

from coevo.configs.benchmark_config import Tau2Config
from coevo.configs.proxies import reach
from coevo.configs.rows_config import HELD_OUT, TRAIN
from coevo.envs.adapters.episode_parts import SimulatorFacts, facts_of
from coevo.envs.base import Guide, MissingPartError
from coevo.envs.stateful.local_workers import LocalWorkers
from coevo.envs.stateful.stateful_environment import SimulatorPosition, StatefulEnvironment
from coevo.envs.tau2.service_desk import DONE, ServiceDesk
from coevo.envs.tau2.service_domain import VARIABLE, ReferenceAction, ServiceDomain, checkout_folder, read_domain
from coevo.records.answer_form import CallForm
from coevo.records.demonstration import Answer, Moment
from coevo.records.draws import Key, generator
from coevo.records.task import Panel, Task
from coevo.utilities.errors import CoevoError, ConfigError

PYTHON = "TAU2_BENCH_PYTHON"
"""Environment variable with an interpreter that has the packages of the checkout."""
SOLO, WITH_USER = "solo", "with-user"
"""Panels, which say how they are played: their figures are different ones."""
ALONE = """You work for the customer service of a company, by the policy below. There is no customer to talk to: you
have a ticket, and the tools of the company and of the customer's device. An action is a call of a tool. End with
done."""
TALKING = """You work for the customer service of a company, by the policy below. An action is a call of a tool: respond
sends a message to the customer, who ends the conversation; the other tools are the company's."""
SERVE = "serve the customer who is in the conversation"


class Tau2(StatefulEnvironment):
    """Customer service of tau2-bench in an authors' checkout: telecom solo, or all domains with a user model.

    Args:
        config: the checkout, the domain and the user model.

    Raises:
        CoevoError: there is no checkout, a file of it has another form, or there is no key for the user model.
    """

    name: ClassVar[str] = "tau2"
    panels: Mapping[str, str] = {
        SOLO: "the authors' test tasks, played alone: no figure of tau2-bench",
        WITH_USER: "the authors' test tasks, with a model that plays the user",
    }
    expert_guesses: ClassVar[bool] = False

    def __init__(self, config: Tau2Config) -> None:
        self.config, self.simulator, self.python = config, config.simulator, config.python or os.environ.get(PYTHON)
        self.repeats = self.has_expert = config.user is None
        self.played = SOLO if config.user is None else WITH_USER
        self.folder = checkout_folder(config.path, os.environ.get(VARIABLE, ""))
        self.panels = {self.played: type(self).panels[self.played]}
        self.domain = self._eased(
            read_domain(self.folder, config.domain, config.tasks, config.policy, config.user is None)
        )
        user = "" if config.user is None else f" {config.user.model}"
        # Results name the version: how it was played, with which user, on which files.
        without = f" without {self.domain.left_out}" if self.domain.left_out else ""
        self.version = f"1 {config.domain} {self.played}{user} {self.domain.digest[:12]}{without}"

    def program(self) -> ServiceDesk:
        """The simulator that workers get.

        Raises:
            ConfigError: the variable of the user model's key is not set.
        """
        user, name = self.config.user, self.config.user and self.config.user.key
        secret = os.environ.get(name, "") if name else ""
        if name and not (secret.isascii() and secret.isprintable() and secret):
            raise ConfigError(f"env.user.key: the environment has no key in {name}: set it")
        settings = self.config.model_dump(mode="json", include={"domain", "tasks", "policy", "steps", "errors"})
        told = {"user": user and user.model_dump(mode="json", exclude={"key"})}
        return ServiceDesk(settings | told | {"folder": str(self.folder), "longest": self.simulator.longest}, secret)

    def open(self, task: Task, key: Key) -> Any:
        """Start an episode in this process, to debug it; runs start theirs in workers."""
        return self.program().open(task, key)

    @cached_property
    def workers(self) -> LocalWorkers:
        """Workers of this machine."""
        if self.config.user is not None:
            reach(self.config.user.url, "env.user.url", by_requests=False)  # in the environment that they inherit
        return LocalWorkers(self.program(), self.simulator, self.python)

    @cached_property
    def facts(self) -> SimulatorFacts:
        """Policy and tools; a worker is asked once.

        Raises:
            ConfigError: the authors' code cannot be imported, or gives another policy than its files.
        """
        facts = facts_of(self.workers.facts(), self.name)
        if facts.guide != self.domain.policy:
            raise ConfigError(f"env.path: the code of {self.folder} gives another policy than its files: update it")
        return facts

    def sample(self, count: int, key: Key) -> list[Task]:
        """Draw training tasks, each once; all of them if there are no more."""
        names = self.domain.splits[TRAIN]
        return [self._task(names[index], TRAIN) for index in generator(key).permutation(len(names))[:count]]

    def panel(self, name: str, size: int) -> Panel:
        """Tasks of the authors' test split; a smaller panel is the beginning of a larger one."""
        if name != self.played:
            raise CoevoError(f"this {self.name} has the panel {self.played}, not {name!r}: env.user decides")
        names = self.domain.splits[HELD_OUT]
        if size > len(names):
            raise CoevoError(f"panel {name} has {len(names)} tasks, not {size}: set evaluation.tasks={len(names)}")
        tasks = sorted((self._task(each, name) for each in names), key=lambda task: task.id)
        return Panel(name, self.version, tuple(tasks[:size]))

    def guide(self, task: Task) -> Guide:
        """The policy, and the tools as JSON schemas."""
        text = ALONE if self.config.user is None else TALKING
        return Guide(f"{text}\n\n{self.domain.policy}", (), self.facts.tools, CallForm())

    def expert(self, moment: Moment, key: Key) -> Answer:
        """Not available: the reference solution belongs to a task."""
        raise MissingPartError(f"{self.name}'s reference solutions play from a state: use advise")

    def advise(self, state: SimulatorPosition, moment: Moment, key: Key) -> Answer:
        """Next call of the reference solution of a solo task, then its end.

        Raises:
            MissingPartError: a model plays the user, whom no reference solution answers.
        """
        if self.config.user is not None:
            raise MissingPartError(f"{self.name} has reference solutions for solo play alone: leave env.user out")
        calls = self.domain.tasks[state.task.data["task"]].solution
        found = (
            calls[len(state.actions)] if len(state.actions) < len(calls) else ReferenceAction(name=DONE, arguments={})
        )
        return Answer("", json.dumps({"name": found.name, "arguments": found.arguments}, ensure_ascii=False))

    def _eased(self, domain: ServiceDomain) -> ServiceDomain:
        """The domain with tasks of at most ``faults`` faults. Raises ``ConfigError``."""
        most = self.config.faults
        if most is None:
            return domain
        splits = {
            split: tuple(name for name in names if domain.tasks[name].faults <= most)
            for split, names in domain.splits.items()
        }
        empty = next((split for split, names in splits.items() if not names), None)
        if empty is not None:
            raise ConfigError(f"env.faults={most}: no task of {empty} is so easy: raise it")
        return replace(domain, splits=splits)

    def _task(self, name: str, split: str) -> Task:
        found = self.domain.tasks[name]
        asked = SERVE if self.config.user is not None else found.ticket
        if not asked:
            raise CoevoError(f"{self.folder}: the task {name[:100]!r} has no ticket: set env.user")
        return Task(self.name, found.kind, asked, self.config.domain, split, {"task": name})
