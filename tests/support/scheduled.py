"""A real worker on a real server, and what became of the sessions of a run."""

import os
import subprocess
import time
from contextlib import contextmanager

from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterName,
    LogFilter,
    LogFilterFlowRunId,
)
from prefect.client.schemas.sorting import FlowRunSort
from support.prefect_client import client_of
from support.runs import ROOT, SMALL, command

from coevo.configs.load.load import load_recipe
from coevo.flows.sessions.session_worker import STOP_TIMEOUT_S
from coevo.lineage.workspace import Workspace

PATIENCE = 400
TINY = (
    "rollout.tasks=2",
    "rollout.group_size=2",
    "warmstart.steps=2",
    "warmstart.probe_every=2",
    "warmstart.probe_tasks=8",
    "evaluation.tasks=8",
)

RECIPE = "homerules-experience-only"
SETTINGS = tuple({setting.split("=")[0]: setting for setting in (*SMALL, *TINY)}.values())


def create(root, name, iterations):
    """A run that nothing was done for yet, with a frozen policy that has hardly learned anything."""
    return Workspace(root).create(name, load_recipe(RECIPE, [f"iterations={iterations}", *SETTINGS]))


@contextmanager
def worker(root, log, arguments=(), **environment):
    """``coevo worker``, which looks for sessions every second."""
    settings = {"PREFECT_WORKER_QUERY_SECONDS": "1", **environment}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command("worker", *arguments, workspace=root),
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **settings},
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(STOP_TIMEOUT_S + 60)


def wait_for(what, seconds=PATIENCE):
    """Its first true answer."""
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        answer = what()
        if answer:
            return answer
        time.sleep(0.2)
    raise TimeoutError


class Scheduled:
    """The sessions of one run, as the server has them."""

    def __init__(self, url, run, secret=None):
        self.client = client_of(url, secret)
        self.deployment = self.client.read_deployment_by_name(f"session/{run}").id

    def begin(self):
        """Ask for one now."""
        return self.client.create_flow_run_from_deployment(self.deployment).id

    def states(self):
        """States of all of them, in the order in which they fell due."""
        one = FlowRunFilter(deployment_id=FlowRunFilterDeploymentId(any_=[self.deployment]))
        found = self.client.read_flow_runs(flow_run_filter=one, sort=FlowRunSort.EXPECTED_START_TIME_ASC)
        return [session.state for session in found]

    def named(self, name):
        """States with this name."""
        return [state for state in self.states() if state.name == name]

    def of(self, session, run):
        """Flow runs of a session and of the loop in it, each with its lines about revisions in Prefect's logs."""
        named = FlowRunFilter(name=FlowRunFilterName(any_=[run]))
        found = [self.client.read_flow_run(session), *self.client.read_flow_runs(flow_run_filter=named)]
        return [(one, self._lines(one.id)) for one in found]

    def _lines(self, flow_run):
        logs = self.client.read_logs(LogFilter(flow_run_id=LogFilterFlowRunId(any_=[flow_run])))
        return [line.message for line in logs if line.message.startswith("revision")]

    def end_of(self, session):
        """State in which a session ended."""
        return wait_for(lambda: (state := self.client.read_flow_run(session).state).is_final() and state)
