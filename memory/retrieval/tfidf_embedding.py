"""TF-IDF and embedding together, see ``coevo.memory.retrieval.hybrid``."""

from coevo.configs.bank.retrieval_config import TfidfEmbeddingConfig
from coevo.memory.retrieval import embedding, tfidf
from coevo.memory.retrieval.hybrid import Hybrid


def scorer(config: TfidfEmbeddingConfig) -> Hybrid:
    """The two scorers with the settings of a configuration."""
    return Hybrid(tfidf.scorer(config), embedding.scorer(config), config.balance)
