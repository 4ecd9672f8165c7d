"""Reading runs: their revisions, their cost, and comparisons.

Read ``reference`` first (``RUN@N``, and a run at a revision), then ``history``. ``standing`` and ``listing`` list the
runs of a workspace. ``evaluations``, ``cost`` and ``comparison`` compare runs; ``frames`` and ``verdicts`` are tables.
"""
