"""SQL tasks after LifelongAgentBench (Zheng et al. 2025): look into a table or change it, then answer."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

from coevo.configs.env import LifelongDbConfig
from coevo.envs.base import Environment, Guide, MissingPartError, Probe, Revealed, Step
from coevo.envs.expert_turns import expert_turns
from coevo.envs.lifelong import convention_tasks, query_tasks
from coevo.envs.lifelong.convention_tasks import CODES, GOODS, NAME, NUMBERS, PRICES, TaskSplit
from coevo.envs.lifelong.published_tasks import PublishedSql, published
from coevo.envs.lifelong.sql_answers import answers
from coevo.envs.lifelong.sql_database import SqlRow, SqlTable, executed, image_of, shown, table_hash, table_rows
from coevo.records.answer_form import NamedAction, NamedForm
from coevo.records.demonstration import Answer, Demonstration, Moment
from coevo.records.draws import Key, extend, generator, key, seed_of
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.records.task import Panel, Task
from coevo.utilities.errors import CoevoError, ConfigError

GUIDE = """An action is one of these:
Operation, with one statement of MySQL in a fence: run it on the database; you see its result.
Answer, with Final Answer: the rows that were asked for as a list of tuples, such as [('pear', 3)], or done after a
change. It ends the task."""
FORM = NamedForm(
    label="Action",
    actions=(NamedAction(name="Operation", fence="sql"), NamedAction(name="Answer", label="Final Answer")),
)
UNREADABLE = "error: an action is Operation with a statement, or Answer with Final Answer"
TOLD = 0.7
"""Share of cloned episodes with notes."""
_NOTE = re.compile(r"(\w+) answer (?:price is (not )?column (\w+)|sold is (not )?state (\d+))")
_SAID = """database table ? price of mark as sold is not column state wrong , ok failed done : goods . []
error: is unchanged no price of the row is gone answer"""


@dataclass(frozen=True, slots=True)
class SqlPosition:
    """State of an episode: its task, the database, the actions that are left, and what the last statement found."""

    task: Task
    image: bytes
    left: int
    rows: tuple[SqlRow, ...] | None = None


class LifelongDb(Environment[SqlPosition]):
    """A database of one table, in which something is looked up or changed with SQL (extra lifelong).

    Args:
        level: 1: databases with hidden conventions, short prompts; 2 and 3: the SQL skills of LifelongAgentBench.
        world: seed of the conventions, and of the panel of levels 2 and 3.
        databases: databases of level 1.
        steps: actions after which an episode is cut.
        path: folder of LifelongAgentBench's files, instead of tasks of a level.

    Raises:
        ConfigError: an option is out of its bounds.
        CoevoError: the files are missing, or no files of LifelongAgentBench.
    """

    name: ClassVar[str] = NAME
    version: str = "1"
    panels: Mapping[str, str] = convention_tasks.CONVENTION_PANELS
    has_expert: bool = True
    concurrent: ClassVar[bool] = True

    def __init__(
        self,
        level: Literal[1, 2, 3] = 1,
        world: int = 0,
        databases: int = 16,
        steps: int = 3,
        path: str | None = None,
    ) -> None:
        self._config = LifelongDbConfig.of(level=level, world=world, databases=databases, steps=steps, path=path)
        self._published: tuple[Task, ...] = ()
        self.version = f"1 level {level}"
        if level > 1 or path is not None:
            self.panels = query_tasks.QUERY_PANELS
        if path is not None:
            found = published(Path(path))
            self._published = tuple(task for each in found.sql if (task := _published_task(each, steps)) is not None)
            self.left_out = len(found.sql) - len(self._published)
            self.version = f"1 LifelongAgentBench/{found.hash} without {self.left_out}"

    def sample(self, count: int, key: Key) -> list[Task]:
        """Training tasks, different ones as long as there are enough."""
        return self._drawn(count, key, "train")

    def panel(self, name: str, size: int) -> Panel:
        """Tasks that training leaves out; a smaller panel is the beginning of a larger one."""
        convention_tasks.checked_panel(name, dict(self.panels))
        if self._config.path is not None:
            tasks = self._of_split("held-out")[:size]
            if len(tasks) < size:
                raise CoevoError(f"panel {name!r} has {len(tasks)} tasks in these files, not {size}: request fewer")
            return Panel(name, self.version, tuple(tasks))
        if self._config.level > 1:
            return Panel(name, self.version, query_tasks.query_panel(self._config, size))
        return Panel(name, self.version, convention_tasks.convention_panel(self._config, name, size))

    def panel_bank(self, panel: str) -> list[Entry] | None:
        """None for the run's own, an empty list for ``no-bank``, all notes for ``other-facts``."""
        return convention_tasks.convention_bank(self._config, panel)

    def start(self, task: Task) -> tuple[SqlPosition, str]:
        """First state of a task, and its table's columns.

        Raises:
            CoevoError: the task is of another environment.
        """
        if task.env != NAME:
            raise CoevoError(f"task {task.id} belongs to environment {task.env!r}, not {NAME!r}: start it there")
        table = _table_of(task)
        names = " ".join(name for name, _ in table.columns)
        return SqlPosition(task, image_of(table), int(task.data["steps"])), f"table {table.name} : {names}"

    def step(self, states: Sequence[SqlPosition], actions: Sequence[str]) -> list[Step[SqlPosition]]:
        """Run a statement or judge an answer for each state; any other text costs a step."""
        return [_advanced(state, action) for state, action in zip(states, actions, strict=True)]

    def guide(self, task: Task) -> Guide:
        """The two forms of actions, as LifelongAgentBench asks for them."""
        return Guide(GUIDE, ("Operation", "Answer"), answer=FORM)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Every word of level 1, sorted; empty for other levels and for files."""
        if self._config.level > 1 or self._config.path is not None:
            return ()
        sql = "Operation Answer SELECT FROM WHERE UPDATE SET = name " + " ".join(map(str, CODES))
        goods = " ".join(f"{each} '{each}'" for each in GOODS)
        found = " ".join(f"[({number},)]" for number in NUMBERS)
        return tuple(sorted({*" ".join((_SAID, sql, goods, found, *PRICES, *convention_tasks.DATABASES)).split()}))

    def expert(self, moment: Moment, key: Key) -> Answer:
        """Not available: the expert needs a state."""
        raise MissingPartError(f"{self.name}'s expert plays from a state: use advise")

    def advise(self, state: SqlPosition, moment: Moment, key: Key) -> Answer:
        """Next action: a statement, then its result as the answer.

        At level 1 the statement follows the notes of the moment, and guesses what they leave open. At other levels, and
        for files, it is the task's own, which no agent sees.
        """
        if state.rows is not None:
            reads = state.task.data["answer"] is not None
            return Answer("", f"Answer {shown(state.rows)}" if reads else "Answer done")
        if "wanted" not in state.task.data:
            return Answer("", f"Operation {state.task.data['sql']}")
        return Answer("", f"Operation {_by_notes(state.task, [note.text for note in moment.lessons], key)}")

    def revealed(self, episode: Episode) -> list[Revealed]:
        """The note in the last feedback, at level 1."""
        when = f"a task is in database {episode.task.scope}"
        said = [f"{episode.task.scope} {turn.feedback}" for turn in episode.turns]
        told = [(step, _NOTE.fullmatch(text)) for step, text in enumerate(said)]
        return [Revealed(found[0], when, step) for step, found in told if found] if self._conventions else []

    def demonstrations(self, episodes: int, drills: int, key: Key) -> list[Demonstration]:
        """Turns of ``episodes`` expert episodes, for cloning alone; at level 1 in other worlds, some with notes.

        Raises:
            ConfigError: drills are requested; there is nothing to recite.
        """
        if drills:
            raise ConfigError(f"warmstart.drills={drills}: {self.name} has nothing to recite; set warmstart.drills=0")
        tasks = self._drawn(episodes, key, "fresh")
        return [
            turn
            for index, task in enumerate(tasks)
            for turn in expert_turns(self, task, key, self._told(task, extend(key, "lessons", index)))
        ]

    def probe(self, size: int, key: Key) -> Probe:
        """Tasks for cloning alone; at level 1 with notes about their database, once true and once false."""
        tasks = tuple(self._drawn(size, extend(key, "probe"), "fresh"))
        if not self._conventions:
            return Probe(tasks, ((),) * size, ())
        return Probe(tasks, tuple(map(true_notes, tasks)), tuple(map(_false_notes, tasks)))

    @property
    def _conventions(self) -> bool:
        return self._config.level == 1 and self._config.path is None

    def _drawn(self, count: int, draw: Key, split: TaskSplit) -> list[Task]:
        if self._config.path is not None:
            tasks = self._of_split(split)
            if not tasks:
                raise CoevoError(f"env.path={self._config.path}: has no task of the database for {split}")
            order = generator(draw).permutation(len(tasks))
            return [tasks[order[index % len(tasks)]] for index in range(count)]
        drawn = convention_tasks.sample if self._config.level == 1 else query_tasks.query_sample
        return drawn(self._config, count, draw, split)

    def _of_split(self, split: TaskSplit) -> list[Task]:
        """Tasks of the files: half of them for training, a quarter for cloning, a quarter held out."""
        every = ((task, query_tasks.SPLITS[_split_seed(task) % 4]) for task in self._published)
        return [task for task, found in every if found == split]

    def _told(self, task: Task, draw: Key) -> tuple[str, ...]:
        """Some true notes in random order, or none."""
        rng = generator(draw)
        if not self._conventions or rng.random() >= TOLD:
            return ()
        true = true_notes(task)
        return tuple(true[index] for index in rng.permutation(len(true))[: rng.integers(1, len(true) + 1)])


def true_notes(task: Task) -> tuple[str, ...]:
    """Both notes that are true in the database of a task of level 1."""
    facts = convention_tasks.Conventions(task.data["price"], task.data["sold"])
    return convention_tasks.convention_notes(task.scope, facts)


def _false_notes(task: Task) -> tuple[str, ...]:
    price = PRICES[(PRICES.index(task.data["price"]) + 1) % len(PRICES)]
    sold = CODES[(CODES.index(task.data["sold"]) + 1) % len(CODES)]
    return convention_tasks.convention_notes(task.scope, convention_tasks.Conventions(price, sold))


def _by_notes(task: Task, notes: Sequence[str], draw: Key) -> str:
    """Statement of a task of level 1, by what the notes say of its convention."""
    column, every = (3, PRICES) if task.kind == "price" else (5, tuple(map(str, CODES)))
    read = [match for note in notes if (match := _NOTE.search(note)) and match[1] == task.scope]
    found = [match for match in read if match[column] in every]
    wrong = {match[column] for match in found if match[column - 1]}
    right = [match[column] for match in found if not match[column - 1]]
    open_ones = [each for each in every if each not in wrong] or list(every)
    chosen = right[0] if right else open_ones[int(generator(draw).integers(len(open_ones)))]
    wanted = f"WHERE name = '{task.data['wanted']}'"
    if task.kind == "price":
        return f"SELECT {chosen} FROM {convention_tasks.TABLE} {wanted}"
    return f"UPDATE {convention_tasks.TABLE} SET state = {chosen} {wanted}"


def _advanced(state: SqlPosition, action: str) -> Step[SqlPosition]:
    name, payload = (*action.split(maxsplit=1), "", "")[:2]
    after = replace(state, left=state.left - 1)
    if name.lower() == "answer":
        return _judged(after, payload)
    if name.lower() != "operation" or not payload:
        return _continued(after, UNREADABLE, "failed", valid=False)
    outcome = executed(state.image, payload)
    after = replace(after, image=outcome.image, rows=state.rows if outcome.failed else outcome.rows)
    return _continued(after, outcome.text, "failed" if outcome.failed else "ok", valid=not outcome.failed)


def _continued(state: SqlPosition, observation: str, feedback: str, valid: bool) -> Step[SqlPosition]:
    over = state.left <= 0
    said = f"{feedback} , no answer" if over else feedback
    return Step(state, observation, said, 0.0, done=over, success=False, valid=valid, truncated=over)


def _judged(state: SqlPosition, answer: str) -> Step[SqlPosition]:
    """The end of an episode: the rows of the answer, or the table as it is now."""
    data, table = state.task.data, _table_of(state.task)
    rows = table_rows(state.image, table.name)
    if data["answer"] is not None:
        solved = answers(answer, [tuple(row) for row in data["answer"]], data["ordered"])
    else:
        # The task's own statement is run again, so that both hashes are made by the same database.
        wished = table_rows(executed(image_of(table), data["sql"]).image, table.name)
        solved = table_hash(rows) == table_hash(wished)
    if "wanted" in data:
        said = _convention_told(state.task, rows, answer, solved)
    else:
        said = "right" if solved else _lack(table, rows, answer, data["answer"])
    return Step(state, said, said, float(solved), done=True, success=solved)


def _convention_told(task: Task, rows: Sequence[SqlRow], answer: str, solved: bool) -> str:
    """Verdict of level 1, with the convention that it reveals."""
    if solved:
        return convention_tasks.told(task.kind, task.data["price" if task.kind == "price" else "sold"])
    row = next((row for row in rows if row[0] == task.data["wanted"]), None)
    if row is None:
        return "wrong , the row is gone"
    if task.kind == "sell":
        other = row[4] in CODES and row[4] != task.data["sold"]
        return convention_tasks.told("sell", row[4], right=False) if other else "wrong , state is unchanged"
    # Prices as the task has them: an agent may have written others, which say nothing of the convention.
    kept = next(row for row in task.data["rows"] if row[0] == task.data["wanted"])
    named = zip(PRICES, kept[1:4], strict=True)
    column = next((name for name, value in named if answers(answer, [(value,)], ordered=True)), None)
    return "wrong , no price of the row" if column is None else convention_tasks.told("price", column, right=False)


def _lack(table: SqlTable, rows: Sequence[SqlRow], answer: str, wished: Sequence[Sequence[object]] | None) -> str:
    """Fault of an answer or a table, without what would be right."""
    if wished is None:
        same = set(rows) == set(table.rows)
        return "wrong: the table is unchanged" if same else "wrong: the table is not as it should be"
    if "(" not in answer and len(wished) > 1:
        return f"wrong: {len(wished)} rows were asked for, as a list of tuples"
    return f"wrong: {len(wished)} rows of {len(wished[0]) if wished else 0} values were asked for, or other values"


def _table_of(task: Task) -> SqlTable:
    data = task.data
    return SqlTable(
        str(data["table"]), tuple((name, kind) for name, kind in data["columns"]), tuple(map(tuple, data["rows"]))
    )


def _split_seed(task: Task) -> int:
    """Number of a task of the files that no setting changes."""
    return seed_of(key(NAME, "split", task.data["number"], task.instruction))


def _published_task(found: PublishedSql, steps: int) -> Task | None:
    """A task of the files; None if its own statement does not run here, or finds something else."""
    table = SqlTable(found.table, found.columns, found.rows)
    try:
        image = image_of(table)
    except CoevoError:
        return None
    outcome = executed(image, found.sql)
    if outcome.failed or (found.direct is not None and not answers(shown(outcome.rows), found.direct, ordered=True)):
        return None
    names = ", ".join(name for name, _ in found.columns)
    data = {
        "number": found.number, "sql": found.sql, "ordered": True, "skills": sorted(found.skills), "steps": steps,
        "answer": None if found.direct is None else list(map(list, found.direct)),
        **convention_tasks.table_data(table),
    }  # fmt: skip
    asked = f"{found.instruction}\nThe table {found.table} has the columns {names}."
    kind = found.sql.split(maxsplit=1)[0].lower() if found.sql.strip() else "select"
    return Task(NAME, kind, asked, found.table, "train", data)
