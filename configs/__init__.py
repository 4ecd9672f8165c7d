"""Settings: the schema, the shipped YAML, and the one place that merges and validates it.

Read ``run_config`` first, then ``sections`` (of a run) with the schema of each: ``env``, ``policy_config``,
``context_config``, ``rollout``, ``bank``, ``update``, ``schedule_config``, ``placement_config``; all build on ``base``.
``compositions`` refuses parts that do not go together and names settings without effect, and ``load`` reads
recipes. ``outside_part`` names parts of other packages. ``study_config`` is the schema of a study, ``trust_settings``
that of confirmed settings; ``proxies`` and ``threads`` are variables of the process's environment. ``methods``,
``recipes`` and ``studies`` hold the shipped YAML, with that of ``envs`` and ``models``.
"""
