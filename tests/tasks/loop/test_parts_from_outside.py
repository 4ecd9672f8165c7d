"""Parts from other packages do their work in the real loop, and what they do is held to what their class states."""

import pytest
from support import outside
from support.outside import PARTS, fresh  # noqa: F401
from support.sessions import iterate, opened
from support.trajectories import group
from support.worker import expert_worker

from coevo.configs.load.load import load_recipe
from coevo.configs.load.open_parts import open_parts
from coevo.lineage.trust import extend_path
from coevo.models.advantages import estimate
from coevo.tasks.schedule import phase_of
from coevo.utilities.errors import CoevoError

BRIEF = ["warmstart=null", "rollout.tasks=4", "rollout.group_size=2", "evaluation.tasks=16", "evaluation.every=2",
         "evaluation.final_panels=[]", "bank.every=1"]  # fmt: skip
pytestmark = pytest.mark.usefixtures("fresh")


def configured(folder, *more, sections=tuple(PARTS)):
    config = load_recipe("homerules-coevo-rl", [*BRIEF, *outside.settings(folder, *sections), *more])
    extend_path(config)
    open_parts(config)
    return config


def test_each_part_leaves_its_figures_and_its_entries(tmp_path):
    config = configured(outside.write(tmp_path))
    with opened(tmp_path / "workspace", config, played=expert_worker()) as session:
        found = [iterate(session) for _ in range(4)]
        entries = list(session.bank.entries)
    assert [each["policy/reward/price"] for each in found] == [0.02] * 4
    assert [each["policy/learns"] for each in found] == [1, 1, 0, 0]
    taken = [each.get("bank/admission/taken", 0) for each in found]
    assert (taken[:2], min(taken[2:]) > 0, max(taken) <= 3) == ([0, 0], True, True)
    assert len(entries) == sum(taken) <= 5
    assert all(" : " in entry.strategy and entry.split == "train" for entry in entries)
    assert "bank/retrieval/my_retrieval_Shared_score" in found[3]


def test_an_estimator_and_a_schedule_answer_as_they_say(tmp_path):
    config = configured(outside.write(tmp_path), sections=("update.advantage", "schedule"))
    made = estimate(group([9.0, 1.0, 1.0, 0.0]), config.update.advantage)
    assert made.episodes.tolist() == [1.0, 0.0, 0.0, -1.0]
    assert [phase_of(config.schedule, n, 0).learns for n in range(5)] == [True, True, False, False, True]
    assert phase_of(config.schedule, 3, 0).since == 2


def altered(folder, setting, **changes):
    """A part whose source has other words in some places."""
    module, _, text, *_ = PARTS[setting]
    for old, new in changes.values():
        assert old in text
        text = text.replace(old, new, 1)
    (folder / f"{module}.py").write_text(text)


UNTRUE = {
    "operations": (
        "bank.writer",
        ("counts={", 'edits=(coevo.Edit("s", "ADD x", ()),), counts={'),
        "proposes operations, which bank.admission.type=replay does not carry out: state edits = True in its class",
    ),
    "worth": (
        "bank.writer",
        ("    class Config", "    scores = True\n\n    class Config"),
        "leaves out the worth of a",
    ),
    "replays": (
        "bank.admission",
        ("        fresh", "        replay([coevo.Trial(proposal.entries, proposal.entries)], 1)\n        fresh"),
        "replays without saying so: state needs_replay = True in its class",
    ),
}


@pytest.mark.parametrize("case", UNTRUE)
def test_a_part_that_does_what_its_class_does_not_state_stops_the_run_in_one_line(tmp_path, case):
    setting, change, says = UNTRUE[case]
    altered(tmp_path, setting, change=change)
    config = configured(tmp_path, sections=(setting,))
    with (
        opened(tmp_path / "workspace", config, played=expert_worker()) as session,
        pytest.raises(CoevoError, match=says),
    ):
        iterate(session)


def test_an_admission_that_states_it_may_replay(tmp_path):
    play = "        fresh", "        replay([coevo.Trial(proposal.entries, proposal.entries)], 1)\n        fresh"
    state = "    class Config", "    needs_replay, unproven = True, None\n\n    class Config"
    altered(tmp_path, "bank.admission", play=play, state=state)
    config = configured(tmp_path, sections=("bank.admission",))
    assert config.bank.admission.unproven is None
    with opened(tmp_path / "workspace", config, played=expert_worker()) as session:
        assert iterate(session)["bank/admission/taken"] > 0
