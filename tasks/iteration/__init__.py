"""Parts of an iteration that several steps share, below them.

``batch`` is an iteration's tasks and episodes, ``ahead`` plays the next one beside an update. ``trials`` says which
groups try a candidate, ``replay`` plays with and without one. ``held_out`` are panels and the limits of training
episodes; ``reflect`` asks the writer about episodes, and ``retrieval_quality`` measures a bank.
"""
