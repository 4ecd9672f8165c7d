"""Schedules: what an iteration may change, what the writer is asked about, and that a session may end anywhere."""

from dataclasses import replace

import pytest
from support.entries import entry
from support.sessions import batch, committed, do, opened, shaped

from coevo.configs.load.load import load_recipe
from coevo.configs.schedule_config import (
    BankThenPolicyConfig,
    FrozenAfterFirstConfig,
    JointConfig,
    PolicyThenBankConfig,
)
from coevo.memory.writers.writer import Proposal
from coevo.tasks.schedule import Phase, phase_of
from coevo.tasks.steps.bank_steps import admit, judge, write

SMALL = [
    "warmstart=null", "iterations=4", "rollout.tasks=2", "rollout.group_size=2", "rollout.max_turns=2",
    "bank.admission.replays=1",
]  # fmt: skip
POLICY_FIRST, BANK_FIRST = "{type: policy-then-bank, switch_at: 1}", "{type: bank-then-policy, switch_at: 2}"
FROZEN = "{type: frozen-after-first}"
TRAINER = object()
"""Stands for one: nothing here is updated, only asked whether it would be."""


@pytest.mark.parametrize(
    ("config", "phases"),
    [
        (JointConfig(), [Phase(True, True)] * 4),
        (
            PolicyThenBankConfig(type="policy-then-bank", switch_at=3),
            [Phase(True, False)] * 3 + [Phase(False, True, since=3)],
        ),
        (
            BankThenPolicyConfig(type="bank-then-policy", switch_at=2),
            [Phase(False, True)] * 2 + [Phase(True, False, since=2)] * 2,
        ),
        (FrozenAfterFirstConfig(type="frozen-after-first"), [Phase(True, True)] * 4),
    ],
)
def test_phases_of_an_empty_bank(config, phases):
    assert [phase_of(config, iteration, entries=0) for iteration in range(4)] == phases


@pytest.mark.parametrize(("entries", "evolves"), [(0, True), (1, False)])
def test_a_bank_is_frozen_by_its_first_entry_at_any_iteration(entries, evolves):
    config = FrozenAfterFirstConfig(type="frozen-after-first")
    for iteration in (0, 5, 50):
        assert phase_of(config, iteration, entries) == Phase(True, evolves)


class Quoting:
    """A writer that always has something to say, and notes which iterations it was asked about."""

    def __init__(self):
        self.asked = []

    def write(self, evidence):
        episodes = evidence.episodes
        self.asked.append(sorted({int(episode.id.split("/")[1].removeprefix("rollout-")) for episode in episodes}))
        lesson = entry(f"task safe n{evidence.revision}", scope=episodes[-1].task.scope, keywords="task hall")
        return Proposal((replace(lesson, sources=(episodes[-1].id,)),))


def step(session):
    """One iteration of the loop but for the update, committed; whether there would have been one."""
    shaped(session, batch(session))
    learns = session.due.policy()
    if session.due.writer():
        proposal = do(session, write)
        do(session, admit, proposal, do(session, judge, proposal))
    session.iteration += 1
    committed(session)
    return learns


def configured(*settings):
    return load_recipe("homerules-coevo-rl", [*SMALL, *settings])


def played(root, config, sessions):
    """The iterations in several sessions: who learned, what the writer was asked about, and the run's states."""
    writer, learned = Quoting(), []
    for count in sessions:
        with opened(root, config, writer=writer, trainer=TRAINER) as session:
            learned += [step(session) for _ in range(count)]
            states = [manifest.state for manifest in session.stores.lineage.history.log()]
    return learned, writer.asked, states


@pytest.mark.parametrize(
    ("schedule", "every", "learned", "asked"),
    [
        (POLICY_FIRST, 2, [0], [[1, 2]]),
        (BANK_FIRST, 1, [2], [[0], [1]]),
        (FROZEN, 1, [0, 1, 2], [[0]]),
    ],
)
def test_who_changes_when_and_a_session_may_end_anywhere(tmp_path, schedule, every, learned, asked):
    config = configured(f"schedule={schedule}", f"bank.every={every}", "bank.admission.delta=-1.0")
    whole, parts = (played(tmp_path / name, config, count) for name, count in (("a", [3]), ("b", [1, 1, 1])))
    assert [iteration for iteration, learns in enumerate(whole[0]) if learns] == learned
    assert whole[1] == asked
    assert parts == whole
    # The entries are those of the firings, and change with nothing else.
    assert len([state for state in whole[2] if "bank/admitted" in state["metrics"]]) == len(asked)
    assert len({state["tables"]["entries"] for state in whole[2]}) == len(asked) + 1
    # A staged schedule says where it stands, in figures that no other one leaves.
    told = [state["metrics"]["policy/learns"] for state in whole[2][1:]]
    assert [iteration for iteration, learns in enumerate(told) if learns] == learned


def test_a_firing_that_lets_nothing_in_does_not_freeze_the_bank(tmp_path):
    config = configured(f"schedule={FROZEN}", "bank.admission.delta=1.0")
    learned, asked, states = played(tmp_path, config, [2])
    assert (learned, asked) == ([True] * 2, [[0], [1]])
    assert len({state["tables"]["entries"] for state in states}) == 1


def test_a_policy_without_bank_keeps_nothing_for_a_writer(tmp_path):
    with opened(tmp_path, configured("bank=null"), trainer=TRAINER) as session:
        step(session)
        assert session.recent == []
        head = session.stores.lineage.history.head()
        assert head.state["fired"] == 1
        assert not [name for name in head.state["metrics"] if name.startswith("schedule/")]


def test_a_frozen_policy_is_updated_in_no_phase(tmp_path):
    with opened(tmp_path, load_recipe("homerules-experience-only", SMALL), writer=Quoting()) as session:
        assert (session.due.policy(), session.due.writer()) == (False, True)
