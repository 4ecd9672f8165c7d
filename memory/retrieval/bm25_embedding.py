"""BM25 and embedding together, see ``coevo.memory.retrieval.hybrid``."""

from coevo.configs.bank.retrieval_config import Bm25EmbeddingConfig
from coevo.memory.retrieval import bm25, embedding
from coevo.memory.retrieval.hybrid import Hybrid


def scorer(config: Bm25EmbeddingConfig) -> Hybrid:
    """The two scorers with the settings of a configuration."""
    return Hybrid(bm25.scorer(config), embedding.scorer(config), config.balance)
