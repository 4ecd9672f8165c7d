"""A whole run of the command line whose parts all come from other packages."""

import os
import subprocess
import sys

import pytest
from support import outside
from support.completions import completions, said
from support.outside import PARTS
from support.runs import ROOT, SMALL, coevo, states

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


def test_a_whole_run_with_six_parts_from_outside_resumes_bit_for_bit_after_a_kill(tmp_path, workspace):
    """The tree is as it was: each part is a file in a folder that the recipe names."""
    named = outside.settings(outside.write(tmp_path))
    run = (
        "run",
        "homerules-coevo-rl",
        "iterations=4",
        "seed=5",
        *SMALL,
        *named,
        "bank.every=1",
        "bank.retrieval.options.least=1",
        "bank.retrieval.scoped=false",
    )
    run = tuple(each for each in run if not each.startswith("bank.admission."))
    done = coevo(*run, "--name", "outside", workspace=workspace)
    assert done.returncode == 0, done.stderr
    assert "bank.admission.type=my_admission:First admits lessons without evidence" in done.stdout
    killed = coevo(*run, "--name", "again", workspace=workspace, kill="coevo.tasks.steps.bank_steps:judge@1+")
    assert killed.returncode == -9, killed.stderr
    assert coevo("resume", "again", workspace=workspace).returncode == 0
    found = states(workspace, "outside")
    assert found == states(workspace, "again")
    metrics = [each["metrics"] for each in found[1:]]
    assert [each.get("bank/admission/taken", 0) > 0 for each in metrics] == [False, False, True, True]
    assert ["policy/advantage/my_rank_Rank_spread" in each for each in metrics] == [True, True, False, False]
    assert metrics[3]["bank/retrieval/my_retrieval_Shared_score"] >= 1
    assert sorted(found[-1]["modules"]) == sorted(module for module, *_ in PARTS.values())


ASKING = '''
import json
import coevo


class Asking(coevo.WriterPart):
    """A lesson of a language model for each of two episodes."""

    def write(self, evidence):
        asked = evidence.episodes[:2]
        questions = [
            coevo.Question("my-lesson", each.task.id, (each.id,), "Be brief.", f"How to {each.task.instruction}?")
            for each in asked
        ]
        replies = evidence.ask(questions)
        pairs = [(each, reply.text) for each, reply in zip(asked, replies) if reply.text]
        return coevo.Proposal(tuple({entry.id: entry for entry in map(self.entry, pairs)}.values()))

    def entry(self, pair):
        episode, text = pair
        scope = self.key(episode.task)
        return coevo.Entry(coevo.entry_id(scope, text), text, "", "", episode.task.instruction, scope,
                           episode.task.split, (episode.id,), 1, 1)
'''


def test_a_writer_from_outside_asks_the_language_model_of_its_section(tmp_path, workspace):
    (tmp_path / "my_asking.py").write_text(ASKING, encoding="utf-8")
    with completions(lambda asked: said(f"a lesson: {len(asked.user)} letters")) as (url, _):
        writer = f"bank.writer={{type: 'my_asking:Asking', model: {{type: endpoint, url: '{url}', model: m}}}}"
        named = (writer, f"python_path=[{tmp_path}]", "bank.admission={type: append}", "bank.every=1")
        run = ("run", "homerules-coevo-rl", "iterations=1", "seed=5", *SMALL, *named)
        run = tuple(each for each in run if not each.startswith("bank.admission."))
        done = coevo(*run, "--name", "outside-asking", workspace=workspace)
    assert done.returncode == 0, done.stderr
    last = states(workspace, "outside-asking")[-1]
    assert last["metrics"]["bank/admission/added"] > 0
    assert last["metrics"]["cost/writing/questions"] > 0


def test_an_error_inside_a_part_is_one_line_that_names_its_place(tmp_path, workspace):
    broken = outside.WRITER.replace("if episode.success and episode.turns:", "if episode.turns['first']:")
    (tmp_path / "my_broken.py").write_text(broken, encoding="utf-8")
    run = ("run", "homerules-coevo-rl", "iterations=1", "seed=5", *SMALL, "bank.every=1", f"python_path=[{tmp_path}]")
    done = coevo(*run, "bank.writer={type: 'my_broken:Feedback'}", "--name", "outside-broken", workspace=workspace)
    line = broken.splitlines().index("            if episode.turns['first']:") + 1
    assert done.returncode == 2
    assert f"{tmp_path}/my_broken.py, line {line}, in Feedback.write: TypeError: tuple indices must be" in done.stderr
    assert done.stderr.strip().endswith(": mend this part") and "Traceback" not in done.stderr


def test_a_whole_run_with_parts_of_an_installed_distribution(tmp_path, prefect_url):
    """Named by their entry points; no setting names a folder."""
    (tmp_path / "site").mkdir()
    outside.install(tmp_path / "site")
    named = [f"{setting}={{type: my-{setting.rpartition('.')[2]}}}" for setting in PARTS]
    small = [each for each in SMALL if not each.startswith("bank.admission.")]
    run = ("run", "homerules-coevo-rl", "iterations=2", "seed=5", *small, *named, "bank.every=1", "--name", "installed")
    command = [sys.executable, "-P", "-m", "coevo.flows", *run, "--workspace", str(tmp_path / "workspace")]
    there = os.pathsep.join((str(ROOT), str(tmp_path / "site")))
    environment = os.environ | {"PYTHONPATH": there, "PREFECT_API_URL": prefect_url}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *_, first, last = states(tmp_path / "workspace", "installed")
    assert "policy/advantage/my_advantage_spread" in first["metrics"]
    assert "bank/admission/taken" in last["metrics"]
    assert last["config"]["schedule"] == {"type": "my-schedule", "options": {}}
    assert sorted(last["modules"]) == sorted(module for module, *_ in PARTS.values())
