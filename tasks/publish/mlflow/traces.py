"""A sample of episodes as traces: per turn the retrieved entries, prompt and answer, and the environment's response.

Ids derive from the episode, so a trace published again is the same one. Turns are played in batches, and nothing
measures one by itself: spans have an order, a nanosecond apart, and no duration.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from coevo.models.policy.decoder import Decode
from coevo.records.episode import Episode, Turn
from coevo.tasks.publish.mlflow.publication import Publication
from coevo.tasks.publish.mlflow.tracking_store import TrackingStore

SUCCESSES = 2
"""Successful episodes per sample."""
NO_PROMPT = "not available: the tokenizer of the policy is not at hand"
"""Input of the policy where its prompt cannot be decoded."""


@dataclass(frozen=True)
class TraceDestination:
    """Destination of traces: an experiment and its run, and the decoder of its policy's prompts."""

    store: TrackingStore
    experiment: str
    run_id: str
    decode: Decode


def sample(episodes: Sequence[Episode]) -> list[Episode]:
    """Some successes, and one episode per kind of failure."""
    kinds: dict[str, list[Episode]] = {}
    for episode in episodes:
        kinds.setdefault(outcome(episode), []).append(episode)
    return [episode for kind in sorted(kinds) for episode in kinds[kind][: SUCCESSES if kind == "success" else 1]]


def outcome(episode: Episode) -> str:
    """Outcome of an episode in words."""
    if episode.lost:
        return f"lost by {episode.lost.partition(':')[0]}"
    if episode.success:
        return "success"
    ended = "cut" if episode.following else "out of turns" if episode.truncated else "failed"
    return ended if all(turn.valid for turn in episode.turns) else f"{ended}, with an invalid action"


def publish_traces(destination: TraceDestination, publication: Publication) -> None:
    """Log the sample of a revision's episodes."""
    # MlflowClient.start_trace draws ids and times the spans itself: what is published again would be a second trace.
    from mlflow.tracing.client import TracingClient

    client = TracingClient(destination.store.uri)
    known = {entry.id: entry.strategy for entry in (*(publication.before or ()), *(publication.entries or ()))}
    for episode in sample(publication.episodes):
        trace = trace_id(destination.run_id, episode)
        spans = list(spans_of(trace, episode, known, publication.timestamp, destination.decode))
        client.start_trace(_info(destination, publication, episode, trace))
        client.log_spans(destination.experiment, [_span(values) for values in spans])


def spans_of(
    trace: str, episode: Episode, known: Mapping[str, str], timestamp: int, decode: Decode
) -> Iterator[dict[str, Any]]:
    """The spans of an episode in MLflow's dictionary form, the root first.

    Args:
        trace: id of the trace.
        episode: episode to show.
        known: text of entries by id.
        timestamp: time of the commit, in ms since 1970.
        decode: text of a prompt's token ids.
    """
    order = count(timestamp * 1_000_000)
    asked = {"task": episode.task.instruction, "scope": episode.task.scope}
    ended = {"outcome": outcome(episode), "reward": episode.reward, "shaped reward": episode.shaped}
    failure = outcome(episode) if has_failed(episode) else ""
    yield _values(trace, _SpanPart("episode", "AGENT", asked, ended, failure), None, next(order))
    for number, turn in enumerate(episode.turns, 1):
        for part in _parts(turn, known, decode):
            named = replace(part, name=f"{part.name} {number}")
            yield _values(trace, named, "episode", next(order))


def trace_id(run_id: str, episode: Episode) -> str:
    """MLflow's id of the trace of an episode of a run."""
    return f"tr-{_hash(run_id + episode.id, 32)}"


def has_failed(episode: Episode) -> bool:
    """Report whether the episode ended without success; an attempt that continues has not ended."""
    return not episode.success and not episode.following


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


def _values(trace: str, part: _SpanPart, parent: str | None, when: int) -> dict[str, Any]:
    attributes = {"traceRequestId": trace, "spanType": part.kind, "spanInputs": part.given, "spanOutputs": part.got}
    attributes |= {} if part.tokens is None else {"chat.tokenUsage": part.tokens}
    code = "STATUS_CODE_ERROR" if part.failure else "STATUS_CODE_OK"
    return {
        "trace_id": trace,
        "span_id": _hash(trace + part.name, 16),
        "parent_span_id": parent and _hash(trace + parent, 16),
        "name": part.name,
        "start_time_unix_nano": when,
        "end_time_unix_nano": when,  # without an end, MLflow's page shows a negative duration
        "status": {"code": code, "message": part.failure},
        "attributes": {f"mlflow.{name}": json.dumps(value) for name, value in attributes.items()},
        "events": [],
    }


def _span(values: dict[str, Any]) -> Any:
    from mlflow.entities import Span

    return Span.from_dict(values)


def _info(destination: TraceDestination, publication: Publication, episode: Episode, trace: str) -> Any:
    from mlflow.entities import TraceInfo, TraceLocation, TraceState

    return TraceInfo(
        trace_id=trace,
        trace_location=TraceLocation.from_experiment_id(destination.experiment),
        request_time=publication.timestamp,
        execution_duration=None,
        state=TraceState.ERROR if has_failed(episode) else TraceState.OK,
        request_preview=episode.task.instruction,
        response_preview=outcome(episode),
        trace_metadata={
            "mlflow.sourceRun": destination.run_id,
            "mlflow.trace_schema.version": "3",
            "mlflow.trace.tokenUsage": json.dumps(usage(episode.turns)),
        },
        tags={
            "mlflow.traceName": episode.task.instruction,
            "coevo.episode": episode.id,
            "coevo.outcome": outcome(episode),
            "coevo.revision": str(publication.revision),
        },
    )


def _hash(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
