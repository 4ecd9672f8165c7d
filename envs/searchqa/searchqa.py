"""Search QA as an environment: an encyclopedia made from a seed, or questions and passages of files."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

from coevo.configs.env import SearchQAConfig
from coevo.envs.base import Environment, Guide, MissingPartError, Probe, Revealed, Step
from coevo.envs.expert_turns import expert_turns
from coevo.envs.searchqa import question_draws
from coevo.envs.searchqa.encyclopedia import NAME, REALMS, SOURCES, words
from coevo.envs.searchqa.passage_reader import next_move
from coevo.envs.searchqa.question_draws import facts_of, note
from coevo.envs.searchqa.search_corpus import FileQuestions
from coevo.envs.searchqa.search_episode import (
    NO_SEARCH_LEFT,
    NOTHING,
    NOTHING_YET,
    UNREADABLE,
    SearchState,
    advance,
    in_brackets,
    in_tags,
)
from coevo.records.answer_form import AnswerForm, LineForm, OwnForm
from coevo.records.demonstration import Answer, Demonstration, Moment, Note
from coevo.records.draws import Key, extend, generator
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.records.task import Panel, Task
from coevo.utilities.errors import ConfigError

FORMS: Mapping[str, AnswerForm] = {
    "line": LineForm(examples=("search[mayor of Port Lumwick]", "answer[Dorik Ashley]")),
    "tags": OwnForm(
        parser="coevo.envs.searchqa.search_episode:tagged_action",
        request="Think first, then write one action: <search> words </search> or <answer> words </answer>.",
    ),
}
"""Form of an answer by the name that ``env.form`` gives it."""
VERBS = {"line": ("search", "answer"), "tags": ("<search>", "<answer>")}
WRITTEN = {"line": in_brackets, "tags": in_tags}
GUIDE = """An action is one of these:
{search}: search for passages, {searches} times at most.
{answer}: answer the question, with a name and nothing else. It ends the task.
{about}"""
ABOUT_MADE = "Sources may contradict each other; in each realm one of them is right: {sources}."
SAID = (
    f"{NOTHING_YET} {NOTHING} {UNREADABLE} {NO_SEARCH_LEFT} found passages right wrong answer in by guess search "
    "search[ answer[ ] the question is answered"
)
"""Words of observations, feedback, thoughts and actions that no passage has."""
TOLD, WARNED, MISLED, DISTRACTED = 0.45, 0.65, 0.75, 0.5
"""Shares of episodes for cloning: true note; and those with warnings; and with a false one; notes of other realms."""


class SearchPoint(NamedTuple):
    """State of an episode: its task, and where it stands."""

    task: Task
    state: SearchState


class SearchQA(Environment[SearchPoint]):
    """Questions that are answered by searching an encyclopedia whose sources contradict each other.

    Args:
        level: 1 asks for one fact in words of a small vocabulary; 2 for one or two facts, in sentences, with aliases.
        world: seed of the made encyclopedia.
        realms: realms that questions come from, 1 to 16.
        searches: most searches of an episode.
        hits: passages that a search returns.
        form: form of answers, ``line`` or ``tags``.
        data: ``made`` or ``files``.
        path: folder of the files; None for the one that ``SEARCH_QA_DIR`` names.
        retriever: address of a retriever for the files' questions; None for BM25 over their corpus.

    Raises:
        ConfigError: an option is out of its bounds.
        CoevoError: the files are missing or not in their format, or a question of theirs trains and evaluates.
    """

    name: ClassVar[str] = NAME
    version: str = "1"
    panels: Mapping[str, str] = question_draws.MADE_PANELS
    has_expert: bool = True
    concurrent: ClassVar[bool] = True

    def __init__(self, level: Literal[1, 2] = 2, **options: Any) -> None:
        self._config = config = SearchQAConfig.of(level=level, **options)
        self._files = FileQuestions(config.path, config.retriever) if config.data == "files" else None
        self.panels = question_draws.FILE_PANELS if self._files else question_draws.MADE_PANELS
        # Results name the version: whose questions they are.
        self.version = f"2 {self._files.name}" if self._files else f"1 made/{level}"
        if self._files:
            question_draws.check_division(self._files)

    def sample(self, count: int, key: Key) -> list[Task]:
        """Training tasks, different ones as long as there are enough."""
        return question_draws.sample(self._config, self._files, count, key)

    def panel(self, name: str, size: int) -> Panel:
        """Questions that training leaves out; a smaller panel is the beginning of a larger one."""
        return Panel(name, self.version, question_draws.panel(self._config, self._files, name, size))

    def panel_bank(self, panel: str) -> list[Entry] | None:
        """None for the run's own, an empty list for ``no-bank``, all trusted sources for ``other-facts``."""
        return question_draws.panel_bank(self._config, panel)

    def revealed(self, episode: Episode) -> list[Revealed]:
        """Notes about sources that the feedback of an answer reveals; nothing for questions of files."""
        return question_draws.revealed(episode) if self._files is None else []

    def start(self, task: Task) -> tuple[SearchPoint, str]:
        """First state and observation of a task."""
        point = SearchPoint(task, question_draws.state_of(task, self._files))
        return point, point.state.text()

    def step(self, states: Sequence[SearchPoint], actions: Sequence[str]) -> list[Step[SearchPoint]]:
        """Take ``search[words]`` or ``answer[words]``, or the same in tags, one for each state."""
        return [self._advanced(point, action) for point, action in zip(states, actions, strict=True)]

    def _advanced(self, point: SearchPoint, action: str) -> Step[SearchPoint]:
        search = question_draws.search_of(point.task.data, self._files)
        step = advance(point.state, action, search)
        return Step(
            SearchPoint(point.task, step.state), step.observation, step.feedback, step.reward, step.done, step.success,
            step.valid, step.truncated,
        )  # fmt: skip

    def guide(self, task: Task) -> Guide:
        """The two forms of actions, and what is known of sources."""
        form = self._config.form
        shown = {verb: WRITTEN[form](verb, "words") for verb in ("search", "answer")}
        about = "" if self._files else ABOUT_MADE.format(sources=", ".join(SOURCES))
        text = GUIDE.format(searches=self._config.searches, about=about, **shown).strip()
        return Guide(text, VERBS[form], answer=FORMS[form])

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Every word of level 1, sorted; empty for others, whose words are not few."""
        if self._files or self._config.level != 1:
            return ()
        numbers = map(str, range(self._config.hits + 1))
        return tuple(sorted({*SAID.split(), *words(), *numbers}))

    def expert(self, moment: Moment, key: Key) -> Answer:
        """Search, read, and answer by the source that a note names; without one, by a guessed source."""
        if self._files is not None:
            raise MissingPartError(f"{self.name}'s oracle for files plays from a state: use advise")
        thought, verb, text = next_move(moment, self._config.level, key)
        return self._said(thought, verb, text)

    def advise(self, state: SearchPoint, moment: Moment, key: Key) -> Answer:
        """The expert's answer; for questions of files, that of the oracle."""
        return self.expert(moment, key) if self._files is None else self.oracle(state, moment, key)

    def oracle(self, state: SearchPoint, moment: Moment, key: Key) -> Answer:
        """Answer of one that knows what is hidden: the trusted source of the realm, or the answer of a file."""
        if self._files is not None:
            searched = state.state.shown is not None
            text = state.state.key.golden[0] if searched else state.task.instruction
            return self._said("", "answer" if searched else "search", text)
        told = Note(note("right", state.task.scope, facts_of(state.task).trusted))
        return self.expert(Moment(moment.instruction, (told,), moment.history, moment.observation), key)

    def _said(self, thought: str, verb: str, text: str) -> Answer:
        return Answer(thought, WRITTEN[self._config.form](verb, text))

    def demonstrations(self, episodes: int, drills: int, key: Key) -> list[Demonstration]:
        """Turns of ``episodes`` expert episodes, each in a world of its own, most with notes about sources.

        Raises:
            ConfigError: drills are requested; there is nothing to recite.
            MissingPartError: the questions are those of files.
        """
        if drills:
            raise ConfigError(f"warmstart.drills={drills}: {self.name} has nothing to recite; set warmstart.drills=0")
        if self._files is not None:
            raise self.untaught("demonstrations")
        return [
            turn
            for index, task in enumerate(question_draws.fresh_tasks(self._config, episodes, key))
            for turn in expert_turns(self, task, extend(key, "play", index), _told(task, extend(key, "lessons", index)))
        ]

    def probe(self, size: int, key: Key) -> Probe:
        """Questions of worlds of their own with the trusted source as a note, once true and once false."""
        if self._files is not None:
            raise self.untaught("probe")
        tasks = question_draws.fresh_tasks(self._config, size, extend(key, "probe"))
        right = tuple((note("right", task.scope, facts_of(task).trusted),) for task in tasks)
        wrong = tuple((note("right", task.scope, _others(facts_of(task).trusted)[0]),) for task in tasks)
        return Probe(tuple(tasks), right, wrong)


def _others(source: str) -> list[str]:
    """The other sources, the one behind it first."""
    number = SOURCES.index(source)
    return [*SOURCES[number + 1 :], *SOURCES[:number]]


def _told(task: Task, draw: Key) -> tuple[str, ...]:
    """Notes of an episode for cloning: the true one, warnings, a false one or none, among notes of other realms."""
    rng, realm, trusted = generator(draw), task.scope, facts_of(task).trusted
    share, others = rng.random(), [_others(trusted)[index] for index in rng.permutation(len(SOURCES) - 1)]
    notes = list[str]()
    if share < TOLD:
        notes = [note("right", realm, trusted)]
    elif share < WARNED:
        notes = [note("wrong", realm, source) for source in others[: 1 + rng.integers(len(others))]]
    elif share < MISLED:
        notes = [note("right", realm, others[0])]
    if rng.random() < DISTRACTED:
        strangers = [each for each in REALMS if each != realm]
        chosen = [strangers[index] for index in rng.permutation(len(strangers))[: 1 + rng.integers(2)]]
        notes += [note("right", each, SOURCES[rng.integers(len(SOURCES))]) for each in chosen]
    return tuple(notes[index] for index in rng.permutation(len(notes)))
