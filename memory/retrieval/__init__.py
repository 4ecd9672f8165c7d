"""Retrieval: how entries are scored. One module per kind, listed in ``scorer``, which is read first, then ``index``.

``tfidf`` and ``bm25`` count words in ``lexicon``, list the entries of each word in ``segment``, and add up in
``postings``, which skips common words. ``embedding`` compares vectors of an ``encoder``; ``hybrid`` adds two scorers.
``utility``, ``simutil_ucb``, ``two_phase`` and ``cluster`` use what entries were worth. ``quality`` measures a
retriever.
"""
