"""Studies: runs of several arms and seeds that confirm or reverse a finding.

Read ``study_runs`` first: the runs of a study and what must be so before they start. ``start_study`` leads to the flow
``ablate``, which plays them and writes the result to MLflow. ``outcome`` reads what they achieved, ``result`` compares
the arms, ``study_listing`` lists studies with their cost.
"""
