"""The loop, the other flows and the command line.

Read ``coevolve`` first: the loop. ``start_run`` is the one way to start it (``cli``, ``console``, ``api``);
``sessions`` runs it on a schedule. ``evaluate``, ``pending``, ``approve`` and ``packages`` work on its revisions,
``upkeep`` on the workspace; ``history`` and ``report`` read. ``api`` is the same for Python.
"""

import coevo.tasks  # noqa: F401  (switches telemetry off before a module here imports Prefect)
