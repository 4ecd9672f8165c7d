"""How entries are scored: one module a kind, named after the ``type`` of its configuration.

Each has a function ``scorer(config) -> Scorer``; ``memory.retrieval.base`` says what a scorer is.
"""
