"""Episodes of agents with their own loop: an iteration learns from sessions of the run's gateway (``rollout.gateway``).

The gateway serves the last committed policy and bank until enough outcomes are on the disk, and then holds requests
back while the run learns. What an iteration has taken is part of its revision; where it closed is a line of
``closed.jsonl`` beside the sessions, so that a run that is killed learns from the same sessions again.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from threading import Event, Lock
from time import monotonic
from typing import NamedTuple

from coevo.configs.rollout.rollout_config import GatewaySourceConfig
from coevo.envs.failures import EpisodeFailure
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.revision.retention import earlier
from coevo.models.policy.language_model import ends_of
from coevo.records.episode import Episode
from coevo.records.task import Task
from coevo.tasks.gateway.chat_agent import ChatAgent, root_of
from coevo.tasks.gateway.gateway_session import Sessions
from coevo.tasks.gateway.request_gate import RequestGate
from coevo.tasks.gateway.session_episodes import EpisodeReader
from coevo.tasks.gateway.session_selection import Selection, SelectionRule, TakenSessions, select
from coevo.tasks.gateway.session_store import FILES, SessionRecord, SessionStore, parse_session
from coevo.tasks.gateway.session_tree import AnswerOrigin
from coevo.tasks.iteration.held_out import limits_at
from coevo.tasks.pending_revision import PlayedBatch
from coevo.tasks.play.retrieve import assign_clusters
from coevo.tasks.publish.reporter import reporter
from coevo.tasks.session import Session
from coevo.utilities.line_file import append_line, drop_torn_line

POLL_INTERVAL_S = 0.5
"""Seconds between two looks of the run at its gateway."""
CLOSED = "closed.jsonl"
"""File of the lines at which iterations closed."""


class SessionLines:
    """The lines of a gateway's training sessions, read once each.

    Args:
        path: their file.
        taken: lines that were taken before. A branch of a run, or a copy elsewhere, has other lines: none of these.

    Attributes:
        taken: lines that were taken.
        records: sessions that were not, by line, counted from 0.
    """

    def __init__(self, path: Path, taken: TakenSessions) -> None:
        self._path, self._offset, self._count = path, 0, 0
        self.taken, self.records = taken, dict[int, SessionRecord]()
        if not self._skip():
            self._offset, self._count = 0, 0
            self.taken, self.records = TakenSessions(), {}
        self.read()

    def read(self) -> int:
        """Read the lines that are new; their number."""
        before = self._count
        self.records |= {number: self._parsed(number, line) for number, line in self._new()}
        return self._count - before

    def take(self, taken: TakenSessions) -> None:
        """Take lines, and forget them but for those that wait."""
        self.taken = taken
        left = {line for line in self.records if line >= taken.lines or line in taken.waiting}
        self.records = {line: self.records[line] for line in sorted(left)}

    def _skip(self) -> bool:
        """Read the lines that were taken, and keep those that wait; False if they are not these."""
        waiting, last = frozenset(self.taken.waiting), self.taken.lines - 1
        if last < 0:
            return False
        for number, line in self._new():
            if number in waiting:
                self.records[number] = self._parsed(number, line)
            if number == last:
                return self._parsed(number, line).session == self.taken.last
        return False

    def _new(self) -> Iterator[tuple[int, bytes]]:
        """Whole lines behind those that were read, one at a time: all sessions of a run need not fit in memory."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._offset += len(line)
                self._count += 1
                yield self._count - 1, line

    def _parsed(self, number: int, line: bytes) -> SessionRecord:
        return parse_session(line, self._path, number + 1)


class AwaitedSelection:
    """The selection of an iteration while its sessions arrive.

    It shuts the gate with the line that completes it, before the client of that session hears of it: what the client
    asks next is answered by the next policy.

    Args:
        lines: lines of the sessions.
        reader: reads sessions as episodes.
        rule: what may be learned from.
        gate: gate before the policy.
    """

    def __init__(self, lines: SessionLines, reader: EpisodeReader, rule: SelectionRule, gate: RequestGate) -> None:
        self._lines, self._reader, self._rule, self._gate = lines, reader, rule, gate
        self._looking, self._new, self.found = Lock(), 0, Selection()
        self.complete = Event()
        lines.read()
        self._select()

    def look(self, every: bool = False) -> None:
        """Read what is new.

        Args:
            every: select anew after any line; else once so many are there that the iteration may be complete.
        """
        with self._looking:
            if self.complete.is_set():
                return
            self._new += self._lines.read()
            if 2 * self._new >= (1 if every else self._rule.outcomes - len(self.found.chosen)):
                self._select()

    def end(self) -> Selection:
        """The selection, which no later line changes."""
        with self._looking:
            self.complete.set()
            return self.found

    def _select(self) -> None:
        self.found, self._new = select(self._lines.records, self._lines.taken, self._reader, self._rule), 0
        if len(self.found.chosen) >= self._rule.outcomes:
            self._gate.shut()
            self.complete.set()


class GatewayParts(NamedTuple):
    """Parts of a gateway that a run serves its revisions with."""

    agent: ChatAgent
    """Answers the agents."""
    store: SessionStore
    """Keeps the sessions that ended."""
    sessions: Sessions
    """Open sessions."""
    gate: RequestGate
    """Gate before the policy, which is closed at first."""


class AgentSessions:
    """Source of a run's episodes: what agents have played through its gateway.

    Args:
        config: settings of the source.
        directory: directory of the gateway's sessions.
        gateway: parts of the gateway.
        check: raises if the gateway has ended.
    """

    def __init__(
        self, config: GatewaySourceConfig, directory: Path, gateway: GatewayParts, check: Callable[[], None]
    ) -> None:
        self._config, self._directory, self._check = config, directory, check
        self._agent, self._store, self._sessions, self._gate = gateway
        self._lines: SessionLines | None = None
        self._late = 0
        drop_torn_line(directory / CLOSED)

    def collect(self, session: Session) -> PlayedBatch:
        """Serve the last revision until an iteration's sessions are there; they are this iteration's then.

        Raises:
            CoevoError: the gateway ended, or a line of its sessions is damaged.
        """
        lines = self._lines = self._lines or SessionLines(self._directory / FILES["training"], session.taken)
        reader, rule = self._reader(session), self._rule(session)
        closed = self._closed(session.pending.revision)
        if closed is None:
            selection = self._awaited(session, lines, reader, rule)
            line = {"revision": session.pending.revision, "lines": selection.lines}
            append_line(self._directory / CLOSED, json.dumps(line))
        else:
            known = {number: record for number, record in lines.records.items() if number < closed}
            selection = select(known, lines.taken, reader, rule)
        session.taken = selection.taken
        lines.take(selection.taken)
        return self._batch(session, selection, reader)

    def _awaited(self, session: Session, lines: SessionLines, reader: EpisodeReader, rule: SelectionRule) -> Selection:
        """Serve agents until there are enough sessions, or one has waited for too long."""
        awaited, since = AwaitedSelection(lines, reader, rule, self._gate), monotonic()
        self._store.kept = awaited.look
        try:
            if not awaited.complete.is_set():
                self._serve(session, next(iter(reader.versions)))
            while not awaited.complete.wait(POLL_INTERVAL_S):
                self._check()
                awaited.look(every=True)
                reporter().note(_progress(awaited.found, rule))
                since = since if awaited.found.chosen else monotonic()
                if monotonic() - since > 60 * (self._config.max_wait or float("inf")):
                    break
        finally:
            self._store.kept = lambda: None
            self._gate.close()
        return awaited.end()

    def _serve(self, session: Session, policy: str) -> None:
        origin = AnswerOrigin(policy, policy if session.config.bank is not None else "")
        index = session.shown_index(session.iteration)
        self._agent.serve(index, root_of(session.config.seed, session.pending.revision - 1), origin)
        self._sessions.policy, self._sessions.bank = origin
        self._gate.open()

    def _closed(self, revision: int) -> int | None:
        """Number of lines at which the iteration of a revision closed; None if it did not yet."""
        path = self._directory / CLOSED
        if not path.exists():
            return None
        closed = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        return next((int(each["lines"]) for each in closed if each["revision"] == revision), None)

    def _reader(self, session: Session) -> EpisodeReader:
        policy = session.parts.worker.engine.policy
        versions = self._versions(session)
        return EpisodeReader(session.parts.env.name, policy.tokenizer, ends_of(policy), versions)

    def _versions(self, session: Session) -> dict[str, int]:
        """Iterations of the last policy, first, and of those before it that are fresh, by name."""
        name, history = session.stores.paths.name, session.stores.lineage.history
        head = history.head()
        assert head is not None
        line: list[Manifest] = [head]
        for before in earlier(history.manifest, head):
            if before.iteration < head.iteration - self._config.staleness:
                break
            line.append(before)
        return {f"{name}@{each.revision}": each.iteration for each in line}

    def _rule(self, session: Session) -> SelectionRule:
        update, bank, env = session.config.update, session.config.bank, session.parts.env
        replays = bank is not None and (
            bank.admission.needs_replay or (bank.retirement is not None and bank.retirement.entries > 0)
        )
        known: dict[str, bool] = {}

        def starts(task: Task) -> bool:
            if task.id not in known:
                known[task.id] = not isinstance(started := env.try_start([task])[0], EpisodeFailure)
                env.release([] if isinstance(started, EpisodeFailure) else [started[0]])
            return known[task.id]

        limits = limits_at(session, session.here)
        return SelectionRule(
            outcomes=self._config.outcomes,
            grouped=update is not None and bool(update.advantage.grouped),
            held_out=limits.held_out,
            held_out_data=limits.held_out_data,
            reward_range=env.reward_range,
            starts=starts if replays else lambda task: True,
        )

    def _batch(self, session: Session, selection: Selection, reader: EpisodeReader) -> PlayedBatch:
        """Episodes of the chosen sessions, and how many sessions were left out, by reason."""
        replicas: Counter[str] = Counter()
        episodes = list[Episode]()
        for each in selection.chosen:
            episodes.append(reader.episode(each.record, each.task, replicas[each.task.id], session.here))
            replicas[each.task.id] += 1
        if session.bank.clusters is not None:
            episodes = assign_clusters(session.bank.clusters, episodes)
        ages = [session.iteration - turn.version for episode in episodes for turn in episode.turns]
        groups = len({episode.task.id for episode in episodes})
        counts = {"used": len(episodes), "groups": groups, "waiting": len(selection.waiting), **selection.left_out}
        metrics = {f"agent/sessions/{name}": float(count) for name, count in sorted(counts.items())}
        late, self._late = self._store.late - self._late, self._store.late
        return PlayedBatch(episodes, metrics | {"policy/staleness": fmean(ages)}, {"agent/sessions/late": float(late)})


def _progress(selection: Selection, rule: SelectionRule) -> str:
    alone = f", {len(selection.alone)} alone in their group" if selection.alone else ""
    return f"agents play: {len(selection.chosen)} of {rule.outcomes} outcomes{alone}"
