"""Arrow schemas of the records, and conversion in both directions. Parquet and Lance store exactly these columns."""

import json
from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Any

import pyarrow as pa

from coevo.records.entry import Entry
from coevo.records.episode import UNSTAMPED, Completion, Episode, Turn
from coevo.records.task import Task

IDS = pa.list_(pa.int32())

TURN = pa.struct(
    [
        ("observation", pa.string()),
        ("prompt_ids", IDS),
        ("token_ids", IDS),
        ("logprobs", pa.list_(pa.float32())),
        ("text", pa.string()),
        ("finished", pa.bool_()),
        ("action", pa.string()),
        ("feedback", pa.string()),
        ("reward", pa.float64()),
        ("valid", pa.bool_()),
        ("retrieved", pa.list_(pa.string())),
        ("cluster_id", pa.int32()),
    ]
)

EPISODES = pa.schema(
    [
        ("id", pa.string()),
        ("task_id", pa.string()),
        ("env", pa.string()),
        ("kind", pa.string()),
        ("instruction", pa.string()),
        ("scope", pa.string()),
        ("split", pa.string()),
        ("data", pa.string()),
        ("revision", pa.int32()),
        ("replica", pa.int32()),
        ("success", pa.bool_()),
        ("truncated", pa.bool_()),
        ("progress", pa.float64()),
        ("shaping", pa.float64()),
        ("reward", pa.float64()),
        ("turns", pa.list_(TURN)),
    ]
)

VERSIONS = pa.field("versions", pa.list_(pa.int32()))
"""Extra column after those of ``EPISODES`` if turns carry the version of their policy: one integer per turn."""
FAULTS = pa.field("faults", pa.list_(pa.string()))
"""Extra column if the answer of a turn holds no usable action: one reason per turn, empty where there is none."""
SCORES = pa.field("scores", pa.list_(pa.list_(pa.struct([("name", pa.string()), ("value", pa.float64())]))))
"""Extra column if the environment says what a reward is made of: one list per turn."""

REASONS = (pa.field("cut", pa.string()), pa.field("lost", pa.string()))
"""Extra columns, each only if an episode has such a reason; empty for the others."""

ENTRIES = pa.schema(
    [
        ("id", pa.string()),
        ("strategy", pa.string()),
        ("condition", pa.string()),
        ("example", pa.string()),
        ("keywords", pa.string()),
        ("scope", pa.string()),
        ("split", pa.string()),
        ("sources", pa.list_(pa.string())),
        ("created", pa.int32()),
        ("edited", pa.int32()),
        ("retired", pa.int32()),
        ("zone", pa.string()),
        ("level", pa.string()),
    ]
)


def episodes_to_table(episodes: Iterable[Episode]) -> pa.Table:
    """Episodes as a table, one row each, turns nested."""
    episodes = list(episodes)  # they are read several times
    table = pa.Table.from_pylist([_episode_row(episode) for episode in episodes], schema=EPISODES)
    for field, usual, values in (
        (VERSIONS, UNSTAMPED, [[turn.version for turn in episode.turns] for episode in episodes]),
        (FAULTS, "", [[turn.fault for turn in episode.turns] for episode in episodes]),
        (SCORES, [], [[_scores_row(turn) for turn in episode.turns] for episode in episodes]),
    ):
        if any(value != usual for each in values for value in each):
            table = table.append_column(field, pa.array(values, field.type))
    for field in REASONS:
        reasons = [getattr(episode, field.name) for episode in episodes]
        table = table.append_column(field, pa.array(reasons, field.type)) if any(reasons) else table
    return table


def table_to_episodes(table: pa.Table) -> list[Episode]:
    """Inverse of ``episodes_to_table``; log-probs come back as float32."""
    return [_episode(row) for row in table.to_pylist()]


def entries_to_table(entries: Iterable[Entry]) -> pa.Table:
    """Entries as a table, one row each."""
    rows = list(entries)
    return pa.table({name: [getattr(entry, name) for entry in rows] for name in ENTRIES.names}, schema=ENTRIES)


def table_to_entries(table: pa.Table) -> list[Entry]:
    """Inverse of ``entries_to_table``."""
    return [Entry(**{**row, "sources": tuple(row["sources"])}) for row in table.to_pylist()]


def _episode_row(episode: Episode) -> dict[str, object]:
    task = episode.task
    return {
        "id": episode.id,
        "task_id": task.id,
        "env": task.env,
        "kind": task.kind,
        "instruction": task.instruction,
        "scope": task.scope,
        "split": task.split,
        "data": json.dumps(dict(task.data), sort_keys=True),
        "revision": episode.revision,
        "replica": episode.replica,
        "success": episode.success,
        "truncated": episode.truncated,
        "progress": episode.progress,
        "shaping": episode.shaping,
        "reward": episode.reward,
        "turns": [_turn_row(turn) for turn in episode.turns],
    }


def _turn_row(turn: Turn) -> dict[str, object]:
    return {
        "observation": turn.observation,
        "prompt_ids": turn.prompt_ids,
        "token_ids": turn.completion.token_ids,
        "logprobs": turn.completion.logprobs,
        "text": turn.completion.text,
        "finished": turn.completion.finished,
        "action": turn.action,
        "feedback": turn.feedback,
        "reward": turn.reward,
        "valid": turn.valid,
        "retrieved": turn.retrieved,
        "cluster_id": turn.cluster_id,
    }


def _scores_row(turn: Turn) -> list[dict[str, object]]:
    return [{"name": name, "value": value} for name, value in turn.scores]


def _episode(row: dict[str, Any]) -> Episode:
    fields = {name: row[name] for name in ("env", "kind", "instruction", "scope", "split")}
    versions = row.get(VERSIONS.name) or repeat(UNSTAMPED)
    faults = row.get(FAULTS.name) or repeat("")
    scores = row.get(SCORES.name) or repeat(())
    return Episode(
        id=row["id"],
        task=Task(**fields, data=json.loads(row["data"])),
        revision=row["revision"],
        replica=row["replica"],
        turns=tuple(map(_turn, row["turns"], versions, faults, scores)),
        success=row["success"],
        truncated=row["truncated"],
        progress=row["progress"],
        shaping=row["shaping"],
        **{field.name: row.get(field.name, "") for field in REASONS},
    )


def _turn(row: dict[str, Any], version: int, fault: str, scores: Iterable[Mapping[str, Any]]) -> Turn:
    completion = Completion(tuple(row["token_ids"]), tuple(row["logprobs"]), row["text"], row["finished"])
    return Turn(
        observation=row["observation"],
        prompt_ids=tuple(row["prompt_ids"]),
        completion=completion,
        action=row["action"],
        feedback=row["feedback"],
        reward=row["reward"],
        valid=row["valid"],
        retrieved=tuple(row["retrieved"]),
        cluster_id=row["cluster_id"],
        version=version,
        fault=fault,
        scores=tuple((each["name"], each["value"]) for each in scores),
    )
