"""Reading runs: their revisions and their cost.

Read ``revision_reference`` first (``RUN@N``, and a run at a revision), then ``history``. ``run_summaries`` lists the
runs of a workspace. ``expenses`` is the cost by part; ``verdicts`` are the measured gains of entries.
"""
