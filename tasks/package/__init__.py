"""Packages: the policy, the bank and the settings of one revision in plain files, and their agent.

Read ``package`` first, then ``agent`` (answers one turn), ``signature`` and ``pyfunc`` (the agent as a model of
MLflow), ``model_registry`` (versions of a registered model) and ``champion`` (which version serves).
"""
