"""Worker processes of a stateful environment, and their limits."""

from pydantic import Field

from coevo.configs.base import MAX_PROCESSES, MAX_SECONDS, MAX_TOKENS, Config


class SimulatorConfig(Config):
    """Worker processes and limits of a stateful environment."""

    workers: int = Field(default=2, ge=1, le=MAX_PROCESSES)
    """Processes that simulate episodes side by side. The results do not depend on it."""
    open_seconds: float = Field(default=120.0, gt=0, le=MAX_SECONDS)
    """Time limit for the start of an episode; a new worker imports its packages in it."""
    act_seconds: float = Field(default=60.0, gt=0, le=MAX_SECONDS)
    """Time limit for one action. A worker that exceeds it is killed, and its episode lost."""
    retries: int = Field(default=1, ge=0, le=100)
    """Further attempts to start an episode that failed to start."""
    longest: int = Field(default=100_000, ge=1, le=MAX_TOKENS)
    """Most characters of an observation or a feedback; a longer one loses the episode."""
