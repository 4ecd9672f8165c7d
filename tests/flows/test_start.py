"""The program starts in every locale, with every stream closed, and with any variables of Python."""

import os
import subprocess
import sys

import pytest
from support.soak import mostly_soak

from coevo.flows.servers.daemon import down

PROGRAM = [sys.executable, "-c", "from coevo.flows.start import main; main()"]
PLAIN = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
SHOW = "import os, sys; print(sys.flags.utf8_mode, sys.flags.optimize, sys.warnoptions, open(chr(252), 'w').encoding)"


@pytest.fixture(scope="session")
def locales(tmp_path_factory):
    """A folder with locales of other encodings; skips where the system cannot build them."""
    folder = tmp_path_factory.mktemp("locales")
    for name, language, encoding in (("zh", "zh_CN", "GBK"), ("ja", "ja_JP", "EUC-JP"), ("de", "de_DE", "ISO-8859-1")):
        line = ["localedef", "-i", language, "-f", encoding, "--no-archive", str(folder / f"{name}.{encoding}")]
        try:
            subprocess.run(line, capture_output=True, check=True, env={**os.environ, "LC_ALL": "C"})
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("localedef cannot build locales here")
    return folder


def started(*arguments, shell="", where=None, **variables):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | variables
    line = ["sh", "-c", f'exec "$0" "$@" {shell}', *PROGRAM, *arguments]
    return subprocess.run(line, cwd=where, env=environment, capture_output=True, timeout=300, check=False)


VARIABLES = {
    "docstrings removed": {"PYTHONOPTIMIZE": "2"},
    "asserts removed, and some warnings are errors": {
        "PYTHONOPTIMIZE": "1",
        "PYTHONWARNINGS": "error::DeprecationWarning,default",
    },
    "warnings are errors": {"PYTHONWARNINGS": "error"},
    "the plain locale": {"LC_ALL": "C", **PLAIN},
    "the plain locale of POSIX": {"LANG": "POSIX", "LC_ALL": "", "LC_CTYPE": "", **PLAIN},
    "everything": {"LC_ALL": "C", **PLAIN, "PYTHONOPTIMIZE": "2", "PYTHONWARNINGS": "error"},
}
DRY_RUN = ("run", "homerules-grpo", "--dry-run")


@pytest.mark.full
@pytest.mark.parametrize("variables", mostly_soak(VARIABLES, "docstrings removed", "everything"))
def test_variables_of_python_and_the_locale_change_nothing(tmp_path, variables):
    done = started(*DRY_RUN, where=tmp_path, **variables)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"ready to start\n")


@pytest.mark.full
@pytest.mark.parametrize("locale", mostly_soak(["zh.GBK", "ja.EUC-JP", "de.ISO-8859-1"], "zh.GBK"))
def test_locales_of_other_encodings_change_nothing(tmp_path, locales, locale):
    done = started(*DRY_RUN, where=tmp_path, LC_ALL=locale, LOCPATH=str(locales), **PLAIN)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.full
@pytest.mark.parametrize(
    "shell",
    mostly_soak(
        [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-", "1</dev/null", "2</dev/null", "2>/dev/full", "0>/dev/null"],
        "2>&-", "<&- >&- 2>&-", "1</dev/null", "2>/dev/full",
    ),
)  # fmt: skip
def test_closed_streams_change_no_exit_code(tmp_path, shell):
    assert started("recipes", shell=shell, where=tmp_path).returncode == 0
    refused = started("log", "nope", shell=shell, where=tmp_path)
    assert (refused.returncode, b"Traceback" in refused.stderr) == (2, False)


@pytest.mark.full
@pytest.mark.parametrize("command", mostly_soak([("recipes",), ("recipes", "--json"), ("--help",)], ("recipes",)))
def test_output_that_a_full_disk_does_not_take_is_one_line(tmp_path, command):
    done = started(*command, shell=">/dev/full", where=tmp_path)
    said = done.stderr.decode().removeprefix(f"coevo {command[0]} starts ...\n")
    assert (done.returncode, said.count("\n")) == (2, 1), said
    assert said.startswith("coevo: No space left on device: make room")


def test_the_interpreter_starts_anew_in_utf8_mode_once(tmp_path):
    code = f"from coevo.flows.start import _settle_interpreter; _settle_interpreter(); {SHOW}"
    environment = {**os.environ, "LC_ALL": "C", **PLAIN, "PYTHONOPTIMIZE": "2", "PYTHONWARNINGS": "error"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert done.stdout == b"1 0 [] utf-8\n"


def test_closed_streams_are_the_null_device(tmp_path):
    code = (
        "from coevo.flows.start import _open_streams; _open_streams(); import os, sys; print('lost'); "
        "print(open('file', 'w').fileno() > 2, os.readlink('/proc/self/fd/1'), file=sys.stderr)"
    )
    line = ["sh", "-c", 'exec "$0" "$@" >&-', sys.executable, "-c", code]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, check=True)
    assert done.stderr == b"True /dev/null\n"


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_run_trains_in_the_plain_locale_with_closed_output(tmp_path):
    small = (
        "iterations=1", "rollout.tasks=4", "rollout.group_size=2", "warmstart.steps=20", "warmstart.probe_every=20",
        "warmstart.probe_tasks=8", "evaluation.tasks=4", "evaluation.final_panels=[]",
    )  # fmt: skip
    variables = {"LC_ALL": "C", **PLAIN, "PYTHONWARNINGS": "error"}
    workspace = tmp_path / "wü"
    try:
        done = started("run", "homerules-grpo", *small, "--workspace", str(workspace), shell=">&-", **variables)
        assert (done.returncode, done.stderr.decode(errors="replace")) == (0, "")
    finally:
        down(workspace)
