"""A small world that answers the calls of AppWorld which its adapter makes: it has one app, and a counter of mails.

``APPWORLD_ROOT/data`` has the tasks, in AppWorld's files. Code is executed without any guard.
"""

import contextlib
import io
import json
import os
import traceback
from pathlib import Path
from types import SimpleNamespace


class _Supervisor:
    def __init__(self, world):
        self.world, self.completed, self.answer = world, False, None

    def complete_task(self, answer=None):
        self.completed, self.answer = True, answer


class _Mail:
    def __init__(self):
        self.sent = []

    def send(self, to):
        self.sent.append(to)
        return {"message": f"sent to {to}"}


class _Tracker:
    def __init__(self, requirements):
        self.failures = [{"requirement": text, "label": None, "trace": ""} for text, met in requirements if not met]
        self.num_tests = len(requirements)

    @property
    def pass_count(self):
        return self.num_tests - len(self.failures)

    @property
    def success(self):
        return not self.failures


class AppWorld:
    def __init__(self, task_id, experiment_name):
        specs = json.loads((Path(os.environ["APPWORLD_ROOT"]) / "data" / "tasks" / task_id / "specs.json").read_text())
        if specs.get("broken"):
            raise RuntimeError("the database is broken")
        supervisor = SimpleNamespace(**specs["supervisor"])
        self.task = SimpleNamespace(instruction=specs["instruction"], supervisor=supervisor)
        self._wanted, self._mail, self._supervisor = specs["to"], _Mail(), _Supervisor(self)
        self._names = {"apis": SimpleNamespace(mail=self._mail, supervisor=self._supervisor), "requester": None}

    def execute(self, code):
        told = io.StringIO()
        try:
            with contextlib.redirect_stdout(told):
                exec(compile(code, "<python-input>", "exec"), self._names)
        except Exception:  # noqa: BLE001
            return "Execution failed. Traceback:\n" + traceback.format_exc(limit=-1)
        return told.getvalue() or "Execution successful."

    def task_completed(self):
        return self._supervisor.completed

    def evaluate(self):
        sent = self._mail.sent
        return _Tracker(
            [
                ("the mail goes to the right person", self._wanted in sent),
                ("no other mail is sent", set(sent) <= {self._wanted}),
                ("the task is completed", self._supervisor.completed),
            ]
        )
