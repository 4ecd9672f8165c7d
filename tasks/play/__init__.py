"""Playing episodes: a batch of tasks, turn by turn, with entries of the bank in the prompt.

Read ``attempt`` (an attempt in progress), ``play`` (the turn loop) and ``pace`` (one loop, or one per episode) first,
then ``retrieve`` (entries for a prompt), ``slots`` and ``unfinished`` (episodes that continue after an update).
``clusters`` assigns observations to clusters, ``retrieval_metrics`` measures retrieval, ``endpoint`` and ``expert``
play without a policy, the latter by ``turns``: the turns of a single episode.
"""
