"""Retrieval: how entries are scored. One module per kind, listed in ``SCORERS`` of ``base``.

Each has a function ``scorer(config) -> Scorer``; read ``base`` first, then ``index``. TF-IDF and BM25 count words in
``lexicon``, list the entries of each word in ``segment``, add up in ``postings`` and skip common words in ``maxscore``.
"""
