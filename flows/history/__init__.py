"""Reading runs: their revisions, their cost, and comparisons.

Read ``revision_reference`` first (``RUN@N``, and a run at a revision), then ``history``. ``run_summaries`` lists the
runs of a workspace. ``evaluations``, ``expenses`` and ``comparison`` compare runs; ``verdicts`` are the measured
gains of entries.
"""
