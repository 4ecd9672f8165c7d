"""Replies of a worker: plain values as JSON, checked before they are used.

Nothing that a simulator made is unpickled. A text that UTF-8 cannot encode, a reward that is not finite, or a field of
another type is refused.
"""

import hashlib
import json
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from coevo.configs.base import named
from coevo.envs.base import Step
from coevo.envs.failures import EpisodeFailure, one_line

MAX_CHAR_BYTES = 6
"""Most bytes of a character in JSON."""
OVERHEAD_BYTES = 4096
"""Bytes of a reply without its texts."""


class ActionResult(BaseModel):
    """Result of an action."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    observation: str
    feedback: str
    reward: float
    done: bool
    success: bool
    valid: bool
    truncated: bool
    progress: Annotated[float, Field(ge=0, le=1)] | None
    scores: tuple[tuple[Annotated[str, AfterValidator(named)], float], ...] = ()


class WorkerReply(BaseModel):
    """Answer of a worker: a failure, or what the request asks for."""

    model_config = ConfigDict(strict=True, extra="forbid")

    error: str = ""
    observation: str = ""
    step: ActionResult | None = None
    facts: dict[str, JsonValue] | None = None
    trace: str = Field(default="", pattern=r"^[0-9a-f]*$", max_length=64)


def most_bytes(longest: int) -> int:
    """Bytes of the longest reply whose texts have ``longest`` characters."""
    return 3 * MAX_CHAR_BYTES * longest + OVERHEAD_BYTES


def read_reply(message: bytes, longest: int) -> WorkerReply | EpisodeFailure:
    """Check a reply; a text of it has at most ``longest`` characters."""
    try:
        reply = WorkerReply.model_validate_json(message)
    except ValidationError as error:
        return _malformed(error)
    if reply.error:
        return EpisodeFailure("exception", one_line(reply.error))
    step = reply.step
    for text in (reply.observation, step.observation if step else "", step.feedback if step else ""):
        if len(text) > longest:
            return EpisodeFailure(
                "invalid", f"a text of {len(text)} characters, more than env.simulator.longest={longest}"
            )
    if step is not None and step.success and not step.done:
        return EpisodeFailure("invalid", "a step has success=True and done=False: an episode succeeds where it ends")
    return reply


def _malformed(error: ValidationError) -> EpisodeFailure:
    problem = error.errors()[0]
    field = ".".join(map(str, problem["loc"]))
    return EpisodeFailure("invalid", one_line(f"{field} = {str(problem['input'])[:80]!r}: {problem['msg']}"))


def step_of(played: ActionResult) -> Step[None]:
    """Result of an action as a step without a state."""
    return Step(None, **played.model_dump())


def plain(step: Step[Any]) -> dict[str, Any]:
    """A step as plain values; numbers and truth values of other libraries become Python's own."""
    return {
        "observation": step.observation,
        "feedback": step.feedback,
        "reward": float(step.reward),
        "done": bool(step.done),
        "success": bool(step.success),
        "valid": bool(step.valid),
        "truncated": bool(step.truncated),
        "progress": None if step.progress is None else float(step.progress),
        **({"scores": tuple((str(name), float(value)) for name, value in step.scores)} if step.scores else {}),
    }


def encoded(values: Any) -> bytes:
    """Plain values as JSON; a value of another kind becomes a list with its type, which no reply may hold."""
    return json.dumps(values, ensure_ascii=False, default=_kind).encode(errors="surrogatepass")


def digest(before: str, values: Any) -> str:
    """SHA-256 (hex) of an earlier digest and plain values: equal episodes have equal digests."""
    return hashlib.sha256(json.dumps([before, values], sort_keys=True, default=_kind).encode()).hexdigest()


def _kind(value: object) -> list[str]:
    return [type(value).__name__]
