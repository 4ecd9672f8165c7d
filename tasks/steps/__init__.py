"""The steps of an iteration, one module per step; a step is a Prefect task unless it takes milliseconds.

In the order of the loop (CoEvo-RL Algorithm 1): ``rollout`` (sample, play), ``gate``, ``advantage`` (with the
rewards), ``update``, ``bank_steps`` (credit, write, admit), ``judge`` (weigh trials, replay), ``retire``. ``evaluate``
and ``internalize`` measure a revision. What two steps share stands in ``coevo.tasks.iteration``.
"""
