"""AppWorld as a run sees it: tasks of the user's data, panels, and how code blocks are written."""

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from coevo.configs.benchmark_config import AppWorldConfig
from coevo.envs.appworld.app_episodes import AppWorldSimulator
from coevo.envs.base import Guide, MissingPartError
from coevo.envs.stateful.local_workers import LocalWorkers
from coevo.envs.stateful.stateful_environment import SimulatorPosition, StatefulEnvironment
from coevo.records.answer_form import FenceForm
from coevo.records.demonstration import Answer, Moment
from coevo.records.draws import Key, generator
from coevo.records.task import Panel, Task
from coevo.utilities.errors import CoevoError, ConfigError

PYTHON, ROOT = "APPWORLD_PYTHON", "APPWORLD_ROOT"
"""Environment variables with the interpreter, and with the folder of the data."""
INSTALL = "python -m venv DIR, DIR/bin/pip install appworld==0.1.3 and DIR/bin/appworld install"
DOWNLOAD = "appworld download data"
TRAIN = "train"
MAX_BYTES = 2**22
"""Most bytes of a file of the data that is read here."""
TASK_ID = re.compile(r"[0-9A-Za-z]{1,40}_[0-9]{1,4}")
GUIDE = """You complete a task for your supervisor in a world of apps (mail, music, payments, notes and others) by
writing Python. An action is a block of code. It runs in a session that keeps its variables; print what you want to
read. The object apis holds every app: apis.api_docs.show_app_descriptions() lists the apps,
apis.api_docs.show_api_descriptions(app_name='APP') the calls of one, and apis.api_docs.show_api_doc(app_name='APP',
api_name='NAME') says how to call it. apis.supervisor has the supervisor's passwords, addresses and cards. When the
task is done, call apis.supervisor.complete_task(), with answer=... if the task asks a question."""


class AppWorld(StatefulEnvironment):
    """Code blocks in AppWorld's world of apps, which runs in an interpreter of its own (APPWORLD_PYTHON).

    Args:
        config: interpreter, data and limits.

    Raises:
        CoevoError: the interpreter or the data is not there.
    """

    name: ClassVar[str] = "appworld"
    panels: Mapping[str, str] = {
        "dev": "AppWorld's development tasks",
        "test_normal": "AppWorld's test tasks",
        "test_challenge": "AppWorld's test tasks with apps that training has none of",
    }
    has_expert = True
    expert_guesses: ClassVar[bool] = False

    def __init__(self, config: AppWorldConfig) -> None:
        self.config, self.simulator = config, config.simulator
        self.interpreter = config.python or os.environ.get(PYTHON, "")
        if not os.access(self.interpreter, os.X_OK):
            named = f"{self.interpreter} is no interpreter" if self.interpreter else "AppWorld has no interpreter"
            raise CoevoError(f"env.python: {named}: {INSTALL}, and set {PYTHON} or env.python to DIR/bin/python")
        self.root = Path(config.path or os.environ.get(ROOT, "")).absolute()
        if not (self.root / "data" / "tasks").is_dir():
            raise CoevoError(f"env.path: {self.root} has no data/tasks: {DOWNLOAD}, and set {ROOT} or env.path to it")
        names = {split: self._listed(split) for split in (TRAIN, *self.panels)}
        content = json.dumps([names, self._text("version.txt")], sort_keys=True)
        self.version = f"1 {hashlib.sha256(content.encode()).hexdigest()[:12]}"

    def program(self) -> AppWorldSimulator:
        """The simulator that workers get."""
        settings = self.config.model_dump(mode="json", include={"steps", "action_seconds", "output"})
        limits = {"open_seconds": self.simulator.open_seconds, "longest": self.simulator.longest}
        return AppWorldSimulator(settings | limits | {"python": self.interpreter, "root": str(self.root)})

    def open(self, task: Task, key: Key) -> Any:
        """Start an episode below this process, to debug it; runs start theirs in workers."""
        return self.program().open(task, key)

    @cached_property
    def workers(self) -> LocalWorkers:
        """Workers of this machine; AppWorld runs in children of theirs."""
        return LocalWorkers(self.program(), self.simulator)

    def sample(self, count: int, key: Key) -> list[Task]:
        """Draw training tasks, each once; all of them if there are no more."""
        names = self._eased(TRAIN)
        return [self._task(names[index], TRAIN) for index in generator(key).permutation(len(names))[:count]]

    def panel(self, name: str, size: int) -> Panel:
        """Tasks of one of AppWorld's sets; a smaller panel is the beginning of a larger one."""
        if name not in self.panels:
            raise CoevoError(f"{self.name} has the panels {', '.join(self.panels)}, not {name!r}")
        names = self._eased(name)
        if size > len(names):
            raise CoevoError(f"panel {name} has {len(names)} tasks, not {size}: set evaluation.tasks={len(names)}")
        tasks = sorted((self._task(each, name) for each in names), key=lambda task: task.id)
        return Panel(name, self.version, tuple(tasks[:size]))

    def guide(self, task: Task) -> Guide:
        """How code blocks are written, and where the apps describe themselves."""
        return Guide(GUIDE, answer=FenceForm(examples=("print(apis.api_docs.show_app_descriptions())",)))

    def expert(self, moment: Moment, key: Key) -> Answer:
        """Not available: the reference solution belongs to a task."""
        raise MissingPartError(f"{self.name}'s reference solutions play from a state: use advise")

    def advise(self, state: SimulatorPosition, moment: Moment, key: Key) -> Answer:
        """The reference solution of a training or development task, as one block of code.

        Raises:
            MissingPartError: the data has none for this task, as for test tasks.
        """
        code = self._text(f"tasks/{state.task.data['task']}/ground_truth/compiled_solution.py")
        if code is None:
            raise MissingPartError(f"{self.name} has no reference solution of this task")
        return Answer("", f"{code}\nsolution(apis, requester)")

    def _task(self, name: str, split: str) -> Task:
        level = self._difficulty(name)
        kind = "task" if level is None else f"difficulty-{level}"
        specification = self._json(f"tasks/{name}/specs.json") or {}
        asked = specification.get("instruction")
        if not isinstance(asked, str) or not asked:
            raise CoevoError(f"{self.root}/data/tasks/{name}: it has no instruction: {DOWNLOAD}")
        return Task(self.name, kind, asked, name.partition("_")[0], split, {"task": name})

    def _eased(self, split: str) -> Sequence[str]:
        """Ids of a set that are not too difficult. Raises ``CoevoError`` if there is none."""
        most, names = self.config.difficulty, self._listed(split)
        if most is not None:
            names = [name for name in names if (self._difficulty(name) or 0) <= most]
        if not names:
            hint = f"raise env.difficulty={most}" if most is not None else DOWNLOAD
            raise ConfigError(f"env.path: {self.root}/data/datasets has no task of {split}: {hint}")
        return names

    def _difficulty(self, name: str) -> int | None:
        found = (self._json(f"tasks/{name}/ground_truth/metadata.json") or {}).get("difficulty")
        return found if isinstance(found, int) else None

    def _listed(self, split: str) -> list[str]:
        """Ids of a set, as the data lists them; none where it has no such file. Raises ``CoevoError``."""
        lines = [line.split(":")[0].strip() for line in (self._text(f"datasets/{split}.txt") or "").splitlines()]
        names = [line for line in lines if line]
        wrong = next((name for name in names if not TASK_ID.fullmatch(name)), None)
        if wrong is not None:
            raise CoevoError(f"{self.root}/data/datasets/{split}.txt: {wrong[:60]!r} is no id of a task: {DOWNLOAD}")
        return sorted(set(names))

    def _json(self, path: str) -> dict[str, Any] | None:
        """A file of the data; None if it is not there. Raises ``CoevoError``."""
        text = self._text(path)
        try:
            found = None if text is None else json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CoevoError(f"{self.root}/data/{path}: it is no JSON ({str(error)[:100]}): {DOWNLOAD}") from None
        return found if isinstance(found, dict) else None

    def _text(self, path: str) -> str | None:
        """Text of a file of the data; None if it is not there. Raises ``CoevoError``."""
        try:
            with (self.root / "data" / path).open("rb") as file:
                return file.read(MAX_BYTES).decode()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise CoevoError(f"{self.root}/data/{path}: it cannot be read ({error}): {DOWNLOAD}") from None
