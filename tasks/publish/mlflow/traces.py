"""A sample of episodes as traces: per turn the retrieved entries, prompt and answer, and the environment's response.

Held-out episodes have their panel as the tag ``coevo.evaluation_set``, others ``training``. Each trace is assessed by
``success``, and by ``reason`` where it failed. Ids derive from the episode, so a trace published again is the same one.
Spans follow each other from the time of the commit on. ``generate`` and ``step`` last as long as was measured, which
turns of one batch share; where nothing was, they have no duration. The seconds of the whole batch are a tag.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from coevo.models.policy.decoder import Decode
from coevo.records.episode import Turn
from coevo.records.failure_reasons import failure_reason
from coevo.tasks.pending_revision import HeldOutEpisode
from coevo.tasks.publish.mlflow.publication import Publication
from coevo.tasks.publish.mlflow.tracking_store import TrackingStore

SUCCESSES = 2
"""Successful episodes per sample."""
TRAINING = "training"
"""Evaluation set of episodes that policy and bank learn from."""
SECONDS = {TRAINING: "cost/seconds/rollout"}
"""Metric with the seconds of the batch; held-out ones are played in the evaluation."""
NO_PROMPT = "not available: the tokenizer of the policy is not at hand"
"""Input of the policy where its prompt cannot be decoded."""


@dataclass(frozen=True)
class TraceDestination:
    """Destination of traces: an experiment and its run, and the decoder of its policy's prompts."""

    store: TrackingStore
    experiment: str
    run_id: str
    decode: Decode


def sample(episodes: Iterable[HeldOutEpisode]) -> list[HeldOutEpisode]:
    """Of each evaluation set some successes, and one episode per reason of a failure."""
    kinds: dict[tuple[str, str], list[HeldOutEpisode]] = {}
    for each in episodes:
        kinds.setdefault((each.panel, outcome(each)), []).append(each)
    return [each for kind in sorted(kinds) for each in kinds[kind][: SUCCESSES if kind[1] == "success" else 1]]


def outcome(each: HeldOutEpisode) -> str:
    """Outcome of an episode in words."""
    return each.reason or ("success" if each.episode.success else "continues")


def traced(publication: Publication) -> list[HeldOutEpisode]:
    """Episodes of a revision that are shown, training episodes as the evaluation set ``TRAINING``."""
    training = (
        HeldOutEpisode(TRAINING, each, failure_reason(each) or "", each.lesson_use) for each in publication.episodes
    )
    return [*sample(training), *sample(publication.held_out)]


def publish_traces(destination: TraceDestination, publication: Publication) -> None:
    """Log the sample of a revision's episodes."""
    # MlflowClient.start_trace draws ids and times the spans itself: what is published again would be a second trace.
    from mlflow.tracing.client import TracingClient

    client = TracingClient(destination.store.uri)
    known = {entry.id: entry.strategy for entry in (*(publication.before or ()), *(publication.entries or ()))}
    for each in traced(publication):
        trace = trace_id(destination.run_id, each)
        spans = list(spans_of(trace, each, known, publication.timestamp, destination.decode))
        client.start_trace(_info(destination, publication, each, trace))
        client.log_spans(destination.experiment, [_span(values) for values in spans])


def spans_of(
    trace: str, each: HeldOutEpisode, known: Mapping[str, str], timestamp: int, decode: Decode
) -> Iterator[dict[str, Any]]:
    """The spans of an episode in MLflow's dictionary form, the root first.

    Args:
        trace: id of the trace.
        each: episode to show.
        known: text of entries by id.
        timestamp: time of the commit, in ms since 1970.
        decode: text of a prompt's token ids.
    """
    at, episode = timestamp * 1_000_000, each.episode
    asked = {"task": episode.task.instruction, "scope": episode.task.scope}
    ended = {"outcome": outcome(each), "reward": episode.reward, "shaped reward": episode.shaped}
    lasts = sum(nanoseconds(episode.turns))
    root = _SpanPart("episode", "AGENT", asked, ended, each.reason)
    yield _values(trace, root, None, (at, at + lasts))
    for number, turn in enumerate(episode.turns, 1):
        for part, spent in zip(_parts(turn, known, decode), (0, *nanoseconds([turn])), strict=True):
            named = replace(part, name=f"{part.name} {number}")
            yield _values(trace, named, "episode", (at + 1, at + 1 + spent))
            at += 1 + spent  # a nanosecond keeps spans without a duration in order


def nanoseconds(turns: Iterable[Turn]) -> list[int]:
    """Time of the policy's answer and of what followed, of each turn in order; 0 where it was not measured."""
    spent = []
    for turn in turns:
        drawing, whole = turn.drawing or 0.0, turn.seconds or 0.0
        spent += [round(drawing * 1e9), round(max(0.0, whole - drawing) * 1e9)]
    return spent


def trace_id(run_id: str, each: HeldOutEpisode) -> str:
    """MLflow's id of the trace of an episode of a run."""
    return f"tr-{_hash(f'{run_id}{each.panel}{each.episode.id}', 32)}"


@dataclass(frozen=True)
class _SpanPart:
    """Content of a span; ``failure`` is empty where there is none."""

    name: str
    kind: str
    given: object
    got: object
    failure: str = ""
    tokens: Mapping[str, int] | None = None


def _parts(turn: Turn, known: Mapping[str, str], decode: Decode) -> tuple[_SpanPart, ...]:
    """Retrieval, generation and step of a turn."""
    retrieved = [{"page_content": known.get(name, ""), "metadata": {"entry": name}} for name in turn.retrieved]
    result = {"feedback": turn.feedback, "reward": turn.reward, "valid": turn.valid}
    prompt = decode(turn.prompt_ids) or NO_PROMPT
    return (
        _SpanPart("retrieve", "RETRIEVER", turn.observation, retrieved),
        _SpanPart("generate", "LLM", prompt, turn.completion.text, turn.fault, usage([turn])),
        _SpanPart("step", "TOOL", turn.action, result, "" if turn.valid else "invalid action"),
    )


def usage(turns: Sequence[Turn]) -> dict[str, int]:
    """Tokens of prompts and answers, under MLflow's names."""
    given, drawn = sum(len(turn.prompt_ids) for turn in turns), sum(len(turn.completion.token_ids) for turn in turns)
    return {"input_tokens": given, "output_tokens": drawn, "total_tokens": given + drawn}


def _values(trace: str, part: _SpanPart, parent: str | None, when: tuple[int, int]) -> dict[str, Any]:
    (began, ended) = when
    attributes = {"traceRequestId": trace, "spanType": part.kind, "spanInputs": part.given, "spanOutputs": part.got}
    attributes |= {} if part.tokens is None else {"chat.tokenUsage": part.tokens}
    code = "STATUS_CODE_ERROR" if part.failure else "STATUS_CODE_OK"
    return {
        "trace_id": trace,
        "span_id": _hash(trace + part.name, 16),
        "parent_span_id": parent and _hash(trace + parent, 16),
        "name": part.name,
        "start_time_unix_nano": began,
        "end_time_unix_nano": ended,  # without an end, MLflow's page shows a negative duration
        "status": {"code": code, "message": part.failure},
        "attributes": {f"mlflow.{name}": json.dumps(value) for name, value in attributes.items()},
        "events": [],
    }


def _span(values: dict[str, Any]) -> Any:
    from mlflow.entities import Span

    return Span.from_dict(values)


def _info(destination: TraceDestination, publication: Publication, each: HeldOutEpisode, trace: str) -> Any:
    from mlflow.entities import TraceInfo, TraceLocation, TraceState

    episode = each.episode
    return TraceInfo(
        trace_id=trace,
        trace_location=TraceLocation.from_experiment_id(destination.experiment),
        request_time=publication.timestamp,
        execution_duration=sum(nanoseconds(episode.turns)) // 1_000_000 or None,
        state=TraceState.ERROR if each.reason else TraceState.OK,
        request_preview=episode.task.instruction,
        response_preview=outcome(each),
        trace_metadata={
            "mlflow.sourceRun": destination.run_id,
            "mlflow.trace_schema.version": "3",
            "mlflow.trace.tokenUsage": json.dumps(usage(episode.turns)),
        },
        tags={"mlflow.traceName": episode.task.instruction, **_tags(publication, each)},
        assessments=list(_assessments(trace, each, publication.timestamp)),
    )


def _tags(publication: Publication, each: HeldOutEpisode) -> dict[str, str]:
    seconds = publication.manifest.rates.get(SECONDS.get(each.panel, "cost/seconds/evaluate"))
    measured = {} if seconds is None else {"coevo.batch_seconds": f"{seconds:.3f}"}
    return measured | {
        "coevo.episode": each.episode.id,
        "coevo.evaluation_set": each.panel,
        "coevo.outcome": outcome(each),
        "coevo.revision": str(publication.revision),
    }


def _assessments(trace: str, each: HeldOutEpisode, timestamp: int) -> Iterator[Any]:
    """Success, and the reason of a failure with the part of the lessons; none while an attempt continues."""
    from mlflow.entities import AssessmentSource, Feedback

    if each.episode.following and not each.reason:
        return
    told: dict[str, tuple[bool | str, str | None]] = {"success": (each.episode.success, None)}
    if each.reason:
        told["reason"] = (each.reason, f"lessons: {each.lessons}" if each.lessons else None)
    for name, (value, why) in told.items():
        source = AssessmentSource("CODE", "coevo")
        made = Feedback(
            name, value, source=source, trace_id=trace, create_time_ms=timestamp, last_update_time_ms=timestamp,
            rationale=why,
        )  # fmt: skip
        made.assessment_id = f"a-{_hash(trace + name, 32)}"
        yield made


def _hash(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
