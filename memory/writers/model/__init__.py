"""Writers that ask a language model.

``transcript`` shows attempts, ``prompts`` asks, ``answers`` and ``objects`` read what comes back with the ``checks`` of
each text, ``lessons`` makes entries of it. The other modules are the writers. A model's answer is never trusted: each
item is checked by itself, and refused items are counted and kept.
"""
