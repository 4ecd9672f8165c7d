"""Retrieval: selection of bank entries for a prompt, its times, and the rollouts that use it.

``coevo.memory.retrieval.scorer`` lists the module that scores for each ``type``.
"""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from coevo.configs.base import MAX_COUNT, MAX_FACTOR, Config, FromAnywhere
from coevo.configs.outside_part import OutsidePartConfig, PartChoice
from coevo.configs.trust_settings import Trusted

EntryField = Literal["strategy", "condition", "example", "keywords"]
Proportion = Annotated[float, Field(ge=0, le=1)]


class FieldWeights(Config):
    """Weight of each indexed field of an entry in structured TF-IDF and BM25."""

    strategy: float = Field(default=1.0, ge=0, le=MAX_FACTOR)
    """Weight of the lesson itself."""
    condition: float = Field(default=1.0, ge=0, le=MAX_FACTOR)
    """Weight of the applicability condition."""
    example: float = Field(default=0.5, ge=0, le=MAX_FACTOR)
    """Weight of the example action."""
    keywords: float = Field(default=2.0, ge=0, le=MAX_FACTOR)
    """Weight of the retrieval keywords."""

    @model_validator(mode="after")
    def _some_weight(self) -> Self:
        if not any(weight > 0 for _, weight in self):
            raise ValueError("all fields have weight 0, so nothing would be found: give one of them a weight above 0")
        return self


class EncoderConfig(Config):
    """Model that turns texts into vectors."""

    model: Annotated[str, Trusted("loads the model there"), FromAnywhere] = "all-MiniLM-L6-v2"
    """``all-MiniLM-L6-v2`` of the extra ``embedding``, or the directory of a sentence-transformers model."""
    fields: tuple[EntryField, ...] = Field(default=("condition", "strategy"), min_length=1, max_length=4)
    """Fields of an entry that are embedded, joined into one text."""


class TfidfSimilarity(Config):
    """Mean cosine of TF-IDF vectors over the fields, between 0 and 1."""

    type: Literal["tfidf"]
    """Name of the similarity."""
    weights: FieldWeights = FieldWeights()
    """Weights of the entry's fields in the mean."""


class EmbeddingSimilarity(Config):
    """Cosine of embeddings."""

    type: Literal["embedding"] = "embedding"
    """Name of the similarity."""
    encoder: EncoderConfig = EncoderConfig()
    """Embedding model."""


LIKE_TASKS = EmbeddingSimilarity(encoder=EncoderConfig(fields=("condition",)))
"""Similarity of the task to the tasks that an entry applies to (RetroAgent Eq. 7)."""

SimilarityConfig = Annotated[TfidfSimilarity | EmbeddingSimilarity, Field(discriminator="type")]


class RetrievalConfig(Config):
    """Settings common to every retrieval: times of queries, and the prompts that show the results."""

    k: int = Field(default=8, ge=0, le=1000)
    """Number of entries retrieved."""
    scoped: bool = True
    """Search only entries whose scope equals the task's, and entries without a scope."""
    per: Literal["task", "step", "both"] = "task"
    """Query once with the instruction (``task``), at every turn with the observation (``step``), or both."""
    warmup: int = Field(default=0, ge=0, le=MAX_COUNT)
    """Iterations that are played without the bank (W of SLEA-RL)."""
    min_entries: int = Field(default=0, ge=0, le=MAX_COUNT)
    """Number of active entries that the bank must exceed before prompts show it (C_min of SLEA-RL)."""
    share: Proportion = 1.0
    """Share of each training group that sees the bank; the other rollouts get the bare prompt (RetroAgent: 0.5)."""


class TopKConfig(RetrievalConfig):
    """The best k entries."""

    general: int | None = Field(default=None, ge=0, le=1000)
    """Number of entries without a scope, retrieved separately; null lets them compete for the k."""
    step_query: Literal["observation", "instruction+observation"] = "observation"
    """Text of the query at a turn."""


class TfidfConfig(TopKConfig):
    """Structured TF-IDF (CoEvo-RL Eq. 2)."""

    type: Literal["tfidf"] = "tfidf"
    """Name of the retrieval."""
    weights: FieldWeights = FieldWeights()
    """Weights of the entry's fields."""


class Bm25Config(TopKConfig):
    """Okapi BM25 over the same fields."""

    type: Literal["bm25"]
    """Name of the retrieval."""
    weights: FieldWeights = FieldWeights()
    """Weights of the entry's fields."""
    k1: float = Field(default=1.5, ge=0, le=MAX_FACTOR)
    """Saturation of repeated words."""
    b: Proportion = 0.75
    """Penalty for long fields."""


class EmbeddingConfig(TopKConfig):
    """Cosine of sentence embeddings."""

    type: Literal["embedding"]
    """Name of the retrieval."""
    encoder: EncoderConfig = EncoderConfig()
    """Embedding model."""
    threshold: float = Field(default=0.0, ge=-1, le=1)
    """Minimum similarity of a retrieved entry."""


class TfidfEmbeddingConfig(TopKConfig):
    """Weighted sum of TF-IDF and embedding scores."""

    type: Literal["tfidf+embedding"]
    """Name of the retrieval."""
    weights: FieldWeights = FieldWeights()
    """Weights of the entry's fields."""
    encoder: EncoderConfig = EncoderConfig()
    """Embedding model."""
    balance: Proportion = 0.5
    """Weight of the embedding score; TF-IDF has the rest. Each is divided by the query's best score."""


class Bm25EmbeddingConfig(TopKConfig):
    """Weighted sum of BM25 and embedding scores."""

    type: Literal["bm25+embedding"]
    """Name of the retrieval."""
    weights: FieldWeights = FieldWeights()
    """Weights of the entry's fields."""
    k1: float = Field(default=1.5, ge=0, le=MAX_FACTOR)
    """Saturation of repeated words."""
    b: Proportion = 0.75
    """Penalty for long fields."""
    encoder: EncoderConfig = EncoderConfig()
    """Embedding model."""
    balance: Proportion = 0.5
    """Weight of the embedding score; BM25 has the rest. Each is divided by the query's best score."""


class UtilityConfig(TopKConfig):
    """Entries with the highest utility, for any query (JERP Eq. 13)."""

    type: Literal["utility"]
    """Name of the retrieval."""


class SimUtilUcbConfig(TopKConfig):
    """Similarity, utility and an exploration bonus (SimUtil-UCB of RetroAgent)."""

    type: Literal["simutil-ucb"]
    """Name of the retrieval."""
    k: int = Field(default=3, ge=0, le=1000)
    """Number of entries retrieved."""
    similarity: SimilarityConfig = LIKE_TASKS
    """Measure of relevance."""
    threshold: float = Field(default=0.4, ge=-1, le=1)
    """Minimum similarity of a retrieved entry."""
    alpha: Proportion = 0.7
    """Weight of relevance; utility and bonus have the rest."""
    kappa: float = Field(default=1.0, ge=0, le=MAX_FACTOR)
    """Weight of the exploration bonus sqrt(ln N / n)."""


class TwoPhaseConfig(TopKConfig):
    """Two phases: candidates by similarity, then choice by similarity and utility (MemRL)."""

    type: Literal["two-phase"]
    """Name of the retrieval."""
    similarity: SimilarityConfig = LIKE_TASKS
    """Measure that finds candidates."""
    threshold: float = Field(default=0.4, ge=-1, le=1)
    """Similarity that a candidate must exceed."""
    balance: Proportion = 0.5
    """Weight of the z-score of utility; similarity has the rest."""
    clip: float = Field(default=3.0, gt=0, le=MAX_FACTOR)
    """Bound of both z-scores."""
    epsilon: Proportion = 0.01
    """Share of queries that are answered with random candidates."""


class ClusterRetrievalConfig(RetrievalConfig):
    """The pools of the observation's cluster, else the whole library (SLEA-RL Eq. 1 and 2); needs ``clusters``."""

    type: Literal["cluster"]
    """Name of the retrieval."""
    per: Literal["step"] = "step"
    """Query at every turn with the observation: clusters are of observations, an instruction is in none."""
    k: int = Field(default=2, ge=0, le=1000)
    """Number of strategies retrieved (k+)."""
    warnings: int = Field(default=1, ge=0, le=1000)
    """Number of warnings retrieved in addition (k-)."""
    threshold: Proportion = 0.85
    """For a cluster without entries: similarity to the observation that entries of the whole library must exceed."""


class OutsideRetrievalConfig(TopKConfig, OutsidePartConfig):
    """A retrieval from another package: a class derived from ``coevo.RetrievalPart``. Times and numbers stay here."""

    setting: ClassVar[str] = "bank.retrieval"
    group: ClassVar[str] = "coevo.retrieval"


AnyRetrievalConfig = Annotated[
    TfidfConfig
    | Bm25Config
    | EmbeddingConfig
    | TfidfEmbeddingConfig
    | Bm25EmbeddingConfig
    | UtilityConfig
    | SimUtilUcbConfig
    | TwoPhaseConfig
    | ClusterRetrievalConfig
    | OutsideRetrievalConfig,
    PartChoice(),
]


class ClustersConfig(Config):
    """Observation clusters (SLEA-RL section 3.2), shared by step advantages and cluster-indexed retrieval."""

    delta: float = Field(default=0.85, gt=0, le=1)
    """Minimum similarity of an observation to its cluster's prototype; 1 matches equal token sequences only."""
