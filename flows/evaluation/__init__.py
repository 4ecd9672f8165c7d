"""Evaluation and comparison of policies outside a run's own evaluations.

Read ``panel_evaluation`` first: what is requested, and its result. ``evaluate_revision`` plays a panel with a revision.
``evaluate_samples`` plays each task several times, with any of the ``evaluation_targets``, of which ``served_worker``
asks a served agent, and ``sample_results`` keeps what was played. ``comparison`` compares runs, of which
``comparison_side`` is one.
"""
