"""Every command works with every environment: the household, BabyAI, and a class from outside.

Commands of the workspace alone, which no environment reaches, have tests of their own.
"""

import json
import shlex
from dataclasses import asdict

import pytest
from support.entries import entry
from support.guide_files import files_of
from support.runs import coevo
from typer.core import TyperGroup

from coevo.flows.cli import app

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

BRIEF = (
    "warmstart=null iterations=2 rollout.tasks=2 rollout.group_size=2 bank.every=1 bank.admission.type=append "
    "evaluation.every=1 evaluation.tasks=4 evaluation.final_panels=[]"
)
ENVIRONMENTS = {
    "household": ("homerules-coevo-rl", "homerules", "homerules"),
    "babyai": ("babyai-rules-coevo-rl", "babyai-rules", "babyai"),
    "outside": ("lockers.yaml", "lockers:TaughtLockers", "lockers"),
}
"""Recipe, environment, and name of a registered model."""
LESSON = entry("look first", "nothing is known", "look", "look")
WALK = """
run {recipe} {brief} --dry-run
run {recipe} {brief} --name mine
resume mine --iterations 3
evaluate mine@1 --tasks 2
evaluate mine --tasks 2 --samples 2 --bank own --bank none --output {out}/results.jsonl
export mine {out}/exported
runs
log mine
status mine
episodes mine --failed
compare mine mine@1
report mine --output {out}/report.html
tag mine@2 best
branch mine@1 twig
rollback mine --to 2
approve --list
fsck
gc
bank import mine {out}/lesson.jsonl
bank log mine
bank show mine
bank search mine look
bank diff mine@1 mine@2
bank why mine {entry}
bank test mine {entry} --tasks 2
explain mine@1 --tasks 2
bank retrieval mine
bank rejects mine
bank health mine
bank export mine {out}/bank.jsonl
bank retire mine {entry} --reason test
push {out}/remote mine
pull {out}/remote mine
package mine {model}
promote {model}/1 --tasks 2 --margin -2
package mine@1 {model}
promote {model}/2 --tasks 2 --margin -2
demote {model}
schedule add mine --cron "0 2 1 1 *"
schedule list
schedule pause mine
schedule resume mine
schedule remove mine
play {env} {path} --turns 2
envs check {env} {path} --tasks 2
methods {recipe}
down
"""
TRAINING = ("run", "resume")
"""Commands that load the trainer, which a process does once."""
OF_NO_WORKSPACE = ("play", "envs", "methods")
OF_NO_ENVIRONMENT = {
    "ablate": "test_ablate", "bank serve": "bank/test_bank_serve", "bank token": "bank/test_bank_serve",
    "bank train-writer": "tests/flows/methods", "doctor": "test_doctor", "gateway": "tests/flows/gateway",
    "new": "test_new", "table": "test_table",
    "recipes": "test_catalogue", "serve": "test_serve", "ui": "tests/browser", "worker": "tests/flows/sessions",
    "watch": "tests/flows/watch", "cluster up": "tests/flows/servers/test_ray_cluster",
    "cluster down": "tests/flows/servers/test_ray_cluster", "cluster status": "tests/flows/servers/test_ray_cluster",
}  # fmt: skip
"""Commands that are not walked, and where their tests are."""


def names(group, before=()):
    """All commands below a group."""
    found = set()
    for name, command in group.commands.items():
        path = (*before, name)
        below = names(command, path) if isinstance(command, TyperGroup) and name != "new" else set()
        found |= below or {" ".join(path)}
    return found


def test_each_command_is_walked_or_named():
    lines, commands = list(filter(None, WALK.splitlines())), names(app._program())
    walked = {name for name in commands for line in lines if f"{line} ".startswith(f"{name} ")}
    assert commands - walked == set(OF_NO_ENVIRONMENT)
    assert all(any(f"{line} ".startswith(f"{name} ") for name in commands) for line in lines)


@pytest.fixture
def call(capsys):
    """Call a command in this process; those that train in one of their own."""

    def call(words, workspace):
        where = () if words[0] in OF_NO_WORKSPACE else ("--workspace", str(workspace))
        if words[0] in TRAINING:
            done = coevo(*words, workspace=workspace)
            return done.returncode, done.stdout + done.stderr
        with pytest.raises(SystemExit) as stopped:
            app.main([*words, *where])
        return stopped.value.code, "".join(capsys.readouterr())

    return call


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_every_command_works_with_it(environment, tmp_path, call, prefect_url, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", prefect_url)
    recipe, env, model = ENVIRONMENTS[environment]
    (tmp_path / "lesson.jsonl").write_text(json.dumps(asdict(LESSON)) + "\n", encoding="utf-8")
    for name, text in files_of("add-an-environment.md").items():
        (tmp_path / name).write_text(text.replace("python_path: [.]", f"python_path: [{tmp_path}]"), encoding="utf-8")
    outside = environment == "outside"
    words = {
        "recipe": tmp_path / recipe if outside else recipe, "env": env, "model": model, "out": tmp_path,
        "brief": BRIEF, "path": f"--python-path {tmp_path}" if outside else "", "entry": LESSON.id,
    }  # fmt: skip
    for line in filter(None, WALK.splitlines()):
        workspace = tmp_path / ("elsewhere" if line.startswith("pull") else "workspace")
        code, said = call(shlex.split(line.format(**words)), workspace)
        assert code == 0, f"{line}: {said}"
