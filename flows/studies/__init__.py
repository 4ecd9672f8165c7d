"""Studies: runs of several arms and seeds that confirm or reverse a finding.

Read ``study_runs`` first: the runs of a study and what must be so before they start. ``ablate`` is the flow that plays
them and writes the result to MLflow. ``outcome`` reads what they achieved, ``result`` compares the arms.
"""
