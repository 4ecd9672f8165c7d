"""One iteration of the loop, on real stores and a real Prefect server."""

import time

import pytest
from prefect import flow
from prefect.settings import PREFECT_API_URL, PREFECT_LOGGING_LEVEL, temporary_settings
from support.sessions import opened
from support.worker import expert_worker

from coevo.configs.load.load import load_recipe
from coevo.flows.coevolve import iterate
from coevo.tasks.commit import Committer
from coevo.tasks.gates.frame_gate import GateError

SMALL = ["warmstart=null", "iterations=2", "rollout.tasks=2", "rollout.group_size=2", "bank.admission.replays=1"]


@pytest.mark.full
def test_what_came_of_a_batch_dies_where_the_batch_fails_its_gate_late(tmp_path, prefect_url, monkeypatch):
    config = load_recipe("homerules-experience-only", [*SMALL, "bank.admission.delta=-1"])
    with opened(tmp_path, config, played=expert_worker()) as session:

        def late(*_):
            give_up = time.monotonic() + 60
            while not session.bank.change().entries and time.monotonic() < give_up:
                time.sleep(0.01)
            raise GateError("the batch is bad")

        @flow(name="one iteration")
        def run():
            iterate(session, committer)

        monkeypatch.setattr("coevo.tasks.steps.policy_steps.check_episodes", late)
        committer = Committer(session)
        with (
            temporary_settings({PREFECT_API_URL: prefect_url, PREFECT_LOGGING_LEVEL: "CRITICAL"}),
            pytest.raises(GateError, match="the batch is bad"),
        ):
            run()
        committer.close()
        assert session.bank.change().entries
        assert session.stores.bank.active() == []
        assert session.stores.lineage.history.head().revision == 0
