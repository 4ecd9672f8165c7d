"""Retrieval: which entries of the bank reach a prompt, when, and in which rollouts.

The ``type`` of a retrieval names the module of ``memory.retrieval`` that scores.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from configs.base import FACTOR, MANY, Config
from configs.trust import Trusted

EntryField = Literal["strategy", "condition", "example", "keywords"]
Share = Annotated[float, Field(ge=0, le=1)]


class FieldWeights(Config):
    """Weight of each indexed field of an entry in structured TF-IDF and BM25."""

    strategy: float = Field(default=1.0, ge=0, le=FACTOR)
    """Weight of the lesson itself."""
    condition: float = Field(default=1.0, ge=0, le=FACTOR)
    """Weight of the applicability condition."""
    example: float = Field(default=0.5, ge=0, le=FACTOR)
    """Weight of the example action."""
    keywords: float = Field(default=2.0, ge=0, le=FACTOR)
    """Weight of the retrieval keywords."""

    @model_validator(mode="after")
    def _some_weight(self) -> Self:
        if not any(weight > 0 for _, weight in self):
            raise ValueError("all fields have weight 0, so nothing would be found: give one of them more")
        return self


class EncoderConfig(Config):
    """What turns texts into vectors."""

    model: Annotated[str, Trusted("loads the model there")] = "all-MiniLM-L6-v2"
    """``all-MiniLM-L6-v2`` of the extra ``embedding``, or the directory of a sentence-transformers model."""
    fields: tuple[EntryField, ...] = Field(default=("condition", "strategy"), min_length=1, max_length=4)
    """Fields of an entry that are embedded, as one text."""


class TfidfSimilarity(Config):
    """Mean cosine of TF-IDF vectors over the fields, between 0 and 1."""

    type: Literal["tfidf"]
    """How similarity is measured."""
    weights: FieldWeights = FieldWeights()
    """Weights of the entry's fields in the mean."""


class EmbeddingSimilarity(Config):
    """Cosine of embeddings."""

    type: Literal["embedding"] = "embedding"
    """How similarity is measured."""
    encoder: EncoderConfig = EncoderConfig()
    """What embeds."""


LIKE_TASKS = EmbeddingSimilarity(encoder=EncoderConfig(fields=("condition",)))
"""Likeness of the task to those that an entry applies to (RetroAgent Eq. 7)."""

SimilarityConfig = Annotated[TfidfSimilarity | EmbeddingSimilarity, Field(discriminator="type")]


class RetrievalConfig(Config):
    """What every kind of retrieval has: when the bank is asked, and which prompts its answers reach."""

    k: int = Field(default=8, ge=0, le=1000)
    """Entries retrieved."""
    scoped: bool = True
    """Search only entries whose scope is the task's, and those without one."""
    per: Literal["task", "step", "both"] = "task"
    """Ask once with the instruction, at every turn with the observation, or both."""
    warmup: int = Field(default=0, ge=0, le=MANY)
    """Iterations that are played without the bank (W of SLEA-RL)."""
    min_entries: int = Field(default=0, ge=0, le=MANY)
    """The bank is shown only while it holds more active entries than this (C_min of SLEA-RL)."""
    share: Share = 1.0
    """Share of each training group that sees the bank; its other rollouts get the bare prompt (RetroAgent: 0.5)."""


class TopKConfig(RetrievalConfig):
    """The best k entries."""

    general: int | None = Field(default=None, ge=0, le=1000)
    """Entries without a scope are retrieved apart, so many of them; null lets them compete for the k."""
    step_query: Literal["observation", "instruction+observation"] = "observation"
    """What is asked at a turn."""


class TfidfConfig(TopKConfig):
    """Structured TF-IDF (CoEvo-RL Eq. 2)."""

    type: Literal["tfidf"] = "tfidf"
    """How entries are scored."""
    weights: FieldWeights = FieldWeights()
    """Weights of the entry's fields."""


class Bm25Config(TopKConfig):
    """Okapi BM25 over the same fields."""

    type: Literal["bm25"]
    """How entries are scored."""
    weights: FieldWeights = FieldWeights()
    """Weights of the entry's fields."""
    k1: float = Field(default=1.5, ge=0, le=FACTOR)
    """How fast repetitions of a word saturate."""
    b: Share = 0.75
    """How much a field's length counts against it."""


class EmbeddingConfig(TopKConfig):
    """Cosine of sentence embeddings."""

    type: Literal["embedding"]
    """How entries are scored."""
    encoder: EncoderConfig = EncoderConfig()
    """What embeds."""
    threshold: float = Field(default=0.0, ge=-1, le=1)
    """Entries less similar than this are not returned."""


class TfidfEmbeddingConfig(TopKConfig):
    """Weighted sum of TF-IDF and embedding scores."""

    type: Literal["tfidf+embedding"]
    """How entries are scored."""
    weights: FieldWeights = FieldWeights()
    """Weights of the entry's fields."""
    encoder: EncoderConfig = EncoderConfig()
    """What embeds."""
    balance: Share = 0.5
    """Weight of the embedding; the rest is TF-IDF's. Both are divided by the best score of the query."""


class Bm25EmbeddingConfig(TopKConfig):
    """Weighted sum of BM25 and embedding scores."""

    type: Literal["bm25+embedding"]
    """How entries are scored."""
    weights: FieldWeights = FieldWeights()
    """Weights of the entry's fields."""
    k1: float = Field(default=1.5, ge=0, le=FACTOR)
    """How fast repetitions of a word saturate."""
    b: Share = 0.75
    """How much a field's length counts against it."""
    encoder: EncoderConfig = EncoderConfig()
    """What embeds."""
    balance: Share = 0.5
    """Weight of the embedding; the rest is BM25's. Both are divided by the best score of the query."""


class UtilityConfig(TopKConfig):
    """The entries of most utility, whatever is asked (JERP Eq. 13)."""

    type: Literal["utility"]
    """How entries are scored."""


class SimUtilUcbConfig(TopKConfig):
    """Similarity, utility and an exploration bonus (SimUtil-UCB of RetroAgent)."""

    type: Literal["simutil-ucb"]
    """How entries are scored."""
    k: int = Field(default=3, ge=0, le=1000)
    """Entries retrieved."""
    similarity: SimilarityConfig = LIKE_TASKS
    """How relevance is measured."""
    threshold: float = Field(default=0.4, ge=-1, le=1)
    """Entries less similar than this are not returned."""
    alpha: Share = 0.7
    """Weight of relevance; the rest is that of utility and bonus."""
    kappa: float = Field(default=1.0, ge=0, le=FACTOR)
    """Weight of the exploration bonus sqrt(ln N / n)."""


class TwoPhaseConfig(TopKConfig):
    """Candidates by similarity, choice by similarity and utility (MemRL)."""

    type: Literal["two-phase"]
    """How entries are scored."""
    similarity: SimilarityConfig = LIKE_TASKS
    """How candidates are found."""
    threshold: float = Field(default=0.4, ge=-1, le=1)
    """Only entries more similar than this are candidates."""
    balance: Share = 0.5
    """Weight of the z-score of utility; the rest is that of similarity."""
    clip: float = Field(default=3.0, gt=0, le=FACTOR)
    """Bound of either z-score."""
    epsilon: Share = 0.01
    """Share of questions that are answered with candidates at random."""


class ClusterRetrievalConfig(RetrievalConfig):
    """The pools of the observation's cluster, else the whole library (SLEA-RL Eq. 1 and 2); needs ``clusters``."""

    type: Literal["cluster"]
    """How entries are scored."""
    per: Literal["step", "both"] = "step"
    """Ask at every turn with the observation; ``both`` asks with the instruction as well."""
    k: int = Field(default=2, ge=0, le=1000)
    """Strategies retrieved (k+)."""
    warnings: int = Field(default=1, ge=0, le=1000)
    """Warnings retrieved besides (k-)."""
    threshold: Share = 0.85
    """Where a cluster has no entries, those of the library that are more like the observation than this."""


AnyRetrievalConfig = Annotated[
    TfidfConfig
    | Bm25Config
    | EmbeddingConfig
    | TfidfEmbeddingConfig
    | Bm25EmbeddingConfig
    | UtilityConfig
    | SimUtilUcbConfig
    | TwoPhaseConfig
    | ClusterRetrievalConfig,
    Field(discriminator="type"),
]


class ClustersConfig(Config):
    """Observation clusters (SLEA-RL section 3.2): what step advantages and cluster-indexed retrieval share."""

    delta: float = Field(default=0.85, gt=0, le=1)
    """Least similarity of an observation and its cluster's prototype; 1 matches equal token sequences only."""
