"""Tasks after LifelongAgentBench: SQL on a database (an extra) and shell scripts in a sandbox.

Read ``lifelong_db`` with ``sql_database`` (one statement after the other, within limits), ``convention_tasks`` and
``query_tasks`` (tasks drawn from keys); then ``lifelong_os`` with ``shell_tasks``, ``sandbox`` and ``sandbox_init``.
``published_tasks`` reads the files of the original.
"""
