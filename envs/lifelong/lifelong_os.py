"""Shell tasks after LifelongAgentBench (Zheng et al. 2025), in a sandbox that ends with its episode."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from coevo.envs.base import Guide, Probe, Step
from coevo.envs.expert_turns import expert_turns
from coevo.envs.failures import one_line
from coevo.envs.lifelong import shell_tasks
from coevo.envs.lifelong.published_tasks import PublishedShell, published
from coevo.envs.lifelong.sandbox import MAX_SCRIPT_BYTES, SCRIPT_SECONDS, Sandbox, ScriptResult, refusal
from coevo.envs.lifelong.shell_tasks import SHELL_NAME, ShellKind
from coevo.envs.stateful.stateful_environment import SimulatorPosition, StatefulEnvironment
from coevo.records.answer_form import NamedAction, NamedForm
from coevo.records.demonstration import Answer, Demonstration, Moment
from coevo.records.draws import Key, extend, generator
from coevo.records.task import Panel, Task
from coevo.utilities.errors import CoevoError, ConfigError

GUIDE = f"""An action is one of these:
bash, with a script in a fence: run it as root in a shell that stays for the whole task; you see its output. A script
may take {SCRIPT_SECONDS:.0f} seconds, and reads no input.
finish: the task is done; it is judged, and ends.
The machine has the usual commands, no network and no editor."""
FORM = NamedForm(label="Act", actions=(NamedAction(name="bash", fence="bash"), NamedAction(name="finish")))
UNREADABLE = "error: an action is bash with a script, or finish"
MAX_SHOWN_CHARS = 2_000
"""Most characters of a script's output that the agent sees."""
KINDS: tuple[ShellKind, ...] = ("files", "accounts")


class LifelongOs(StatefulEnvironment):
    """A small Linux system in a sandbox, in which files and accounts are brought into the state that is asked for.

    Args:
        kinds: kinds of tasks: ``files``, and ``accounts``, which only root can play.
        wishes: things that a task asks for, 1 to 4.
        steps: actions after which an episode is cut, 2 to 50.
        path: folder of LifelongAgentBench's files, instead of tasks drawn from keys.

    Raises:
        ConfigError: an option is out of its bounds.
        CoevoError: the system refuses the sandbox; or the files are missing, or no files of LifelongAgentBench.
    """

    name: ClassVar[str] = SHELL_NAME
    panels: Mapping[str, str] = shell_tasks.SHELL_PANELS
    has_expert = True
    expert_guesses: ClassVar[bool] = False

    def __init__(
        self, kinds: Sequence[ShellKind] = KINDS, wishes: int = 2, steps: int = 5, path: str | None = None
    ) -> None:
        if not kinds or len({*kinds}) < len(kinds) or {*kinds} - {*KINDS}:
            raise ConfigError(f"env.options.kinds = {list(kinds)}: name files, accounts or both")
        if not 1 <= wishes <= 4 or not 2 <= steps <= 50:
            raise ConfigError(f"env.options: wishes = {wishes} and steps = {steps}: wishes are 1 to 4, steps 2 to 50")
        self.accounts = "accounts" in kinds or path is not None
        refused = refusal(self.accounts)
        if refused:
            raise CoevoError(f"{SHELL_NAME}: {refused}")
        self.kinds, self.wishes, self.steps, self.path = tuple(kinds), wishes, steps, path
        self.version = f"2 {'+'.join(kinds)} {wishes}"
        self._published: tuple[Task, ...] = ()
        if path is not None:
            found = published(Path(path))
            self._published = tuple(_published_task(each, steps) for each in found.shell)
            self.version = f"2 LifelongAgentBench/{found.hash}"

    def sample(self, count: int, key: Key) -> list[Task]:
        """Training tasks, different ones as long as there are enough."""
        return self._drawn(count, key, "train")

    def panel(self, name: str, size: int) -> Panel:
        """Tasks that training leaves out; a smaller panel is the beginning of a larger one."""
        if self.path is None or name not in self.panels:
            tasks = shell_tasks.shell_panel(self.kinds, self.wishes, self.steps, name, size)
            return Panel(name, self.version, tasks)
        every = tuple(task for task in self._published if shell_tasks.split_of(task) == "held-out")
        if size > len(every):
            raise CoevoError(f"panel {name!r} has {len(every)} tasks in these files, not {size}: request fewer")
        return Panel(name, self.version, every[:size])

    def guide(self, task: Task) -> Guide:
        """The two forms of actions, as LifelongAgentBench asks for them."""
        return Guide(GUIDE, ("bash", "finish"), answer=FORM)

    def advise(self, state: SimulatorPosition, moment: Moment, key: Key) -> Answer:
        """The script that solves the task, which no agent sees; then ``finish``."""
        return Answer("", "finish" if state.actions else f"bash {state.task.data['solution']}")

    def demonstrations(self, episodes: int, drills: int, key: Key) -> list[Demonstration]:
        """Turns of ``episodes`` episodes of the oracle, on tasks for cloning alone.

        Raises:
            ConfigError: drills are requested; there is nothing to recite.
        """
        if drills:
            raise ConfigError(f"warmstart.drills={drills}: {self.name} has nothing to recite; set warmstart.drills=0")
        return [turn for task in self._drawn(episodes, key, "fresh") for turn in expert_turns(self, task, key)]

    def probe(self, size: int, key: Key) -> Probe:
        """Tasks for cloning alone, without lessons: only success counts."""
        return Probe(tuple(self._drawn(size, extend(key, "probe"), "fresh")), ((),) * size, ())

    def open(self, task: Task, key: Key) -> tuple["ShellEpisode", str]:
        """Start a sandbox and prepare the task in it.

        Raises:
            CoevoError: the task is of another environment, or its preparation fails.
        """
        if task.env != SHELL_NAME:
            raise CoevoError(f"task {task.id} belongs to environment {task.env!r}, not {SHELL_NAME!r}: start it there")
        sandbox = Sandbox(self.accounts)
        try:
            prepared = sandbox.run(str(task.data["setup"]) or "true", alone=True)
            if prepared.code != 0:
                raise CoevoError(f"task {task.id} cannot be prepared: {one_line(prepared.output, 120)}")
        except BaseException:
            sandbox.close()
            raise
        return ShellEpisode(sandbox, str(task.data["judge"]), int(task.data["steps"])), "a shell of root in /root"

    def __getstate__(self) -> dict[str, Any]:
        # Workers get their tasks one by one.
        return {name: value for name, value in super().__getstate__().items() if name != "_published"}

    def _drawn(self, count: int, draw: Key, split: str) -> list[Task]:
        if self.path is None:
            return shell_tasks.shell_tasks(self.kinds, self.wishes, self.steps, count, draw, split)
        tasks = [task for task in self._published if shell_tasks.split_of(task) == split]
        if not tasks:
            raise CoevoError(f"env.options.path={self.path}: has no task of the shell for {split}")
        order = generator(draw).permutation(len(tasks))
        return [tasks[order[index % len(tasks)]] for index in range(count)]


class ShellEpisode:
    """A running episode: a sandbox, the script that judges it, and the actions that are left."""

    def __init__(self, sandbox: Sandbox, judge: str, left: int) -> None:
        self._sandbox, self._judge, self._left = sandbox, judge, left

    def act(self, action: str) -> Step[None]:
        """Run a script, or judge the system; any other text costs a step."""
        self._left -= 1
        name, payload = (*action.split(maxsplit=1), "", "")[:2]
        if name.lower() == "finish":
            return self._judged()
        if name.lower() != "bash" or not payload:
            return self._continued(UNREADABLE, "failed", valid=False)
        script = payload.encode(errors="replace")
        if len(script) > MAX_SCRIPT_BYTES:
            return self._continued(f"error: a script has at most {MAX_SCRIPT_BYTES} bytes", "failed", valid=False)
        result = self._sandbox.run(script.decode())
        return self._continued(_shown(result), _status(result), valid=True)

    def close(self) -> None:
        """End the sandbox."""
        self._sandbox.close()

    def _continued(self, observation: str, feedback: str, valid: bool) -> Step[None]:
        over = self._left <= 0
        said = f"{feedback}, and not finished" if over else feedback
        return Step(None, observation, said, 0.0, done=over, success=False, valid=valid, truncated=over)

    def _judged(self) -> Step[None]:
        result = self._sandbox.run(self._judge, alone=True)
        solved = result.code == 0
        reason = one_line(_clean(result.output), 200) or "the state is not as wished"
        said = "right" if solved else f"wrong: {reason}"
        return Step(None, said, said, float(solved), done=True, success=solved)


def _status(result: ScriptResult) -> str:
    if result.timed_out:
        return "out of time, the shell was ended"
    return f"exit status {result.code}" + (", the shell has ended" if result.ended else "")


def _shown(result: ScriptResult) -> str:
    """Output as the agent sees it."""
    text = _clean(result.output).rstrip()
    if result.timed_out:
        text += f"\n[ended after {SCRIPT_SECONDS:.0f} seconds; a new shell starts with the next script]"
    if len(text) > MAX_SHOWN_CHARS:
        text = text[:MAX_SHOWN_CHARS] + " [...]"
    return text.lstrip("\n") or "no output"


def _clean(text: str) -> str:
    """Text without control characters but line ends and tabs."""
    return "".join(letter if letter in "\n\t" or letter.isprintable() else "\ufffd" for letter in text)


def _published_task(found: PublishedShell, steps: int) -> Task:
    scripts = {"setup": found.setup, "solution": found.solution, "judge": found.judge, "number": found.number}
    return shell_tasks.shell_task("published", found.instruction, scripts, found.skills, steps, "train")
