"""TF-IDF and embedding together, see ``memory.retrieval.hybrid``."""

from configs.retrieval import TfidfEmbeddingConfig
from memory.retrieval import embedding, tfidf
from memory.retrieval.hybrid import Hybrid


def scorer(config: TfidfEmbeddingConfig) -> Hybrid:
    """The two scorers with the settings of a configuration."""
    return Hybrid(tfidf.scorer(config), embedding.scorer(config), config.balance)
