"""The page about Ray clusters: its commands, its overrides and its files are what the code takes."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator, ValidationError

from coevo.configs.load.load import load_recipe
from coevo.flows.cli.app import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ray.md").read_text(encoding="utf-8")
SCHEMA = json.loads((ROOT / "tests" / "support" / "raycluster_schema.json").read_text(encoding="utf-8"))
"""Part of the schema of KubeRay's RayCluster, version v1, that the manifest needs; an unknown field is refused."""
MANIFEST = ROOT / "infra" / "ray" / "kuberay.yaml"


def test_the_manifest_fits_the_schema_of_kuberay():
    manifest = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
    validator = Draft202012Validator(SCHEMA)
    validator.validate(manifest)
    manifest["spec"]["workerGroupSpecs"][0]["replica"] = 1
    with pytest.raises(ValidationError, match="replica"):
        validator.validate(manifest)


def test_the_job_for_slurm_is_a_script_and_says_that_it_was_not_tried():
    script = ROOT / "infra" / "ray" / "slurm.sh"
    subprocess.run(["bash", "-n", str(script)], check=True)
    assert "Not tried" in script.read_text(encoding="utf-8")
    assert re.search(r"slurm\.sh`[^.]*\*\*untried\*\*", PAGE)


def test_the_placement_of_the_page_is_one():
    (override,) = re.findall(r'coevo run RECIPE "(placement=[^"]+)"', PAGE)
    placement = load_recipe("homerules-coevo-rl", [override]).placement
    assert placement.pools.environments.per_node == 1
    assert placement.pools.trainer is not None


@pytest.mark.parametrize("command", re.findall(r"^\$ coevo (cluster \w+)", PAGE, re.MULTILINE))
def test_a_command_of_the_page_is_there(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--help"])
    assert ended.value.code in (None, 0)
    assert "coevo cluster" in capsys.readouterr().out
