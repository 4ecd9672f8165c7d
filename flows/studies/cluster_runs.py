"""The runs of a study side by side on the nodes of a cluster, each in a process and a workspace of its own.

A run lives at a remote meanwhile: its process sends each revision there, a process on another node continues it from
there if the node dies, and this workspace fetches it at its end. No folder need be shared.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock
from typing import Any

from pydantic import TypeAdapter

from coevo.configs.load.load import validate
from coevo.configs.study_config import ArmConfig, StudyConfig
from coevo.configs.trust_settings import chosen
from coevo.flows.configure import resolved
from coevo.flows.remote_run import RemoteClaim, at_remote
from coevo.flows.servers.daemon import down
from coevo.flows.start_run import WAITING, RunOptions
from coevo.flows.studies.ablate import play, publish
from coevo.flows.studies.outcome import Outcome, left_of, outcome, revisions_of
from coevo.flows.studies.result import compared
from coevo.flows.studies.study_runs import StudyLock, StudyRun, check_name, check_parts, check_runs, runs_of
from coevo.flows.upkeep.publishing import complete
from coevo.lineage.lock import writer_lock
from coevo.lineage.workspace import Workspace
from coevo.tasks.publish.reporter import reporter
from coevo.utilities.cluster.joined_cluster import ClusterError, JoinedCluster, joined
from coevo.utilities.cluster.node_places import ClusterLauncher
from coevo.utilities.cluster.setting_names import SettingNames
from coevo.utilities.errors import CoevoError
from coevo.utilities.processes import Launch, Place, PlaceLostError, Resources, last_error, size_of

ASKER = "coevo ablate --cluster"
NAMES = SettingNames("--cluster", "")
RESTARTS = 3
"""Deaths of the process of a run, with its node, that are made good."""
POLL_INTERVAL_S = 1.0
"""Seconds between two looks at a process."""
ROOM_TIMEOUT_S = 30.0
"""Seconds in which the cluster must answer, and have room for a process while none of this study runs."""
FORWARDED = ("AWS_", "MLFLOW_TRACKING_", "PREFECT_API_")
"""Prefixes of the variables that a run on a node gets from this process: who keeps its data, and with which keys."""


@dataclass(frozen=True, slots=True)
class RunOrder:
    """Instructions for the process of a run.

    Attributes:
        run: name of the run.
        arm: its arm.
        seed: its seed.
        config: its settings as the command has resolved them, since a node may resolve a pairing to others.
        remote: address where the run lives.
        partner: outcome of the run that it costs as much as.
        take_over: take the run's lock from a process that has ended with its node.
    """

    run: str
    arm: ArmConfig
    seed: int
    config: dict[str, Any]
    remote: str
    partner: Outcome | None
    take_over: bool

    def study_run(self) -> StudyRun:
        """The run that it is about.

        Raises:
            CoevoError: its environment or a folder of its ``python_path`` is not on this node.
        """
        config = resolved(validate(self.config, self.run))
        partner = None if self.partner is None else self.partner.run
        return StudyRun(self.run, self.arm, self.seed, config, partner)


def order_of(each: StudyRun, remote: str, partner: Outcome | None = None, take_over: bool = False) -> RunOrder:
    """The order of a run."""
    config = each.config.model_dump(mode="json")
    if "threads" not in each.config.rollout.engine.model_fields_set:  # chosen when the run is created
        del config["rollout"]["engine"]["threads"]
    return RunOrder(each.name, each.arm, each.seed, config, remote, partner, take_over)


ORDER = TypeAdapter(RunOrder)


class ClusterRuns:
    """Plays the runs of a study on a cluster.

    Args:
        study: the study.
        workspace: where its runs come together.
        remote: address that this machine and all nodes reach.
        join: joins the cluster.
        resources: what each run takes of its node.
    """

    def __init__(
        self,
        study: StudyConfig,
        workspace: Workspace,
        remote: str,
        join: Callable[[], JoinedCluster],
        resources: Resources,
    ) -> None:
        self._study, self._workspace = study, workspace
        # A process on a node has another directory and home.
        self._remote = remote if "://" in remote else str(Path(remote).expanduser().absolute())
        self._join, self._resources = join, resources
        self._launcher = ClusterLauncher(join, ROOM_TIMEOUT_S)
        self._stopping, self._counting, self._playing = Event(), Lock(), 0

    def play(self, runs: Sequence[StudyRun]) -> int:
        """Play the runs that are not finished; returns 0, or the exit code of a run that waits for approval.

        Raises:
            CoevoError: a run failed or lost its node too often, or there is no room; what was sent is safe.
        """
        known: dict[str, Outcome] = {}
        self._gather(runs, known)
        while left := [each for each in runs if each.name not in known]:
            due = [each for each in left if each.partner is None or each.partner in known]
            code = max(self._side_by_side(due, known))
            self._gather(due, known)
            publish(self._workspace, compared(self._study, list(known.values())), runs)
            if code:
                return code
        return 0

    def _gather(self, runs: Sequence[StudyRun], known: dict[str, Outcome]) -> None:
        """Add the outcomes of runs that are finished in this workspace, and publish what is left of these."""
        for each in runs:
            if (found := outcome(self._study, each, self._workspace, known.get(each.partner or ""))) is not None:
                complete(self._workspace, self._workspace.existing(each.name))
                known[each.name] = found

    def _side_by_side(self, runs: Sequence[StudyRun], known: Mapping[str, Outcome]) -> list[int]:
        room = self._join().capacity(self._resources, ASKER)
        with ThreadPoolExecutor(min(room, len(runs))) as pool:
            begun = [
                pool.submit(copy_context().run, self._played, each, known.get(each.partner or "")) for each in runs
            ]
            try:
                return [each.result() for each in begun]
            except BaseException:
                self._stopping.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _played(self, each: StudyRun, partner: Outcome | None) -> int:
        self._exchange(each)
        for restarts in range(RESTARTS + 1):
            code = self._attempt(order_of(each, self._remote, partner, take_over=restarts > 0))
            if code is not None:
                self._exchange(each)
                if not code:
                    self._check_finished(each, partner)
                return code
            reporter().warn(f"{each.name}: its process has ended with its node, and is started again")
        raise CoevoError(f"{each.name}: its process has ended with its node {RESTARTS + 1} times")

    def _check_finished(self, each: StudyRun, partner: Outcome | None) -> None:
        """Refuse a run that has ended on its node and is not finished here: it would be played again, for ever."""
        if left := left_of(each, revisions_of(each, self._workspace), partner):
            raise CoevoError(
                f"{each.name} has ended on its node, and at --remote {self._remote} {left} of its iterations are "
                f"missing: name a place that this machine and all nodes share; see {self._log(each.name)}"
            )

    def _log(self, run: str) -> Path:
        return StudyLock(self._workspace, run).lock.with_suffix(".log")

    def _exchange(self, each: StudyRun) -> None:
        """Bring this workspace and the remote to the same revision of a run, if any has one.

        Raises:
            CoevoError: the remote has a run of this name with another configuration, or fails.
        """
        with at_remote(self._workspace, each.name, self._remote, RemoteClaim(if_lost=True, purpose=ASKER)):
            check_name(each, self._workspace)
            if self._workspace.run(each.name).created.is_file():
                self._workspace.trust.confirm(each.name, chosen(each.config))

    def _attempt(self, order: RunOrder) -> int | None:
        """Exit code of a process that plays a run to its end; None if it has ended with its node."""
        place = self._place()
        try:
            with TemporaryDirectory() as folder:
                path = Path(folder) / "order.json"
                path.write_bytes(ORDER.dump_json(order))
                name = self._launcher.send(path, [place])
            return self._awaited(place, name, order.run)
        except PlaceLostError:
            return None
        finally:
            place.end()
            with self._counting:
                self._playing -= 1

    def _awaited(self, place: Place, order: str, run: str) -> int | None:
        log = self._log(run)
        kept = {name: value for name, value in os.environ.items() if name.startswith(FORWARDED)}
        written, command = size_of(log), ["{python}", "-P", "-m", __name__, order]
        process = place.start(Launch(command, kept, log, append=True, guard="twice", mark=run))
        while process.runs():
            if self._stopping.wait(POLL_INTERVAL_S):
                process.stop()  # it frees its lock
                raise CoevoError(f"{run} was stopped")
        if process.lost:
            return None
        if (code := process.status()) not in (0, WAITING):
            raise CoevoError(f"{run} failed on {place.host}: {last_error(log, written)}; see {log}")
        return code

    def _place(self) -> Place:
        """A place for a run; without room, one waits for the others."""
        while True:
            try:
                (place,) = self._launcher.places(1, self._resources, ASKER)
            except ClusterError:
                if not self._playing or self._stopping.wait(POLL_INTERVAL_S):
                    raise
            else:
                with self._counting:
                    self._playing += 1
                return place


def play_on_cluster(study: StudyConfig, workspace: Workspace, address: str, remote: str, resources: Resources) -> int:
    """Play the runs of a study that are not finished on a cluster; returns 0, or the code of one that waits.

    Args:
        study: the study.
        workspace: where its runs come together.
        address: ``HOST:PORT`` of the cluster.
        remote: directory or S3 address that this machine and all nodes reach.
        resources: what each run takes of its node.

    Raises:
        CoevoError: an arm is not possible or measured in seconds, the cluster lacks what is asked, or a run failed.
    """
    for arm in study.arms:
        if arm.matches is not None and arm.matches.by == "seconds":
            raise CoevoError(
                f"{study.name}: arm {arm.name} takes as many seconds as {arm.matches.arm}, and nodes differ: leave "
                "--cluster out"
            )
    runs = runs_of(study)
    check_runs(study, runs, workspace)
    check_parts(runs)
    with writer_lock(StudyLock(workspace, study.name)):
        join = partial(joined, address, ROOM_TIMEOUT_S, NAMES)
        return ClusterRuns(study, workspace, remote, join, resources).play(runs)


def main(path: str) -> int:
    """Play a run on a node, in the directory of this process; returns its exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # frees the lock
    order, workspace = ORDER.validate_json(Path(path).read_bytes()), Workspace(Path.cwd() / "workspace")
    claim = RemoteClaim(take_over=order.take_over, if_lost=not order.take_over, purpose=ASKER)
    try:
        each = order.study_run()
        with at_remote(workspace, each.name, order.remote, claim):
            check_name(each, workspace)
            workspace.trust.confirm(each.name, chosen(each.config))
            return play(workspace, each, RunOptions(quiet=True, brief=True, alone=True), order.partner)
    except CoevoError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    finally:
        down(workspace.root)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
