"""A part that is not installed is one line that names its extra."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from coevo.utilities.errors import CoevoError
from coevo.utilities.extras import EXTRAS, extras_named, missing_extra, requirements

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("module", "extra"), [("torch.nn", "train"), ("minigrid.core", "babyai")])
def test_the_line_names_the_extra(module, extra):
    error = ModuleNotFoundError(f"No module named {module!r}", name=module)
    wrapped = RuntimeError("it did not start")
    wrapped.__cause__ = error
    for each in (error, wrapped):
        assert missing_extra(each) == f"{module.partition('.')[0]} is not installed: pip install 'coevo[{extra}]'"


def test_what_a_policy_behind_an_endpoint_needs_names_the_smaller_extra_too():
    line = "prefect is not installed: pip install 'coevo[train]', or 'coevo[api]' for a policy behind an endpoint"
    assert missing_extra(ModuleNotFoundError("no", name="prefect.flows")) == line


@pytest.mark.parametrize("error", [ModuleNotFoundError("no", name="a_module_of_the_user"), ValueError("no")])
def test_every_other_error_is_none(error):
    assert missing_extra(error) is None


def test_a_function_of_the_python_api_raises_it_and_every_other_error_as_it_is():
    @extras_named()
    def load(name):
        raise ModuleNotFoundError(name, name=name)

    with pytest.raises(CoevoError, match=r"^peft is not installed: pip install 'coevo\[train\]'$"):
        load("peft")
    with pytest.raises(ModuleNotFoundError, match=r"^mine$"):
        load("mine")


def test_each_extra_is_one_of_the_package():
    offered = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert EXTRAS.keys() <= offered.keys()


def test_requirements_are_those_of_the_package_and_of_the_extras_that_are_named():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = declared["optional-dependencies"]
    listed = (declared["dependencies"], extras["api"], extras["train"])
    names = [{Requirement(line).name for line in lines} for lines in listed]
    assert {each.name for each in requirements()} == names[0]
    assert {each.name for each in requirements("train")} == names[0] | names[1] | names[2] - {"coevo"}
    assert {each.name for each in requirements("api")} == names[0] | names[1]
    assert "torch==2.13.0" in {f"{each.name}{each.specifier}" for each in requirements("train", "embedding")}
