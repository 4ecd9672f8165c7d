"""Parts of an iteration that several steps share, below them.

``batch`` draws the tasks of an iteration and plays their episodes. ``ahead`` plays the next batch while the trainer
updates the policy. ``trial_groups`` chooses the groups that try a candidate, and ``paired_replay`` plays tasks with
and without one. ``held_out`` has the evaluation panels and the limits of training episodes. ``reflect`` asks the writer
about episodes, and ``retrieval_quality`` measures how well the bank is searched.
"""
