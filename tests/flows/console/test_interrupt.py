"""Ctrl-C is answered at once, is never lost, and ends a run so that it can be resumed to the same states."""

import signal
import statistics
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import psutil
import pytest
from support.families import command_of
from support.runs import ROOT, RUN, coevo, revisions, states
from support.soak import mostly_soak

from coevo.flows.console.interrupt import COMMITTING, LINE

AT_ONCE = 20.0
"""Seconds until the line stands there, on a machine that does much else; what is interrupted would take far longer."""
PROGRAM = """
import ctypes, os, sys, threading, time
from coevo.flows.console.interrupt import at_once, heeded
{body}
with heeded():
    print("up", flush=True)
    work()
    print("went on", flush=True)
"""
SWALLOWED = """
def work():
    until = time.monotonic() + 300
    while time.monotonic() < until:
        try:
            time.sleep(0.05)
        except BaseException:
            pass
"""
KEPT_AND_SWALLOWED = """
kept = []
def work():
    try:
        time.sleep(600)
    except BaseException as error:
        kept.append(error)
    time.sleep(600)
"""
IN_DEL = """
class Slow:
    def __del__(self):
        time.sleep(0.5)
def work():
    for _ in range(600):
        Slow()
"""
IN_A_CALLBACK = """
slow = ctypes.CFUNCTYPE(None)(lambda: time.sleep(0.5))
def work():
    for _ in range(600):
        slow()
"""
IN_A_THREAD = """
def work():
    thread = threading.Thread(target=time.sleep, args=(600,), daemon=True)
    thread.start()
    thread.join()
"""
AS_ANOTHER_ERROR = """
def work():
    try:
        time.sleep(600)
    except BaseException as error:
        raise RuntimeError("it broke") from error
"""
LOGGED = """
import logging
class Field:
    def __set_name__(self, *_):  # Python 3.11 makes a RuntimeError of what is raised here
        time.sleep(600)
def work():
    try:
        type("Settings", (), {"field": Field()})
    except Exception:
        logging.getLogger("prefect.plugins").exception("Failed to initialize plugins")
    time.sleep(600)
"""
IN_C = """
import hashlib
def work():
    hashlib.pbkdf2_hmac("sha256", b"", b"", 3 * 10**6)
"""
COMMITS = """
from coevo.flows.console.interrupt import committing
def work():
    with committing():
        print("within", flush=True)
        time.sleep(600)
"""
STUBBORN = """
def work():
    with at_once(lambda: print("ended", flush=True)):
        try:
            time.sleep(600)
        finally:
            time.sleep(600)
"""
IN_C_FOR_LONG = """
import hashlib
def work():
    with at_once(lambda: print("ended", flush=True)):
        hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
"""


class Interrupted:
    """A process that is interrupted, and what it says when."""

    def __init__(self, command, **options):
        # A shell's background jobs ignore Ctrl-C, and so does what they start, unless they heed it at that moment.
        ours = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )
        signal.signal(signal.SIGINT, ours)
        self.out, self.err, self.answered = [], [], None
        pipes = ((self.process.stdout, self.out), (self.process.stderr, self.err))
        self.readers = [threading.Thread(target=self._read, args=pipe, daemon=True) for pipe in pipes]
        for reader in self.readers:
            reader.start()

    def _read(self, pipe, lines):
        for line in pipe:
            if LINE in line or COMMITTING in line:
                self.answered = time.monotonic()
            lines.append(line.rstrip("\n"))

    def wait_for(self, what):
        give_up = time.monotonic() + 240
        while not what():
            assert self.process.poll() is None, self.err
            assert time.monotonic() < give_up, (self.out, self.err)
            time.sleep(0.02)

    def interrupt(self, number=signal.SIGINT):
        """Send the signal; seconds until the answer."""
        sent = time.monotonic()
        self.process.send_signal(number)
        while self.answered is None and time.monotonic() < sent + 60:
            time.sleep(0.01)
        assert self.answered is not None, self.err
        return self.answered - sent

    def end(self, seconds=120):
        code = self.process.wait(seconds)
        for reader in self.readers:
            reader.join(60)
        return code


@contextmanager
def interrupted(*command):
    one = Interrupted([sys.executable, *command])
    try:
        yield one
    finally:
        one.process.kill()
        one.process.wait()


def program(body):
    return interrupted("-c", PROGRAM.format(body=body))


@pytest.mark.parametrize(
    "body",
    [SWALLOWED, KEPT_AND_SWALLOWED, IN_DEL, IN_A_CALLBACK, IN_A_THREAD, AS_ANOTHER_ERROR, LOGGED, IN_C],
    ids=["swallowed", "kept", "del", "callback", "thread", "another-error", "logged", "c"],
)
def test_it_is_answered_at_once_and_never_lost(body):
    with program(body) as it:
        it.wait_for(lambda: it.out)
        assert it.interrupt() < AT_ONCE
        assert it.end(60) == 130, it.err
        assert it.out == ["up"]
        assert it.err.count(LINE) == 1
        assert "Traceback" not in "".join(it.err)


def test_only_what_commits_revisions_speaks_of_them():
    with program(COMMITS) as it:
        it.wait_for(lambda: "within" in it.out)
        it.process.send_signal(signal.SIGTERM)
        assert it.end(60) == 143
        assert it.err == [COMMITTING]


@pytest.mark.parametrize("body", [STUBBORN, IN_C_FOR_LONG], ids=["finally", "c"])
def test_the_second_one_ends_it_now(body):
    with program(body) as it:
        it.wait_for(lambda: it.out)
        assert it.interrupt() < AT_ONCE
        time.sleep(0.4)
        assert it.process.poll() is None
        it.process.send_signal(signal.SIGINT)
        assert it.end(60) == 130
        assert it.out == ["up", "ended"]


def test_the_system_s_request_is_heeded_likewise():
    with program(IN_A_THREAD) as it:
        it.wait_for(lambda: it.out)
        assert it.interrupt(signal.SIGTERM) < AT_ONCE
        assert it.end(60) == 143


def test_it_is_heeded_while_the_command_is_imported():
    code = (
        "import builtins, time; real = builtins.__import__\n"
        "def slow(name, *rest):\n"
        "    if name == 'typer': print('up', flush=True); time.sleep(300)\n"
        "    return real(name, *rest)\n"
        "builtins.__import__ = slow\n"
        "from coevo.flows.start import main; main()"
    )
    with interrupted("-c", code) as it:
        it.wait_for(lambda: it.out)
        assert it.interrupt() < AT_ONCE
        assert it.end(60) == 130
        assert it.err == [LINE]


def test_who_ignores_it_goes_on_ignoring_it():
    code = PROGRAM.format(body="def work(): time.sleep(1)")
    with interrupted("-c", f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{code}") as it:
        it.wait_for(lambda: it.out)
        it.process.send_signal(signal.SIGINT)
        assert it.end(60) == 0
        assert it.out == ["up", "went on"]


def test_git_is_not_interrupted_with_it(tmp_path):
    code = (
        "import os, signal, sys, threading; from pathlib import Path; from coevo.lineage.git import Git\n"
        "root = Path(sys.argv[1]); git = Git(root); git.init()\n"
        "signal.signal(signal.SIGINT, lambda *_: None); timer = threading.Timer(0.5, os.killpg, (0, signal.SIGINT))\n"
        "timer.start(); git('-c', 'alias.slow=!sleep 2; echo done', 'slow'); print('done')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False, start_new_session=True,
    )  # fmt: skip
    assert done.stdout == "done\n", done.stderr


def run(workspace, *arguments):
    return interrupted("-m", "coevo.flows", *arguments, "--workspace", str(workspace))


def servers(processes):
    """The servers of the workspace among these processes, which outlive the run, with the processes they start."""
    heads = [each for each in processes if {"prefect", "mlflow"} & set(command_of(each))]
    return {process for head in heads for process in (head, *head.children(recursive=True))}


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", mostly_soak(["once", "again-and-again"], "once"))
def test_a_run_that_is_interrupted_comes_to_the_same_states(untouched, workspace, name):
    root = workspace / "runs" / name
    begin, onward = (*RUN, "--name", name), ("resume", name)
    log = root / "log"

    def updates():
        return log.exists() and "ready after" in log.read_text()

    once = {"an update": (begin, updates, 0.2)}
    moments = (
        once
        if name == "once"
        else {
            "the start": (begin, root.exists, 0.5),
            "the first revision": (onward, (root / "lineage" / "manifest.json").exists, 0.0),
            "the loading trainer": (onward, (root / "scratch").exists, 6.0),
            "an update": (onward, updates, 0.2),
            "a commit": (onward, lambda: revisions(workspace, name) > 1, 0.0),
        }
    )
    waited, ended = [], []
    for moment, (command, begun, pause) in moments.items():
        with run(workspace, *command) as it:
            if log.exists():
                log.write_text("")
            it.wait_for(begun)
            time.sleep(pause)
            children = psutil.Process(it.process.pid).children(recursive=True)
            waited.append(it.interrupt())
            assert it.end(60) == 130, it.err
            ended.append(time.monotonic() - it.answered)
            if moment in {"an update", "a commit"}:  # within the flow, which says how to continue
                assert it.out[-1] == f"interrupted: what is committed is safe, continue with `coevo resume {name}`"
            assert "Traceback" not in "\n".join(it.err)
            ours = set(children) - servers(children)
            left = psutil.wait_procs(ours, timeout=60)[1]
            assert not left, [command_of(child) for child in left]
    assert max(waited) < AT_ONCE
    assert statistics.median(ended) < 30, ended
    assert coevo("resume", name, workspace=workspace).returncode == 0
    assert states(workspace, name) == untouched


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_a_warm_start_is_interrupted_and_the_second_ctrl_c_ends_it_now(untouched, workspace):
    with run(workspace, *RUN, "seed=77", "warmstart.steps=4000", "--name", "warming") as it:
        it.wait_for(lambda: "warm start ..." in it.out)
        time.sleep(1)
        assert it.interrupt() < AT_ONCE
        time.sleep(0.3)
        it.process.send_signal(signal.SIGINT)
        assert it.end(60) == 130
