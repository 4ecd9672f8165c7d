"""Writers that ask a language model.

``transcript`` shows attempts, ``prompts`` asks, ``answers`` reads what comes back, ``answer_lessons`` checks each text
and makes entries of it, and ``words`` are the names of the fields. ``contrast``, ``extremes``, ``skills``,
``reflection`` and ``editor`` are the writers. A model's answer is never trusted: each item is checked by itself, and
refused items are counted and kept.
"""
