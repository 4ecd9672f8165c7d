import sys

import pytest

from coevo.configs.env import HomeRulesConfig, PluginEnvConfig
from coevo.configs.load.load import load_recipe
from coevo.envs.base import MissingPartError
from coevo.envs.homerules import HomeRules
from coevo.envs.registry import available, find, make, with_panel
from coevo.records.draws import key
from coevo.utilities.errors import CoevoError

SOURCE = """
from coevo.envs.base import Environment, Step
from coevo.records.task import Panel, Task


class Echo(Environment[str]):
    name, version, panels = "echo", "1", {"words": "some words"}

    def __init__(self, word: str = "hello") -> None:
        if not word:
            raise ValueError("word is empty")
        if "/" in word:
            word = open(word).read()
        self.word = word

    def _task(self, split):
        return Task("echo", "say", f"say {self.word}", "", split, {"word": self.word})

    def sample(self, count, key):
        return [self._task("train")] * count

    def panel(self, name, size):
        return Panel(name, self.version, (self._task(name),) * size)

    def start(self, task):
        return task.data["word"], "listening"

    def step(self, states, actions):
        return [Step(s, "listening", a, float(a == s), True, a == s) for s, a in zip(states, actions)]


class Half(Environment[str]):
    name, version, panels = "half", "1", {}

    def sample(self, count, key):
        return []


class Panelless(Echo):
    panels = {}


NOT_AN_ENVIRONMENT = 3
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package outside the repository, as an installer would leave it: a module and its metadata."""
    (tmp_path / "echo_package.py").write_text(SOURCE)
    (tmp_path / "broken_package.py").write_text("import a_module_that_nobody_has\n")
    (tmp_path / "unfinished_package.py").write_text("\ndef (:\n")
    metadata = tmp_path / "echo_package-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: echo-package\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[coevo.envs]\necho = echo_package:Echo\nlost = echo_package:Lost\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("echo_package", None)


def plugin(kind, **options):
    return make(PluginEnvConfig(type=kind, options=options))


def test_the_embedded_environment_is_built_with_its_settings():
    config = HomeRulesConfig(level=2, world=3, houses=4, drift=1)
    assert make(config).at(9).sample(5, key(1)) == HomeRules(2, 3, 4, drift=1).at(9).sample(5, key(1))


@pytest.mark.parametrize("kind", ["echo", "echo_package:Echo"])
def test_an_environment_from_outside_the_repository_is_played(package, kind):
    env = plugin(kind, word="hi")
    (task,) = env.sample(1, key(0))
    state, _ = env.start(task)
    assert [step.success for step in env.step([state, state], ["hi", "no"])] == [True, False]
    assert env.panel_bank("words") is None
    assert env.vocabulary == ()
    assert {"echo", "homerules"} <= set(available())


def test_an_optional_part_that_is_missing_is_named(package):
    with pytest.raises(MissingPartError, match="echo has no reading probe: write `probe`"):
        plugin("echo").probe(1, key(0))


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("ekko", {}, "No environment 'ekko'.*package.module:Class"),
        ("no_such_package:Echo", {}, "no_such_package cannot be imported.*install"),
        ("broken_package:Echo", {}, "broken_package cannot be imported.*a_module_that_nobody_has"),
        ("unfinished_package:Echo", {}, r"unfinished_package\.py, line 2: .*: mend the module"),
        ("echo_package:Missing", {}, "echo_package has no Missing; name an attribute of the module"),
        ("echo_package:half", {}, r"echo_package has no half\. Did you mean 'Half'\?"),
        ("lost", {}, "echo_package has no Lost"),
        ("echo_package:NOT_AN_ENVIRONMENT", {}, "not an environment"),
        ("echo_package:Task", {}, r"not an environment; derive it from coevo\.Environment"),
        ("echo_package:Half", {}, "lacks panel, start, step"),
        ("echo", {"wrd": "hi"}, "'wrd': 'hi'.*echo refuses.*unexpected keyword argument 'wrd'"),
        ("echo", {"word": ""}, "echo refuses.*word is empty"),
        ("echo", {"word": "/no/such"}, "echo refuses.*No such file or directory: '/no/such'"),
        ("coevo.envs.homerules:HomeRules", {"level": 9}, "env.level = 9"),
    ],
)
def test_what_cannot_be_built_is_one_line_with_a_remedy(package, kind, options, said):
    with pytest.raises(CoevoError, match=said) as caught:
        plugin(kind, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "env",
    [
        "homerules",
        "alfworld",
        "babyai",
        "babyai-rules",
        "sokoban",
        "minesweeper",
        "webshop",
        "searchqa",
        "textworld",
        "lifelong-db",
        "lifelong-os",
        "echo_package:Echo",
    ],
)
def test_without_a_panel_in_the_settings_the_first_of_the_environment_is_played(package, env):
    asked = load_recipe("homerules-react", [f"env={{type: '{env}'}}", "evaluation.panels=[]"])
    assert asked.evaluation.panels == ()
    assert with_panel(asked).evaluation.panels == (next(iter(find(env).panels)),)
    named = load_recipe("homerules-react", ["evaluation.panels=[other]"])
    assert with_panel(named) is named


def test_an_environment_without_a_panel_is_refused(package):
    config = load_recipe("homerules-react", ["env={type: 'echo_package:Panelless'}", "evaluation.panels=[]"])
    with pytest.raises(CoevoError, match=r"echo_package:Panelless'.*has no panel to evaluate on"):
        with_panel(config)
