"""The registry of parts, and the tables of the rooms that use it."""

import json
import subprocess
import sys
from functools import partial
from typing import get_args, get_type_hints

import pytest
from support.outside import built_in

from coevo.configs.bank.admission_config import AnyAdmissionConfig
from coevo.configs.bank.retrieval_config import AnyRetrievalConfig, SimilarityConfig
from coevo.configs.bank.writer import AnyWriterConfig
from coevo.configs.schedule_config import ScheduleConfig
from coevo.configs.update.advantage_config import AdvantageConfig
from coevo.configs.update.reward_config import RewardConfig
from coevo.memory.admission.admission import ADMISSIONS
from coevo.memory.retrieval.scorer import SCORERS
from coevo.memory.writers.writer import WRITERS
from coevo.models.advantages import ADVANTAGES
from coevo.models.advantages.trajectory import Advantages
from coevo.models.rewards import REWARDS, Rewards
from coevo.tasks.schedule import SCHEDULES, Phase
from coevo.utilities.errors import ConfigError
from coevo.utilities.part_registry import Registry, part_fault

UNIONS = {
    "update.reward.type": (REWARDS, [RewardConfig], Rewards),
    "update.advantage.type": (ADVANTAGES, [AdvantageConfig], Advantages),
    "bank.retrieval.type": (SCORERS, [AnyRetrievalConfig, SimilarityConfig], "fit"),
    "bank.writer.type": (WRITERS, [AnyWriterConfig], "write"),
    "bank.admission.type": (ADMISSIONS, [AnyAdmissionConfig], "decide"),
    "schedule.type": (SCHEDULES, [ScheduleConfig], Phase),
}
"""By setting: the table, the unions of the schema, and what a part returns, or a method of it."""


@pytest.mark.parametrize("setting", UNIONS)
def test_each_type_of_the_schema_has_its_part(setting):
    registry, unions, made = UNIONS[setting]
    kinds = [kind for union in unions for kind in built_in(union)]
    named = [(get_args(kind.model_fields["type"].annotation)[0], kind) for kind in kinds]
    assert set(registry.parts) == {name for name, _ in named}
    for name, kind in named:
        hints = get_type_hints(registry.load(name))
        assert kind in (hints["config"], *get_args(hints["config"]))
        assert hints["return"] is made or callable(getattr(hints["return"], str(made)))


LAZY = [*REWARDS.parts.values(), *ADVANTAGES.parts.values(), *SCORERS.parts.values()]
LAZY += [*WRITERS.parts.values(), *ADMISSIONS.parts.values()]


def test_a_part_is_imported_on_first_use_only():
    parts = sorted({reference.partition(":")[0] for reference in LAZY})
    code = f"""
import sys
import coevo.memory.admission.admission, coevo.memory.retrieval.scorer, coevo.memory.writers.writer
import coevo.models.advantages
from coevo.models.rewards import REWARDS
assert not [part for part in {parts} if part in sys.modules]
REWARDS.load("extrinsic")
assert [part for part in {parts} if part in sys.modules] == ["coevo.models.rewards.extrinsic"]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def rewards(tmp_path, monkeypatch):
    """A registry that takes installed parts, where a package has four, one of them under a built-in name."""
    metadata = tmp_path / "kind_rewards-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: kind-rewards\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[coevo.rewards]\nkind = kind_rewards:reward\nlost = kind_rewards:lost\nabsent = kind_rewards_absent:reward\n"
        "extrinsic = kind_rewards:reward\n[coevo.writers]\nother = kind_rewards:reward\n"
    )
    (tmp_path / "kind_rewards.py").write_text("def reward(*arguments):\n    return 'kind'\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield Registry("update.reward.type", REWARDS.parts, "coevo.rewards")
    sys.modules.pop("kind_rewards", None)


def test_a_part_of_an_installed_package_is_found_where_the_name_is_not_built_in(rewards):
    assert rewards.load("kind")() == "kind"
    assert rewards.load("extrinsic").__module__ == "coevo.models.rewards.extrinsic"
    assert rewards.names() == sorted([*REWARDS.parts, "absent", "kind", "lost"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "extrinsc",
            "update.reward.type = 'extrinsc': no such part. Did you mean 'extrinsic'? Choose one of absent, "
            "capability-evolution, discounted, extrinsic, kind, lost, progress-guided",
        ),
        ("lost", "update.reward.type = 'lost': kind_rewards has no lost; name an attribute of the module"),
        (
            "absent",
            "update.reward.type = 'absent': kind_rewards_absent cannot be imported "
            "(No module named 'kind_rewards_absent'); install its package, or name the folder of a module of your own "
            "in python_path",
        ),
    ],
)
def test_a_part_that_cannot_be_had_is_one_line_with_a_remedy(rewards, name, message):
    with pytest.raises(ConfigError) as caught:
        rewards.load(name)
    assert str(caught.value) == message


def test_no_name_is_suggested_where_none_is_near():
    with pytest.raises(ConfigError, match=r"^a = 'zzz': no such part. Choose one of first, second$"):
        Registry("a", {"second": "b:c", "first": "d:e"}, "coevo.nothing").load("zzz")


@pytest.mark.parametrize(
    ("body", "line", "where", "said"),
    [
        ("raise ValueError('no  such\\nrow')", 4, "Broken.write", "ValueError: no such row"),
        ("return {}['mug']", 4, "Broken.write", "KeyError: 'mug'"),
        ("return self.help()", 7, "Broken.help", "ZeroDivisionError: division by zero"),
        ("return json.loads('{')", 4, "Broken.write", "JSONDecodeError: Expecting property name enclosed in"),
        ("return sorted([1], key=lambda n: n / 0)", 4, "Broken.write.<locals>.<lambda>", "ZeroDivisionError: division"),
        ("raise ValueError('x' * 10**6)", 4, "Broken.write", "ValueError: xxx"),
    ],
)
def test_an_error_of_a_part_is_one_line_that_names_its_place(tmp_path, monkeypatch, body, line, where, said):
    source = f"import json\nclass Broken:\n    def write(self):\n        {body}\n"
    (tmp_path / "my_broken.py").write_text(f"{source}\n    def help(self):\n        return 1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "my_broken", None)  # so that it is as before afterwards
    del sys.modules["my_broken"]
    assert Registry("env.reward", {}).imported("json:loads", "json:loads") is json.loads  # Python's own is no part
    broken = Registry("bank.writer.type", {}).imported("my_broken:Broken", "my_broken:Broken")
    with pytest.raises((ArithmeticError, LookupError, ValueError)) as found:
        broken().write()
    told = part_fault(found.value)
    assert told.startswith(f"{tmp_path}/my_broken.py, line {line}, in {where}: {said}")
    assert told.endswith(": mend this part") and told.isprintable() and len(told) < 1000


@pytest.mark.parametrize("raising", [partial(Registry("a", {}).load, "b"), partial(json.loads, "{")])
def test_an_error_of_coevo_or_of_a_library_is_none_of_a_part(raising):
    with pytest.raises((ConfigError, ValueError)) as found:
        raising()
    error = found.value
    assert part_fault(error.with_traceback(error.__traceback__.tb_next)) is None  # without the frame of this test
