"""Writers of candidate entries. ``coevo.memory.writers.writer`` lists the module of each ``type``."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from coevo.configs.bank.writer_model_config import AnyWriterModelConfig, PolicyWriterModelConfig
from coevo.configs.base import MAX_COUNT, Config
from coevo.configs.outside_part import OutsidePartConfig, PartChoice


def _rule(kind: str) -> str:
    """Current name of a rule; stored runs and recipes may have the earlier one, without ``quote-``."""
    return f"quote-{kind.removeprefix('quote-')}"


class WriterConfig(Config):
    """Settings of a writer.

    Attributes:
        scores: True if it gives the worth of a candidate.
        reflects: True if it reflects on each episode.
        edits: True if it proposes operations on entries.
    """

    scores: ClassVar[bool] = False
    reflects: ClassVar[bool] = False
    edits: ClassVar[bool] = False


class ModelWriterConfig(WriterConfig):
    """Settings of a writer that asks a language model."""

    model: AnyWriterModelConfig = PolicyWriterModelConfig()
    """Language model that writes."""
    question_tokens: int = Field(default=16_384, ge=256, le=MAX_COUNT)
    """Maximum tokens of a question, as the writer model counts them (at an endpoint an estimate): attempts and notes
    share them. A question is never longer than the model's context allows."""


class QuoteContrastConfig(WriterConfig):
    """A rule: contrastive pair, else success cluster, else failure cluster; it quotes feedback."""

    scores: ClassVar[bool] = True
    type: Annotated[Literal["quote-contrast", "contrast"], AfterValidator(_rule)] = "quote-contrast"
    """Kind of writer."""
    buffer: int = Field(default=64, ge=1, le=MAX_COUNT)
    """Most episodes a firing sees, contrastive pairs first."""
    candidates: int = Field(default=16, ge=1, le=10_000)
    """Most candidates of one firing."""


class ModelContrastConfig(ModelWriterConfig):
    """A model: lessons from contrastive pairs, else from successes, else from failures (CoEvo-RL section 3.4)."""

    scores: ClassVar[bool] = True
    type: Literal["model-contrast"]
    """Kind of writer."""
    buffer: int = Field(default=64, ge=1, le=MAX_COUNT)
    """Most episodes a firing sees, contrastive pairs first."""
    candidates: int = Field(default=16, ge=1, le=10_000)
    """Most candidates of one firing."""
    lessons: int = Field(default=2, ge=1, le=100)
    """Most lessons of one contrast."""
    notes: bool = True
    """Show the present bank, so that the model writes what it lacks."""


class QuoteEditorConfig(WriterConfig):
    """A rule: edit operations on the pools of the episodes' tasks (JERP Eq. 26)."""

    edits: ClassVar[bool] = True
    type: Annotated[Literal["quote-editor", "editor"], AfterValidator(_rule)]
    """Kind of writer."""
    operations: int = Field(default=32, ge=1, le=10_000)
    """Most operations on one pool and firing: corrections and votes first, new entries last."""


class ModelEditorConfig(ModelWriterConfig):
    """A model: edit operations on the pools of the episodes' tasks (JERP Eq. 26)."""

    edits: ClassVar[bool] = True
    type: Literal["model-editor"]
    """Kind of writer."""
    operations: int = Field(default=32, ge=1, le=10_000)
    """Most operations on one pool and firing."""
    trajectories: int | None = Field(default=None, ge=1, le=1000)
    """Most new episodes of a pool that the editor reads, failures first; null for all."""
    successes: int | None = Field(default=None, ge=0, le=1000)
    """Most earlier successes of a pool that it reads, the latest ones; null for all of ``bank.references``."""


class QuoteReflectionConfig(WriterConfig):
    """A rule: a reflection on every episode, with potential, prediction and lessons (RetroAgent section 3.1)."""

    reflects: ClassVar[bool] = True
    type: Annotated[Literal["quote-reflection", "reflection"], AfterValidator(_rule)]
    """Kind of writer."""
    induction: Literal["pairwise", "single"] = "pairwise"
    """``pairwise`` compares an episode with an earlier one of its pool that has the other outcome."""
    outcomes: Literal["all", "failures"] = "all"
    """Which episodes' lessons are written."""
    lessons: int = Field(default=4, ge=1, le=10_000)
    """Most lessons of one reflection, the first ones."""


class ModelReflectionConfig(ModelWriterConfig):
    """A model: a reflection on every episode, with potential, prediction and lessons (RetroAgent section 3.1)."""

    reflects: ClassVar[bool] = True
    type: Literal["model-reflection"]
    """Kind of writer."""
    induction: Literal["pairwise", "single"] = "pairwise"
    """``pairwise`` compares an episode with an earlier one of its pool that has the other outcome."""
    outcomes: Literal["all", "failures"] = "all"
    """Which episodes' lessons are written."""
    lessons: int = Field(default=4, ge=1, le=100)
    """Most lessons of one reflection, the first ones."""
    reveal_outcome: bool = True
    """True: the question gives the outcome of the episode (in-context variant). False: the model judges from the text
    alone, without the final feedback and without the reference (RL-trained variant)."""
    form: Literal["prose", "words"] = Field(default="prose", exclude_if=lambda form: form == "prose")
    """Form of question and answer; ``words`` is for the run's own policy of single words, about one attempt."""

    @model_validator(mode="after")
    def _alone(self) -> Self:
        if self.form == "words" and self.induction == "pairwise":
            raise ValueError("form=words shows one attempt: set bank.writer.induction=single")
        return self


class QuoteSkillsConfig(WriterConfig):
    """A rule: skills from the failures of kinds of tasks that go badly (as SkillRL); pools are kinds."""

    type: Annotated[Literal["quote-skills", "skills"], AfterValidator(_rule)]
    """Kind of writer."""
    below: float = Field(default=0.4, gt=0, le=1)
    """Training success of a kind under which skills are written for it."""
    skills: int = Field(default=3, ge=1, le=10_000)
    """Most skills of a kind and firing."""


class ModelSkillsConfig(ModelWriterConfig):
    """A model: skills from the failures of kinds of tasks that go badly (as SkillRL); pools are kinds."""

    type: Literal["model-skills"]
    """Kind of writer."""
    below: float = Field(default=0.4, gt=0, le=1)
    """Training success of a kind under which skills are written for it."""
    skills: int = Field(default=3, ge=1, le=100)
    """Most skills of a kind and firing."""
    failures: int = Field(default=5, ge=1, le=1000)
    """Most failures of a kind that the model reads, each of another task first."""


class QuoteExtremesConfig(WriterConfig):
    """A rule: strategies from the episodes that earned most, warnings from the worst (SLEA-RL section 3.4)."""

    scores: ClassVar[bool] = True
    type: Annotated[Literal["quote-extremes", "extremes"], AfterValidator(_rule)]
    """Kind of writer."""
    trajectories: int = Field(default=5, ge=1, le=10_000)
    """Most episodes looked at on either side of the median reward (K_traj)."""
    strategies: int = Field(default=10, ge=0, le=10_000)
    """Most strategies of one firing (K_strat)."""
    warnings: int = Field(default=5, ge=0, le=10_000)
    """Most warnings of one firing (K_warn)."""


class ModelExtremesConfig(ModelWriterConfig):
    """A model: strategies from the episodes that earned most, warnings from the worst (SLEA-RL section 3.4)."""

    scores: ClassVar[bool] = True
    type: Literal["model-extremes"]
    """Kind of writer."""
    trajectories: int = Field(default=5, ge=1, le=1000)
    """Most episodes looked at on either side of the median reward (K_traj)."""
    strategies: int = Field(default=10, ge=0, le=100)
    """Most strategies of one firing (K_strat)."""
    warnings: int = Field(default=5, ge=0, le=100)
    """Most warnings of one firing (K_warn)."""


class OutsideWriterConfig(OutsidePartConfig):
    """A writer from another package: a class derived from ``coevo.WriterPart``."""

    setting: ClassVar[str] = "bank.writer"
    group: ClassVar[str] = "coevo.writers"
    stated: ClassVar[Mapping[str, tuple[Any, ...]]] = {"scores": (bool,), "edits": (bool,)}
    model: AnyWriterModelConfig | None = None
    """Language model that the writer asks; null for a writer that asks none."""

    @property
    def scores(self) -> bool | None:
        """True if it gives the worth of a candidate; None as long as nobody has opened the part."""
        found: bool | None = self.states("scores")
        return found

    @property
    def reflects(self) -> bool | None:
        """True if its class has the method ``reflect``; None as long as nobody has opened the part."""
        return self.defines("reflect")

    @property
    def edits(self) -> bool | None:
        """True if it proposes operations on entries; None as long as nobody has opened the part."""
        found: bool | None = self.states("edits")
        return found


AnyWriterConfig = Annotated[
    QuoteContrastConfig
    | QuoteExtremesConfig
    | QuoteReflectionConfig
    | QuoteSkillsConfig
    | QuoteEditorConfig
    | ModelContrastConfig
    | ModelExtremesConfig
    | ModelReflectionConfig
    | ModelSkillsConfig
    | ModelEditorConfig
    | OutsideWriterConfig,
    PartChoice(),
]


def asked_model(writer: AnyWriterConfig) -> AnyWriterModelConfig | None:
    """Settings of the language model that a writer asks; None for one that asks none."""
    return writer.model if isinstance(writer, ModelWriterConfig | OutsideWriterConfig) else None
