"""Discovery@k: counted by hand, told from one attempt to the next, and never remembered."""

from dataclasses import replace

import pytest
from support.entries import entry
from support.sessions import iterate, opened
from support.worker import ExpertWorker, expert_worker

from coevo.configs.load.load import load_recipe, validate
from coevo.memory.bank.change import BankChange
from coevo.memory.bank_state import BankState
from coevo.memory.stats import Stats
from coevo.tasks.iteration.held_out import play_panel
from coevo.tasks.play.discovery_at_k import Notes, learn
from coevo.tasks.play.retrieve import NOTHING
from coevo.tasks.steps.evaluate import evaluate, learner_of
from coevo.utilities.errors import CoevoError

PANEL = "seen-houses"
SMALL = ["warmstart=null", "rollout.tasks=2", "evaluation.tasks=32", "evaluation.every=1", "evaluation.final_panels=[]"]


def configured(method="reflexion-style", *settings):
    return load_recipe(f"homerules-{method}", [*SMALL, "evaluation.discovery=3", *settings])


def first(session):
    panel = session.parts.env.panel(PANEL, session.config.evaluation.tasks)
    return panel, play_panel(session.parts.worker, panel, NOTHING, session.config.seed, session.pending.revision)


class Prescribed(ExpertWorker):
    """Solves each task at a given attempt, and keeps what it was asked to play."""

    def __init__(self, worker, solved_at):
        super().__init__(worker.env, worker.context, worker.engine, worker.max_turns)
        self.solved_at, self.asked = solved_at, []

    def play(self, attempts):
        self.asked.append(attempts)
        played = super().play(attempts)
        return [replace(each, success=self.solved_at[each.task.id] == each.replica + 1) for each in played]


def test_worked_values(tmp_path):
    panel = expert_worker().env.panel(PANEL, 4)
    solved_at = dict(zip((task.id for task in panel.tasks), (1, 2, 3, 9), strict=True))
    config = configured("reflexion-style", "evaluation.tasks=4")
    worker = Prescribed(expert_worker(), solved_at)
    with opened(tmp_path, config, played=worker) as session:
        session.pending.measure(evaluate(session))
        found = {name: value for name, value in session.pending.metrics.items() if name.startswith("bank/discovery/")}
    assert found == {f"bank/discovery/{PANEL}/{n}": share for n, share in ((1, 0.25), (2, 0.5), (3, 0.75))}
    assert [[attempt.task.id for attempt in asked] for asked in worker.asked] == [
        list(solved_at),
        list(solved_at)[1:],
        list(solved_at)[2:],
    ]
    attempts = [attempt for asked in worker.asked for attempt in asked]
    assert len({attempt.id for attempt in attempts}) == len({attempt.key for attempt in attempts}) == len(attempts)


class Losing(Prescribed):
    """Loses the attempts after the first."""

    def play(self, attempts):
        return [replace(each, lost="exception: gone" * (each.replica > 0)) for each in super().play(attempts)]


@pytest.mark.parametrize(("limit", "stops"), [(0.5, False), (0.4, True)])
def test_a_later_attempt_that_is_lost_has_failed_and_is_counted(tmp_path, limit, stops):
    panel = expert_worker().env.panel(PANEL, 4)
    solved_at = dict(zip((task.id for task in panel.tasks), (1, 9, 1, 9), strict=True))
    config = configured(
        "reflexion-style", "evaluation.tasks=4", "evaluation.discovery=2", f"rollout.lost_limit={limit}"
    )
    with opened(tmp_path, config, played=Losing(expert_worker(), solved_at)) as session:
        heard = []
        session.stores.reporter.warn = heard.append
        if stops:
            with pytest.raises(CoevoError, match=f"^{PANEL}, later attempts: the environment lost 2 of 4 episodes"):
                evaluate(session)
            return
        session.pending.measure(evaluate(session))
        metrics = session.pending.metrics
        assert [metrics[f"bank/discovery/{PANEL}/{number}"] for number in (1, 2)] == [0.5, 0.5]
        assert metrics[f"agent/lost/{PANEL}/exception"] == 2.0
        assert heard == [f"{PANEL}, later attempts: 2 of 2 episodes lost, first exception: gone"]


def test_the_first_attempts_are_those_of_the_ordinary_evaluation(tmp_path):
    found = []
    for discovery in (0, 1, 3):
        config = configured("reflexion-style", f"evaluation.discovery={discovery}")
        with opened(tmp_path / str(discovery), config, played=expert_worker()) as session:
            session.pending.measure(evaluate(session))
            found.append(session.pending)
    assert all(draft.outcomes[PANEL] == found[0].outcomes[PANEL] for draft in found)
    names = [sorted(name for name in draft.metrics if name.startswith("bank/discovery/")) for draft in found]
    assert names == [[], [f"bank/discovery/{PANEL}/1"], [f"bank/discovery/{PANEL}/{n}" for n in (1, 2, 3)]]
    assert found[2].metrics[f"bank/discovery/{PANEL}/1"] == found[0].metrics[f"agent/success/{PANEL}"]


def test_an_attempt_is_told_what_the_failed_ones_taught_and_no_other_task_is(tmp_path):
    with opened(tmp_path, configured(), played=expert_worker()) as session:
        panel, played = first(session)
        notes, failed = Notes(learner_of(session), panel, NOTHING), [each for each in played if not each.success]
        told = {each.task.id: notes.after(each, 2).of_task(each.task) for each in failed}
        assert all({e.scope for e in entries} <= {task} for task, entries in told.items())
        assert all(e.sources == (each.id,) for each in failed for e in told[each.task.id])
        # Every failure of the expert teaches something: it has found the object, or spoiled it.
        assert all(told.values())


def test_lessons_of_failed_attempts_help(tmp_path):
    shares = {}
    for panel in (PANEL, "no-bank"):
        config = configured("reflexion-style", "evaluation.tasks=96", f"evaluation.panels=[{panel}]")
        with opened(tmp_path / panel, config, played=expert_worker()) as session:
            session.pending.measure(evaluate(session))
            shares[panel] = [session.pending.metrics[f"bank/discovery/{panel}/{n}"] for n in (1, 2, 3)]
    assert shares[PANEL][0] == shares["no-bank"][0]
    # Without experience three attempts at .25 solve .58 of the tasks; the paired difference is far from noise.
    assert shares[PANEL][2] > shares["no-bank"][2] + 0.15


@pytest.mark.parametrize("method", ["reflexion-style", "memrl-style", "skillrl-style", "d2skill-style", "retroagent"])
def test_the_run_is_left_as_it_was(tmp_path, method):
    with opened(tmp_path, configured(method, "evaluation.tasks=8"), played=expert_worker()) as session:
        iterate(session)
        bank = session.stores.bank
        hashes, entries, stats = bank.hashes(), list(session.bank.entries), dict(session.bank.stats)
        index, references = session.index(), list(session.references.episodes())
        assert entries
        session.pending.measure(evaluate(session))
        assert (bank.hashes(), session.bank.entries, session.bank.stats) == (hashes, entries, stats)
        assert session.index() is index
        assert list(session.references.episodes()) == references
        assert session.bank.change() == BankChange()
        assert (session.pending.episodes, session.recent) == ([], [])
        iterate(session)
        assert {each.split for each in bank.entries()} == {"train"}
        assert not [source for each in bank.entries() for source in each.sources if "evaluate" in source]


def test_a_copy_of_clusters_grows_with_a_task_and_the_runs_do_not(tmp_path):
    with opened(tmp_path, clustered(), played=expert_worker()) as session:
        panel, played = first(session)
        failed = next(each for each in played if not each.success)
        notes = Notes(learner_of(session), panel, NOTHING)
        told = notes.after(failed, 2)
        assert len(session.bank.clusters) == 0
        found = {e for turn in failed.turns for e in told.of_step(failed.task, turn.observation)}
        assert {e.sources for e in found} == {(failed.id,)}


def clustered():
    """The recipe with clusters; the settings of its own retrieval do not go with another kind."""
    settings = configured().model_dump(mode="json") | {"clusters": {"delta": 0.85}}
    settings["bank"] |= {"key": "scope", "retrieval": {"type": "cluster", "k": 2}}
    return validate(settings, "test")


def test_utilities_follow_the_failed_attempts_in_the_copy(tmp_path):
    with opened(tmp_path, configured("memrl-style"), played=expert_worker()) as session:
        _, played = first(session)
        failed = next(each for each in played if not each.success)
        shown = entry("look here", keywords="task", scope=failed.task.scope)
        seen = replace(failed, turns=tuple(replace(turn, retrieved=(shown.id,)) for turn in failed.turns))
        book = learn(learner_of(session), BankState(session.config.bank, (shown,)), seen)
        # 0.5 -> 0.7 * 0.5 - 0.3; lessons of the attempt begin with 0.
        assert book.stats[shown.id] == Stats(shown.id, 1, 0, pytest.approx(0.05), 2)
        assert {book.stats[each.id].utility for each in book.entries if each.id != shown.id} == {0.0}
        assert session.bank.stats == {}


def test_gates_of_retrieval_hold(tmp_path):
    with opened(
        tmp_path, configured("reflexion-style", "bank.retrieval.min_entries=50"), played=expert_worker()
    ) as session:
        panel, played = first(session)
        failed = next(each for each in played if not each.success)
        assert Notes(learner_of(session), panel, NOTHING).after(failed, 2) is NOTHING
