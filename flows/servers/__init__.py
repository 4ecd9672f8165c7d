"""Prefect's and MLflow's servers of a workspace, started and stopped here.

Read ``servers`` first, then ``daemon`` (a server that outlives its command), ``server`` (one process) and ``records``
(which processes were started). ``prefect_server`` and ``mlflow_server`` run Prefect and MLflow behind ``guard``, with
the ``secret`` and the browsers of ``visits``; ``prefect_pages`` and ``mlflow_pages`` link to them. ``watch`` and
``leash`` end what depends on a server; ``stale`` and ``crashes`` mark flow runs of dead processes.
"""
