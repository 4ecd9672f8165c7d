"""The gateway of a run that trains from its sessions (``rollout.gateway``): it listens as long as the loop runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from coevo.flows.console import output
from coevo.tasks.session import Session

if TYPE_CHECKING:
    from coevo.flows.gateway.run_gateway import GatewaySettings

_settings: ContextVar["GatewaySettings"] = ContextVar("gateway settings")


@contextmanager
def listening_as(settings: "GatewaySettings") -> Iterator[None]:
    """Let the gateway of a run that is continued within listen with these settings."""
    token = _settings.set(settings)
    try:
        yield
    finally:
        _settings.reset(token)


@contextmanager
def serving_agents(session: Session) -> Iterator[None]:
    """Listen within the block if the run learns from agents with their own loop, who are the session's source then.

    Raises:
        CoevoError: the port is in use, or another gateway of the run is open.
    """
    if session.config.rollout.gateway is None:
        yield
        return
    # The server takes half a second to import.
    from coevo.flows.gateway.run_gateway import GatewaySettings, training_gateway

    settings, run = _settings.get(None) or GatewaySettings(), session.stores.paths.name
    with training_gateway(session, settings) as served:
        output.line(f"Gateway of {run} at {served.url}/s/SESSION/v1; its token is in {served.token_file}")
        yield
