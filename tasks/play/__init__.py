"""Playing episodes: a batch of tasks, turn by turn, with entries of the bank in the prompt.

Read ``play`` (an attempt in progress, and the turn loop) first, then ``retrieve`` (entries for a prompt),
``treatment_groups`` (who sees a candidate), ``vectorised_environments`` (episodes that continue after an update),
``episode_metrics`` (outcomes, and episodes that an error ended). ``discovery_at_k`` attempts tasks repeatedly.
``turns`` are those of a single episode.
"""
