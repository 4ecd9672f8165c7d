"""Episodes of a revision: those of its held-out panels or of its training, as rows, chosen by outcome and lesson."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coevo.flows.history.history import trail
from coevo.flows.history.revision_reference import Reading, find_entry, lessons_of
from coevo.records.failure_reasons import FailureReason, LessonUse, failure_reason
from coevo.utilities.errors import CoevoError, unknown

if TYPE_CHECKING:
    from coevo.records.episode import Episode, Turn

COLUMNS = (
    "id", "panel", "kind", "scope", "instruction", "success", "reward", "reason", "lessons", "turns", "tokens", "read",
    "actions", "group", "group_episodes", "group_failed",
)  # fmt: skip
REASONS = [str(reason) for reason in FailureReason]
TRAINING = "training"
"""Panel of episodes that policy and bank learn from."""
PARQUET = "episodes.parquet"
MAX_SAID_CHARS = 200
"""Most characters of another library's message."""


@dataclass(frozen=True)
class EpisodeFilter:
    """Conditions that all hold for the chosen episodes; None, and False, choose every one.

    Attributes:
        training: choose training episodes instead of held-out ones.
        failed: choose those that did not solve their task.
        panel: held-out panel.
        kind: kind of their task.
        reason: why they failed, a ``FailureReason``.
        lesson: id of an entry that stood in a prompt, its beginning, or its text. Panels that are played with a bank of
            their own are left out unless ``panel`` names one: ids follow the text, and entries of theirs share some.
    """

    training: bool = False
    failed: bool = False
    panel: str | None = None
    kind: str | None = None
    reason: str | None = None
    lesson: str | None = None


@dataclass(frozen=True)
class FoundEpisodes:
    """Chosen episodes of a revision, as rows of ``COLUMNS``, beside those that they were chosen from.

    Attributes:
        rows: those that fit all conditions, in the order of their panels and tasks.
        among: those that fit panel, kind and lesson, whatever became of them.
        lesson: id and text of the lesson that was asked for.
        own_banks: panels with a bank of their own, each with the number of its episodes that read the id, left out.
    """

    rows: list[dict[str, Any]]
    among: list[dict[str, Any]]
    lesson: tuple[str, str] | None
    own_banks: Mapping[str, int]


def episode_rows(opened: Reading, wanted: EpisodeFilter) -> list[dict[str, Any]]:
    """Rows of ``COLUMNS`` for the episodes that ``find_episodes`` chooses."""
    return find_episodes(opened, wanted).rows


def find_episodes(opened: Reading, wanted: EpisodeFilter) -> FoundEpisodes:
    """Choose episodes of a revision.

    ``read`` has the ids of the entries in their prompts, ``lessons`` the part that lessons have in a failure. ``group``
    names the attempts at one task, of which so many were played and failed.

    Raises:
        CoevoError: the revision keeps no such episodes, no episode of it has the panel, kind or reason, or neither its
            bank nor a prompt of them has the lesson.
    """
    if wanted.reason is not None and wanted.reason not in REASONS:
        raise CoevoError(unknown("reason", wanted.reason, REASONS, f"Choose of {', '.join(REASONS)}"))
    rows = _grouped([_row(*each) for each in stored_episodes(opened, wanted.training)])
    lesson, held = (None, {}) if wanted.lesson is None else _lesson(opened, wanted.lesson, rows)
    others = set() if wanted.panel or lesson not in held else _with_own_bank(rows, held)
    for field in ("panel", "kind"):
        rows = _chosen(rows, field, getattr(wanted, field), opened.name)
    rows = [row for row in rows if lesson is None or lesson in row["read"]]
    left_out = Counter(row["panel"] for row in rows if row["panel"] in others)
    among = [row for row in rows if row["panel"] not in others]
    rows = [row for row in among if wanted.reason in (None, row["reason"])]
    rows = [row for row in rows if row["reason"]] if wanted.failed else rows
    return FoundEpisodes(rows, among, None if lesson is None else (lesson, held.get(lesson, "")), left_out)


def _lesson(opened: Reading, text: str, rows: Sequence[Mapping[str, Any]]) -> tuple[str, dict[str, str]]:
    """Id of a lesson that is in the run's bank or was read, and all lessons of the bank."""
    held = {} if opened.config.bank is None else lessons_of(opened.bank())
    return find_entry(text, {entry: "" for row in rows for entry in row["read"]} | held), held


def _with_own_bank(rows: Sequence[Mapping[str, Any]], held: Mapping[str, str]) -> set[str]:
    """Held-out panels whose prompts had entries that the run's bank never held."""
    return {row["panel"] for row in rows if row["panel"] != TRAINING and not held.keys() >= set(row["read"])}


def _grouped(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with the number of attempts in their group, and of failures among them."""
    played = Counter(row["group"] for row in rows)
    failed = Counter(row["group"] for row in rows if row["reason"])
    return [row | {"group_episodes": played[row["group"]], "group_failed": failed[row["group"]]} for row in rows]


def is_training(episode: str) -> bool:
    """Return True for the id of a training episode, or of a group of them."""
    return "".join(episode.split("/")[1:2]).startswith("rollout-")


def stored_episodes(
    opened: Reading, training: bool, ids: Collection[str] | None = None
) -> Iterator[tuple["Episode", str, str, str]]:
    """Episodes that a revision keeps, each with its panel, the reason of its failure, and the part of its lessons.

    Args:
        opened: the revision.
        training: read training episodes instead of held-out ones.
        ids: ids of the episodes to read; None for all.

    Raises:
        CoevoError: the revision keeps none, was dropped, or their table cannot be read.
    """
    from pyarrow import ArrowException, parquet

    from coevo.records.arrow import table_to_episodes

    artifact = "episodes" if training else "held_out"
    file = _file(opened, artifact)
    try:
        table = parquet.read_table(file, filters=None if ids is None else [("id", "in", sorted(ids))])
        episodes = table_to_episodes(table)
        held = [] if training else table.select(["panel", "reason", "lessons"]).to_pylist()
    except (ArrowException, KeyError, ValueError, TypeError, RecursionError, OSError) as error:
        said = " ".join(str(error).split())[:MAX_SAID_CHARS]
        raise CoevoError(
            f"{opened.name}: its artifact {artifact!r} is no table of episodes ({said}): check it with `coevo fsck`"
        ) from error
    if training:
        from coevo.tasks.publish.turn_figures import read_lesson_uses

        uses = {revision: read_lesson_uses(opened.paths, revision) for revision in {each.revision for each in episodes}}
        for each in episodes:
            reason = failure_reason(each)
            use = uses[each.revision].get(each.id, LessonUse.UNKNOWN)
            yield each, TRAINING, reason or "", use if reason else ""
    else:
        yield from (
            (each, row["panel"], row["reason"], row["lessons"]) for each, row in zip(episodes, held, strict=True)
        )


def reasons_of(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Failures among the rows by reason and part of the lessons, most frequent first."""
    pairs = [(row["reason"], row["lessons"]) for row in rows if row["reason"]]
    counted = sorted(set(pairs), key=lambda pair: (-pairs.count(pair), pair))
    return [{"reason": reason, "lessons": use, "episodes": pairs.count((reason, use))} for reason, use in counted]


def groups_of(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Groups of attempts at one task that the rows belong to and that failed at times, worst first."""
    groups = {row["group"]: row for row in rows if row["group_failed"] and row["group_episodes"] > 1}
    worst = sorted(groups.values(), key=lambda row: (-row["group_failed"] / row["group_episodes"], row["group"]))
    names = {"group": "group", "kind": "kind", "instruction": "instruction"}
    names |= {"episodes": "group_episodes", "failed": "group_failed"}
    return [{name: row[column] for name, column in names.items()} for row in worst]


def kinds_of(among: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Episodes by panel and kind of task, and the failures among the chosen rows."""
    played = Counter((row["panel"], row["kind"]) for row in among)
    failed = Counter((row["panel"], row["kind"]) for row in rows if row["reason"])
    return [
        {"panel": panel, "kind": kind, "episodes": played[panel, kind], "failed": failed[panel, kind]}
        for panel, kind in sorted(played)
    ]


def turn_rows(episode: "Episode") -> list[dict[str, Any]]:
    """Turns of an episode as rows."""
    return [_turn(number, turn) for number, turn in enumerate(episode.turns, 1)]


def export_episodes(opened: Reading, training: bool, ids: Collection[str], file: Path) -> None:
    """Write some of a revision's episodes with all of their columns as a Parquet file, in place of an earlier one.

    Raises:
        CoevoError: the revision keeps none, or the file cannot be written.
    """
    import pyarrow as pa
    from pyarrow import compute, parquet

    table = parquet.read_table(_file(opened, "episodes" if training else "held_out"))
    try:
        parquet.write_table(table.filter(compute.is_in(table["id"], pa.array(sorted(ids), pa.string()))), file)
    except OSError as error:
        raise CoevoError(f"{file} cannot be written: {error.strerror or error}: choose another file") from error


def _turn(number: int, turn: "Turn") -> dict[str, Any]:
    return {
        "turn": number,
        "observation": turn.observation,
        "lessons": list(turn.retrieved),
        "answer": turn.completion.text,
        "action": turn.action,
        "fault": turn.fault,
        "feedback": turn.feedback,
        "reward": turn.reward,
        "valid": turn.valid,
        "prompt_tokens": len(turn.prompt_ids),
        "answer_tokens": len(turn.completion.token_ids),
        "scores": dict(turn.scores),
    }


def _row(episode: "Episode", panel: str, reason: str, lessons: str) -> dict[str, Any]:
    task, turns = episode.task, episode.turns
    cells = (
        episode.id,
        panel,
        task.kind,
        task.scope,
        task.instruction,
        episode.success,
        episode.reward,
        reason,
        lessons,
        len(turns),
        sum(len(turn.prompt_ids) + len(turn.completion.token_ids) for turn in turns),
        list(dict.fromkeys(entry for turn in turns for entry in turn.retrieved)),
        [turn.action for turn in turns],
        episode.id.rpartition("/")[0],
    )
    return dict(zip(COLUMNS[:-2], cells, strict=True))  # the last two count over the group


def _chosen(rows: list[dict[str, Any]], field: str, value: str | None, name: str) -> list[dict[str, Any]]:
    if value is None:
        return rows
    known = sorted({row[field] for row in rows})
    if value not in known:
        raise CoevoError(unknown(field, value, known, f"{name} has {', '.join(known) or 'none'}"))
    return [row for row in rows if row[field] == value]


def _file(opened: Reading, artifact: str) -> Path:
    manifest = opened.manifest
    opened.lineage.history.require(manifest.revision)
    if artifact == "held_out" and not manifest.state["outcomes"]:
        raise CoevoError(f"{opened.name} was not evaluated: {_evaluated(opened)}")
    if artifact not in manifest.artifacts:
        raise CoevoError(f"{opened.name} keeps no held-out episodes: raise lineage.held_out before its next evaluation")
    return opened.lineage.artifacts.files(manifest, artifact)[PARQUET]


def _evaluated(opened: Reading) -> str:
    """Revisions whose held-out episodes can be shown instead."""
    found = [each.revision for each in trail(opened.history) if each.state["outcomes"]]
    return f"choose {opened.paths.name}@{found[-1]}, the last one before it that was" if found else "choose another"
