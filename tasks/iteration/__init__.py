"""Parts of an iteration that several steps share, below them.

``batch`` samples the training tasks of an iteration, selects the groups that test a candidate, and runs the rollouts.
``prefetch`` runs the next rollout while the trainer updates the policy.
``paired_replay`` runs the same tasks with and without a candidate. ``held_out`` has the evaluation sets and the limits
of training episodes. ``reflect`` asks the writer model about episodes. ``retrieval_quality`` computes the metrics of
retrieval.
"""
