"""Opening of the author that a configuration names."""

from collections.abc import Callable
from pathlib import Path

from coevo.configs.bank.author_config import AnyAuthorConfig, EndpointAuthorConfig, FrozenAuthorConfig
from coevo.configs.context_config import ContextConfig
from coevo.models.authors.author import Author
from coevo.models.authors.engine_author import EngineAuthor
from coevo.models.authors.frozen import FrozenAuthor
from coevo.models.engines.requests import Engine


def author_of(
    config: AnyAuthorConfig,
    engine: Engine,
    context: ContextConfig,
    seed: int,
    place: Path,
    warn: Callable[[str], None],
) -> Author:
    """Open an author, to be closed. A frozen model is loaded, and its servers are started, at the first question.

    Args:
        config: the author.
        engine: the run's engine, with the policy.
        context: prompt settings of the run; authors use its options of the chat template.
        seed: root of the run's draws.
        place: directory for the files of servers that the author starts.
        warn: function that gets a line of text when an endpoint accepts less than it was asked for.

    Raises:
        CoevoError: the longest answer leaves no room for a question, the model is not on this machine, or the
            environment has no key.
    """
    if isinstance(config, EndpointAuthorConfig):
        from coevo.models.authors.endpoint_author import EndpointAuthor  # its client takes a second to import

        return EndpointAuthor(config, warn)
    if isinstance(config, FrozenAuthorConfig):
        return FrozenAuthor(config, context.template, seed, place)
    return EngineAuthor(config, engine, context.template, seed)
