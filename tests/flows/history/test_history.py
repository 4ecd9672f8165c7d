"""A run's history from its revisions, on histories worked out by hand."""

import pytest

from coevo.flows.history import history
from coevo.lineage.revision.manifest import Manifest
from coevo.tasks.cost import time_by_part


def revision(number, parent, restored=None, bank=True, wall=None, **metrics):
    config = {"bank": {} if bank else None, "evaluation": {"panels": ["held"]}}
    state = {
        "revision": number,
        "iteration": number,
        "parent": parent,
        "restored_from": restored,
        "config": config,
        "metrics": {name.replace("_", "/"): value for name, value in metrics.items()},
    }
    return Manifest(
        state, {"timestamp": 0} if wall is None else {"metrics": {"cost/seconds/wall": wall, "cost/seconds/x": 9.0}}
    )


ROLLED_BACK = [
    revision(0, None, wall=1.0, agent_success_held=0.1),
    revision(1, 0, wall=2.0, agent_success_held=0.3, bank_size=2),
    revision(2, 1, wall=2.0, agent_success_held=0.9, bank_size=7),
    revision(3, 2, restored=1, agent_success_held=0.3, bank_size=2),
    revision(4, 3, wall=2.0),
]


def test_the_trail_leaves_out_what_was_rolled_back():
    assert [manifest.revision for manifest in history.trail(ROLLED_BACK)] == [0, 1, 3, 4]
    assert [manifest.revision for manifest in history.trail(ROLLED_BACK[:3])] == [0, 1, 2]
    assert history.trail([]) == []


def test_the_last_evaluation_is_on_the_trail():
    assert history.evaluated(ROLLED_BACK).revision == 3
    assert history.evaluated([revision(0, None)]) is None


def test_a_revision_that_did_not_touch_the_bank_has_its_predecessors_size():
    assert history.bank_sizes(ROLLED_BACK) == [0, 2, 7, 2, 2]
    assert history.bank_sizes([revision(0, None, bank=False)]) == [None]


def test_time_spent_on_what_was_left_behind_counts():
    assert sum(time_by_part(ROLLED_BACK).values()) == 7.0


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (ROLLED_BACK[0], "start, evaluated"),
        (ROLLED_BACK[3], "restored from 1"),
        (revision(1, 0), ""),
        (revision(1, 0, bank_admitted=3.0, bank_rejected=0.0), "3 admitted"),
        (revision(1, 0, bank_admitted=0.0, bank_rejected=2.0, agent_success_held=0.5), "2 rejected, evaluated"),
    ],
)
def test_what_happened_is_said_in_words(manifest, words):
    assert history.happened(manifest) == words


def test_an_accepted_change_is_named():
    changed = revision(1, 0)
    changed = Manifest({**changed.state, "accepted_change": ["seed: 0 -> 1"]}, changed.observed)
    assert history.happened(changed) == "changed seed: 0 -> 1"
