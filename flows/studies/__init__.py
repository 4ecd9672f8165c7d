"""Studies: runs of several arms and seeds that confirm or reverse a finding (``coevo ablate``).

Read ``plan`` first: the runs of a study and what must be so before they start. ``start`` leads to the flow ``ablate``,
which plays them,
``outcome`` reads what they achieved, ``result`` compares the arms, ``publish`` writes the result to MLflow. ``listing``
lists studies with their cost.
"""
