"""Models that a run names by path: every change of what is read from their folders is a change of the run."""

import os
import shutil
from contextlib import closing
from types import SimpleNamespace

import pytest
from support.row_tables import ROWS, written

from coevo.configs.benchmark_config import AppWorldConfig, Tau2Config
from coevo.configs.env import HomeRulesConfig, LifelongDbConfig, PluginEnvConfig, SearchQAConfig, WebShopConfig
from coevo.configs.load.load import load_recipe
from coevo.envs.rows.rows_environment import Rows
from coevo.envs.rows.task_table import load_table
from coevo.lineage.revision.code_version import code_revision, packages
from coevo.lineage.revision.manifest import Manifest
from coevo.tasks.run import weight_digests
from coevo.tasks.run.changes import check_unchanged
from coevo.tasks.run.warmstart import identity
from coevo.tasks.run.weight_digests import check_data, check_weights, data_of, digests
from coevo.utilities.errors import CoevoError

FILES = {
    "config.json": "{}",
    "tokenizer.json": "{}",
    "chat_template.jinja": "{{ messages }}",
    "model.safetensors": "weights",
    "1_Pooling/config.json": "{}",
    "README.md": "about",
    ".cache/x.json": "{}",
}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "model" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "model"


@pytest.fixture
def directory(tmp_path):
    (tmp_path / "workspace").mkdir()
    return tmp_path / "workspace"


SETTINGS = {
    "the base of adapters": ("policy.path", ["policy={type: pretrained, path: %s, lora: {}}", "warmstart=null"]),
    "an encoder of retrieval": (
        "bank.retrieval.encoder.model",
        ["bank.retrieval={type: embedding, encoder: {model: %s}}"],
    ),
    "an encoder beside words": (
        "bank.retrieval.encoder.model",
        ["bank.retrieval={type: tfidf+embedding, encoder: {model: %s}}"],
    ),
    "a frozen writer": (
        "bank.writer.model.path",
        ["bank.writer={type: model-contrast, model: {type: frozen, path: %s}}"],
    ),
    "the encoder of trajectories": ("evaluation.encoder", ["evaluation.encoder=%s"]),
}


def configured(overrides, folder):
    return load_recipe("homerules-coevo-rl", [each.replace("%s", str(folder)) for each in overrides])


def same_size_and_time(folder):
    file = folder / "model.safetensors"
    before = file.stat()
    file.write_text("WEIGHTS")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def another_folder(folder):
    other = folder.with_name("other")
    shutil.copytree(folder, other)
    (other / "model.safetensors").write_text("other..")
    shutil.rmtree(folder)
    folder.symlink_to(other)


def copied(folder):
    other = folder.with_name("other")
    shutil.copytree(folder, other)
    shutil.rmtree(folder)
    other.rename(folder)


CHANGES = {
    "weights": lambda folder: (folder / "model.safetensors").write_text("weightz"),
    "weights of the same size and time": same_size_and_time,
    "settings": lambda folder: (folder / "config.json").write_text('{"a": 1}'),
    "tokenizer": lambda folder: (folder / "tokenizer.json").write_text('{"a": 1}'),
    "chat template": lambda folder: (folder / "chat_template.jinja").write_text("{{ 1 }}"),
    "pooling": lambda folder: (folder / "1_Pooling" / "config.json").write_text('{"a": 1}'),
    "a file more": lambda folder: (folder / "adapter_config.json").write_text("{}"),
    "a file less": lambda folder: (folder / "tokenizer.json").unlink(),
    "a file renamed": lambda folder: (folder / "tokenizer.json").rename(folder / "vocab.json"),
    "a link to another folder": another_folder,
}
HARMLESS = {
    "nothing": lambda folder: None,
    "times": lambda folder: os.utime(folder / "model.safetensors"),
    "a page about it": lambda folder: (folder / "README.md").write_text("more"),
    "a cache": lambda folder: (folder / ".cache" / "x.json").write_text("[]"),
    "a copy": copied,
}


def manifest(config, found):
    state = {"revision": 1, "config": config.model_dump(mode="json"), "code": code_revision(), "packages": packages()}
    return Manifest.of({**state, "weights": found}, {})


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_refused_unless_accepted(folder, directory, setting, change):
    name, overrides = SETTINGS[setting]
    config = configured(overrides, folder)
    before = digests(config, directory)
    assert set(before) == {name}
    head = manifest(config, before)
    assert check_unchanged(config, head, "first", False, digests(config, directory)) == []
    check_weights(head, config, directory, "first@1")
    CHANGES[change](folder)
    with pytest.raises(CoevoError, match=rf"changed since its last revision: weights of {name}: .*--accept-change"):
        check_unchanged(config, head, "first", False, digests(config, directory))
    assert len(check_unchanged(config, head, "first", True, digests(config, directory))) == 1
    with pytest.raises(CoevoError, match=rf"first@1 was made with other files .* weights of {name}: "):
        check_weights(head, config, directory, "first@1")


@pytest.mark.parametrize("change", HARMLESS)
def test_what_is_not_read_may_change(folder, directory, change):
    config = configured(*[SETTINGS["the base of adapters"][1]], folder)
    head = manifest(config, digests(config, directory))
    HARMLESS[change](folder)
    check_weights(head, config, directory, "first@1")


def test_a_policy_that_is_trained_whole_is_not_read_again(folder, directory):
    config = configured(["policy={type: pretrained, path: %s}", "warmstart=null"], folder)
    head = manifest(config, digests(config, directory))
    CHANGES["weights"](folder)
    check_weights(head, config, directory, "first@1")
    with pytest.raises(CoevoError, match=r"weights of policy\.path"):
        check_unchanged(config, head, "first", False, digests(config, directory))


def test_a_model_that_is_not_here_is_left_to_who_loads_it(folder, directory):
    config = configured(SETTINGS["the base of adapters"][1], folder)
    head = manifest(config, digests(config, directory))
    shutil.rmtree(folder)
    assert digests(config, directory) == {}
    check_weights(head, config, directory, "first@1")


def test_files_are_read_once(folder, directory, monkeypatch):
    config, read = configured(SETTINGS["the base of adapters"][1], folder), []
    digest = weight_digests.hashlib.file_digest
    monkeypatch.setattr(
        weight_digests.hashlib, "file_digest", lambda file, kind: read.append(file.name) or digest(file, kind)
    )
    first = digests(config, directory)
    assert len(read) == 5
    assert digests(config, directory) == first
    assert len(read) == 5
    (directory / "weights.json").write_text("damaged")
    assert digests(config, directory) == first
    assert len(read) == 10


def test_the_rows_of_a_table_are_a_digest_and_others_are_a_change(tmp_path, directory):
    config = load_recipe("rows-grpo", [f"env.path={written(tmp_path, ROWS)}"])
    rows = digests(config, directory)
    assert rows == {"env.path": load_table(config.env.path).digest}
    head = manifest(config, rows)
    written(tmp_path, [dict(reversed(row.items())) for row in ROWS])
    assert check_unchanged(config, head, "first", False, digests(config, directory)) == []
    written(tmp_path, ROWS[1:])
    with pytest.raises(CoevoError, match=r"data of env\.path \(put the former files back\): .*add --accept-change"):
        check_unchanged(config, head, "first", False, digests(config, directory))
    with pytest.raises(CoevoError, match=r"data of env\.path .* put the former files back"):
        check_weights(head, config, directory, "first@1")


READING = {
    "products": WebShopConfig(path="/data"),
    "published SQL": LifelongDbConfig(path="/data"),
    "questions": SearchQAConfig(data="files", path="/data"),
    "questions of a variable": SearchQAConfig(data="files"),
    "a checkout": Tau2Config(path="/data"),
    "a checkout of a variable": Tau2Config(),
    "applications": AppWorldConfig(path="/data"),
    "applications of a variable": AppWorldConfig(),
    "official games": PluginEnvConfig(type="alfworld", options={"games": "official", "path": "/data"}),
    "official games of a variable": PluginEnvConfig(type="alfworld", options={"games": "official"}),
}
MADE = (
    WebShopConfig(), LifelongDbConfig(), SearchQAConfig(), HomeRulesConfig(), PluginEnvConfig(type="alfworld"),
)  # fmt: skip


@pytest.mark.parametrize("name", READING)
def test_data_that_an_environment_reads_by_path_are_a_digest_and_others_are_a_change(name):
    config = SimpleNamespace(env=READING[name])
    before, after = (SimpleNamespace(version=f"1 {name}/files/0123456789{end}") for end in ("ab", "ac"))
    head = Manifest({"weights": data_of(config, before)}, {})
    assert set(head.state["weights"]) == {"env.path"}
    check_data(head, config, before, "first@1")
    with pytest.raises(CoevoError, match=r"first@1 was made with .* data of env\.path .*: \w{12} -> \w{12}"):
        check_data(head, config, after, "first@1")
    check_data(Manifest({}, {}), config, after, "first@1")  # of an earlier coevo
    assert [data_of(SimpleNamespace(env=made), before) for made in MADE] == [{}] * len(MADE)


def test_another_table_is_another_warm_start(tmp_path):
    config = load_recipe("rows-grpo", [f"env.path={written(tmp_path, ROWS)}"])
    found = []
    for rows in (ROWS, ROWS[1:], ROWS):
        written(tmp_path, rows)
        with closing(Rows(config.env.model_copy(update={"split": None, "scope": None}))) as env:
            found.append(identity(config, env))
    assert (found[0] == found[2], found[0] == found[1]) == (True, False)
