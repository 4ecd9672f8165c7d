"""The author of a run's writer: opened for a run that writes, or for an evaluation."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from coevo.configs.bank.author import AnyAuthorConfig
from coevo.configs.bank.writer import ModelWriterConfig
from coevo.configs.errors import CoevoError
from coevo.configs.run import RunConfig
from coevo.models.authors.open import author_of
from coevo.models.engines.base import Engine
from coevo.tasks.writing.artifact import FOLDER, Kept
from coevo.tasks.writing.author import Writing
from coevo.tasks.writing.journal import Journal


def author_config(config: RunConfig) -> AnyAuthorConfig | None:
    """Settings of the author; None for a writer that asks no model."""
    writer = None if config.bank is None else config.bank.writer
    return writer.author if isinstance(writer, ModelWriterConfig) else None


@contextmanager
def open_writing(
    config: RunConfig, engine: Engine, place: Path, journal: Journal, kept: Kept, warn: Callable[[str], None]
) -> Iterator[Writing | None]:
    """The writing of a run; None for a writer that asks no model.

    Args:
        config: of the run.
        engine: generates with the run's policy.
        place: directory for files of the author's own servers.
        journal: answers of the revision in the making.
        kept: what the last revision keeps.
        warn: reports that questions are not answered.

    Raises:
        CoevoError: the author cannot be opened, or an answer has tokens that the policy does not know.
    """
    asked = author_config(config)
    if asked is None:
        yield None
        return
    with closing(author_of(asked, engine, config.context, config.seed, place, warn)) as author:
        learns = config.update is not None and config.update.writer is not None
        check_tokens(kept, journal, engine.policy.model.config.vocab_size)
        yield Writing(author, asked, journal, kept, warn, learns)


def check_tokens(kept: Kept, journal: Journal, size: int) -> None:
    """Check the tokens of stored answers, which a pulled run may bring, before an update trains on them.

    Args:
        kept: what the last revision keeps.
        journal: answers of the revision in the making.
        size: number of tokens that the policy knows.

    Raises:
        CoevoError: a token is none of these.
    """
    drawn = [found.reply.drawn for found in (*kept.answers, *journal.answers) if found.reply.drawn is not None]
    for answer in (*drawn, *(each.drawn for each in kept.rewarded)):
        largest = max(*answer.prompt_ids, *answer.token_ids)
        if largest >= size:
            raise CoevoError(
                f"an answer in the artifact {FOLDER} has token {largest}, and the policy knows {size}: roll back to an "
                "earlier revision"
            )
