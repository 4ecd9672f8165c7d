"""The steps of an iteration; a step is a Prefect task unless it takes milliseconds.

In the order of the loop (CoEvo-RL Algorithm 1): ``policy_steps`` (sample, rollout, shape, advantage, update),
``bank_steps`` (update_statistics, weigh, write, judge, admit), ``retire``. ``evaluate`` measures a revision, and what
its policy has internalised. The gate of what a step uses stands with it: a batch that fails is quarantined and stops
the run. What two steps share stands in ``coevo.tasks.iteration``.
"""
