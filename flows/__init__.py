"""The loop, the other flows and the command line.

Read ``coevolve`` first: the loop. ``start_run`` is the one way to start it, with settings from ``configure``;
``sessions`` runs it on a schedule, ``studies`` runs many, and ``pipeline`` is the four stages of DVC.
``evaluation``, ``pending``, ``packages`` and ``endpoint`` work on its revisions, ``upkeep`` on the workspace;
``history``, ``report`` and ``watch`` read. ``start`` is the ``cli`` with its ``console``, ``api`` the same for Python.
``servers`` are those of Prefect and MLflow, ``sample`` is the finished run that the package includes, and ``scaffold``
writes packages of one's own. ``bank_server`` serves a bank that needs no run.
"""

import coevo.tasks  # noqa: F401  (switches telemetry off before a module here imports Prefect)
