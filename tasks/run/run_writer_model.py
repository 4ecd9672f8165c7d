"""The writer model of a run's writer: opened for a run that writes, or for an evaluation."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from coevo.configs.bank.writer import asked_model
from coevo.configs.bank.writer_model_config import AnyWriterModelConfig, EndpointAccess
from coevo.configs.policy_config import EndpointPolicyConfig
from coevo.configs.run_config import RunConfig
from coevo.lineage.lineage import Lineage
from coevo.lineage.revision.manifest import Manifest
from coevo.models.engines.requests import Engine
from coevo.models.writer_models.engine_writer_model import writer_model_of
from coevo.tasks.writing.artifact import FOLDER, KeptWriting, read_writing
from coevo.tasks.writing.ask_writer_model import Writing
from coevo.tasks.writing.journal import Journal
from coevo.tasks.writing.spent import QuestionExpense
from coevo.utilities.errors import CoevoError


def writer_model_config(config: RunConfig) -> AnyWriterModelConfig | None:
    """Settings of the writer model; None for a writer that asks no model."""
    return None if config.bank is None else asked_model(config.bank.writer)


def check_endpoints(config: RunConfig) -> None:
    """Make sure, before anything is written, that endpoints of policy and writer can be asked: that keys are there.

    Raises:
        CoevoError: the environment has no key, an address has no meaning, or a budget of the policy cannot hold.
    """
    if isinstance(config.policy, EndpointPolicyConfig):
        from coevo.models.endpoint_policy.endpoint_engine import check_bounded

        check_bounded(config.policy, config.rollout.sampling)
    for asked in (config.policy, writer_model_config(config)):
        if isinstance(asked, EndpointAccess):
            # Its client takes a second to import.
            from coevo.models.writer_models.connection import check_address, key_of

            key_of(asked)
            check_address(asked)


def is_budgeted(config: RunConfig) -> bool:
    """Return True if the writer model has a budget."""
    asked = writer_model_config(config)
    return asked is not None and asked.budget is not None


def spent_before(
    lineage: Lineage, head: Manifest, own: QuestionExpense, scratch: Path, warn: Callable[[str], None]
) -> QuestionExpense:
    """Expense at a revision; after a rollback that before it, which takes back what was written, not what was paid.

    Changes by hand after the rollback, such as an import of entries, repeat its expense.

    Args:
        lineage: of the run.
        head: the revision.
        own: expense that it states.
        scratch: directory for temporary files.
        warn: reports that the expense before a rollback is no longer known.
    """
    played = head
    while played.parent is not None and not wrote(lineage, played):
        played = lineage.history.manifest(played.parent)
    if played.artifacts.get(FOLDER) in (None, head.artifacts.get(FOLDER)):
        return own  # the same, as at the start of a branch
    if played.revision not in lineage.history.retained():
        warn(
            f"revision {played.revision} was dropped, and what the writer model had cost with it: the budget forgets it"
        )
        return own
    scratch.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=scratch) as directory:
        return read_writing(lineage.artifacts.materialise(played.revision, FOLDER, Path(directory) / FOLDER)).spent


def wrote(lineage: Lineage, manifest: Manifest) -> bool:
    """Return True if a revision put questions to its writer model, unlike a rollback or a change by hand."""
    before = None if manifest.parent is None else lineage.history.manifest(manifest.parent).artifacts.get(FOLDER)
    return manifest.restored_from is None and manifest.artifacts.get(FOLDER) != before


def journal_after(head: Manifest | None, lineage: Lineage, path: Path) -> Journal:
    """Open the journal of the revision after the last one.

    Answers that arrived for a revision which a rollback or a change by hand made instead are paid, and those of the
    next one.
    """
    number = 0 if head is None else head.revision + 1
    return Journal(path, number, lambda each: each > number or wrote(lineage, lineage.history.manifest(each)))


@contextmanager
def open_writing(
    config: RunConfig, engine: Engine, directory: Path, journal: Journal, kept: KeptWriting, warn: Callable[[str], None]
) -> Iterator[Writing | None]:
    """The writing of a run; None for a writer that asks no model.

    Args:
        config: of the run.
        engine: generates with the run's policy.
        directory: for files of the writer model's own servers.
        journal: answers of the revision in the making.
        kept: what the last revision keeps.
        warn: reports that questions are not answered.

    Raises:
        CoevoError: the writer model cannot be opened, or an answer has tokens that the policy does not know.
    """
    asked = writer_model_config(config)
    if asked is None:
        yield None
        return
    with closing(writer_model_of(asked, engine, config.context, config.seed, directory, warn)) as writer_model:
        learns = config.update is not None and config.update.writer is not None
        check_tokens(kept, journal, engine.policy.model.config.vocab_size)
        yield Writing(writer_model, asked, journal, kept, warn, learns)


def check_tokens(kept: KeptWriting, journal: Journal, size: int) -> None:
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
