"""The schema of a manifest from elsewhere.

A manifest decides which files are removed, fetched and written, so its names and hashes are checked before use. Fields
that older versions did not write have a default. A new field of the state belongs here, or runs with it cannot be
pushed or pulled.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from coevo.configs.base import NAME, named
from coevo.lineage.names import ARTIFACT, OBJECT, TABLE
from coevo.lineage.revision.manifest import Manifest
from coevo.records.inert import flaw
from coevo.records.metric_names import metric_name
from coevo.utilities.errors import CoevoError

LIMIT = 1 << 20
"""Maximum bytes of a manifest; one of a large recipe has about 15,000."""
MAX_LIST = 10_000
MAX_INTEGER = 2**53
"""Largest integer that is exact in every JSON implementation."""

MAX_WORD_CHARS = 300
"""Most characters of a text of one line."""


def _line_of_text(text: str) -> str:
    wrong = flaw(text)
    if wrong:
        raise ValueError(wrong)
    return text


Number = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Word = Annotated[str, StringConstraints(max_length=MAX_WORD_CHARS), AfterValidator(_line_of_text)]
"""Text of one line without characters that act on a terminal, on the order of the text, or are invisible."""
Name = Annotated[str, AfterValidator(named)]
StoredMetricName = Annotated[str, StringConstraints(max_length=NAME), AfterValidator(metric_name)]
Text = Annotated[str, StringConstraints(max_length=100_000)]
ArtifactName = Annotated[str, StringConstraints(pattern=f"^{ARTIFACT}$")]
TableName = Annotated[str, StringConstraints(pattern=f"^{TABLE}$")]
Content = Annotated[str, StringConstraints(pattern=f"^{OBJECT}$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z]{1,128}$")]
Outcomes = Annotated[str, StringConstraints(pattern=r"^[01-]*$")]
Metrics = dict[StoredMetricName, Finite]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)


class Approval(_Part):
    """A person's decision."""

    revision: Number
    proposal: Content
    approved: bool


class Import(_Part):
    """Entries added from a file."""

    file: Digest
    added: Number
    known: Number


class Retirement(_Part):
    """An entry that a person removed from the bank."""

    entry: Digest
    reason: Text


class ManifestState(_Part):
    """``state`` of a manifest, see ``coevo.lineage.revision.manifest``."""

    revision: Number
    iteration: Number
    parent: Number | None
    restored_from: Number | None
    config: dict[str, Any]
    config_hash: Digest
    code: Digest
    artifacts: dict[ArtifactName, Content]
    tables: dict[TableName, Digest]
    metrics: Metrics
    fired: Number = 0
    packages: dict[Name, Name] = {}
    modules: dict[Name, Digest] = {}
    weights: dict[Name, Digest] = {}
    panels: dict[Name, Digest] = {}
    outcomes: dict[Name, Outcomes] = {}
    accepted_change: Annotated[list[Text], Field(max_length=MAX_LIST)] = []
    until_next: Annotated[list[ArtifactName], Field(max_length=MAX_LIST)] = []
    waiting: bool = False
    approval: Approval | None = None
    imported: Import | None = None
    retired: Retirement | None = None


class Origin(_Part):
    """The revision that a branch began from."""

    run: Name
    revision: Number


class Observed(_Part):
    """``observed`` of a manifest."""

    timestamp: Number
    tables: dict[TableName, Number]
    run: Word = ""
    metrics: Metrics = {}
    decided_by: Word | None = None
    branched_from: Origin | None = None


class _Fields(_Part):
    state: ManifestState
    observed: Observed


def check(manifest: Manifest) -> None:
    """Check that a manifest has the fields that coevo writes, each of its type.

    Raises:
        CoevoError: a field is missing, unknown or invalid; names it.
    """
    try:
        _Fields.model_validate({"state": dict(manifest.state), "observed": dict(manifest.observed)})
    except (ValidationError, RecursionError, TypeError, ValueError) as error:
        raise CoevoError(_line(error)) from None
    lacking = sorted(manifest.tables.keys() - manifest.versions.keys())
    if lacking:
        raise CoevoError(f"observed.tables names no version of {lacking[0]}")


def _line(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return f"it has values that are not fields of a manifest ({type(error).__name__})"
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part)[:60] for part in first["loc"] if part != "[key]")
    return f"{field!r}: {first['msg']}"
