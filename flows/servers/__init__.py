"""Prefect's and MLflow's servers of a workspace, started and stopped here.

Read ``servers`` first, then ``daemon`` (a server that outlives its command, and which processes were started) and
``server_process``. Both run behind ``guard``, with the ``server_secret`` and the browsers of ``visits``;
``prefect_server`` and ``mlflow_server`` are their programs. ``prefect_watch`` and ``leash`` end what depends on a
server; ``stale`` and ``end_state`` mark flow runs of dead processes.
"""
