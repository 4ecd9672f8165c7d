"""The parts of a flow: plain functions, some of them Prefect tasks.

Rooms in the order of a run: ``preflight``, ``run`` (open and assemble), ``steps`` (one iteration) with ``iteration``
(what they share), ``play`` and ``gates``, ``commit``, ``publish``; then ``checks`` and ``package``. ``session`` is an
open run, ``stage`` how a step becomes a Prefect task. ``bank_alone`` is a bank without a run.

Importing it switches telemetry off, since some of these modules import a library that sends some on import.
"""

from coevo.tasks.telemetry import switch_off

switch_off()
