"""Fields that can start a program, reach a network or import code are marked as such."""

from typing import Any, Literal, get_args, get_origin

import pytest

from coevo.configs.base import Config
from coevo.configs.load.load import load_recipe, validate
from coevo.configs.load.setting_place import classes
from coevo.configs.outside_part import OutsidePartConfig
from coevo.configs.run_config import RunConfig
from coevo.configs.trust_settings import STORED, chosen, marked
from coevo.utilities.errors import ConfigError

INERT = {
    "RunConfig.recipe": "a name, which its pattern keeps short of a path",
    "EvaluationConfig.panels": "names that the environment knows or refuses",
    "EvaluationConfig.final_panels": "the same",
    "VllmEngineConfig.devices": "numbers of GPUs, in one environment variable",
    "ContextConfig.template": "values for a template, which runs in a sandbox",
    "EndpointPolicyConfig.model": "a name in a request to an address that is confirmed",
    "EndpointWriterModelConfig.model": "a name in a request to an address that is confirmed",
    "LoraConfig.target_modules": "a pattern over names of layers",
    "EnginePool.resource": "a name that nodes of a confirmed cluster declare",
    "EnvironmentPool.resource": "the same",
    "TrainerPool.resource": "the same",
    "RowsConfig.prompt": "a column of a table that is confirmed",
    "RowsConfig.split": "the same",
    "RowsConfig.scope": "the same",
    "RowsConfig.answer": "the same",
    "RowsConfig.feedback": "the same",
    "RowsConfig.optional": "the same",
    "RowsConfig.instructions": "text for a prompt",
    **{
        f"{kind}Config.{name}": "as of RowsConfig"
        for kind in ("Gymnasium", "Factory", "OpenEnv", "Mcp", "Verifiers")
        for name in ("instruction", "prompt", "split", "scope")[: 1 if kind == "Gymnasium" else 4]
    },
    "GymnasiumConfig.actions": "names that the policy writes",
    "FactoryConfig.done": "an attribute that is read",
    "OpenEnvConfig.action": "a field of a message to a server that is confirmed",
    "OpenEnvConfig.observation": "a field of its messages",
    "UserModelConfig.model": "a name in a request to an address that is confirmed",
    "McpConfig.tools": "names of tools of a server that is confirmed",
}
"""Fields of free text that nothing acts on, and why."""
TRUSTED = {
    "RunConfig.python_path",
    "PluginEnvConfig.type",
    "PluginEnvConfig.options",
    "RowsConfig.path",
    "SearchQAConfig.path",
    "SearchQAConfig.retriever",
    "WebShopConfig.path",
    "LifelongDbConfig.path",
    "RowsConfig.reward",
    "RowsConfig.tools",
    "PluginEnvConfig.python",
    "GymnasiumConfig.id",
    "GymnasiumConfig.options",
    "GymnasiumConfig.words",
    "GymnasiumConfig.python",
    "FactoryConfig.factory",
    "FactoryConfig.options",
    "FactoryConfig.rows",
    "FactoryConfig.reward",
    "FactoryConfig.python",
    "OpenEnvConfig.url",
    "OpenEnvConfig.rows",
    "OpenEnvConfig.python",
    "McpConfig.command",
    "McpConfig.url",
    "McpConfig.key",
    "McpConfig.rows",
    "McpConfig.reward",
    "McpConfig.python",
    "VerifiersConfig.taskset",
    "VerifiersConfig.options",
    "VerifiersConfig.python",
    *(f"{kind}Config.{name}" for kind in ("Tau2", "AppWorld") for name in ("path", "python")),
    "UserModelConfig.url",
    "UserModelConfig.key",
    "PretrainedPolicyConfig.path",
    "FrozenWriterModelConfig.path",
    *(f"Endpoint{kind}Config.{name}" for kind in ("Policy", "WriterModel") for name in ("url", "key", "extra")),
    "EncoderConfig.model",
    "EvaluationConfig.encoder",
    "VllmEngineConfig.urls",
    "VllmEngineConfig.python",
    "RayPlacement.address",
    "DeepSpeedConfig.settings",
    *(f"{kind.__name__}.{name}" for kind in OutsidePartConfig.__subclasses__() for name in ("type", "options")),
}


def sections(kind, seen=None):
    """A configuration class and all that it consists of; a marked field is asked for as a whole."""
    seen = {} if seen is None else seen
    if kind not in seen:
        seen[kind] = None
        for field in kind.model_fields.values():
            for part in classes(field.annotation) if marked(field) is None else ():
                sections(part, seen)
    return list(seen)


def holds_text(annotation):
    """Whether a value may hold text, or JSON, that the schema does not list."""
    if annotation in (str, Any) or get_origin(annotation) is dict or "JsonValue" in repr(annotation):
        return True
    if get_origin(annotation) is Literal:
        return False
    return any(holds_text(part) for part in get_args(annotation) if isinstance(part, type) or get_args(part))


FIELDS = {f"{kind.__name__}.{name}": field for kind in sections(RunConfig) for name, field in kind.model_fields.items()}


def test_every_field_of_free_text_is_marked_or_known_to_be_inert():
    free = {name for name, field in FIELDS.items() if holds_text(field.annotation) or marked(field)}
    assert free == TRUSTED | INERT.keys()
    assert {name for name, field in FIELDS.items() if marked(field)} == TRUSTED


def test_sections_are_found_where_they_stand():
    """``chosen`` looks into sections, not into lists or mappings of them."""
    assert len(sections(RunConfig)) > 40
    for name, field in ((name, field) for name, field in FIELDS.items() if marked(field) is None):
        inside = [part for part in get_args(field.annotation) if get_origin(part) in (tuple, list, dict)]
        for part in (field.annotation, *inside):
            if get_origin(part) in (tuple, list, dict):
                assert not any(issubclass(each, Config) for each in classes(part)), name


@pytest.mark.parametrize(
    ("overrides", "names"),
    [
        ([], []),
        (["rollout.engine.type=vllm", "rollout.engine.python=.venv-vllm/bin/python"], []),
        (["rollout.engine.type=vllm", "rollout.engine.urls=['http://a:1']"], ["rollout.engine.urls"]),
        (["update.deepspeed.settings={wall_clock_breakdown: true}"], ["update.deepspeed.settings"]),
        (["env={type: lockers}"], ["env.type"]),
        (["env={type: rows, path: a.jsonl, reward: 'a:b'}"], ["env.path", "env.reward"]),
        (["env={type: rows, path: a.jsonl, reward: 'a:b', tools: ['a:c']}"], ["env.path", "env.reward", "env.tools"]),
        (["python_path=[here]"], ["python_path"]),
        (
            [
                "bank.utility={}",
                "bank.retrieval={type: two-phase, similarity: {type: embedding, encoder: {model: there}}}",
            ],
            ["bank.retrieval.similarity.encoder.model"],
        ),
    ],
)
def test_only_what_somebody_chose_is_asked_for(overrides, names):
    assert [each.name for each in chosen(load_recipe("homerules-coevo-rl", overrides))] == names


def test_a_folder_of_modules_is_kept_as_an_absolute_path_and_not_at_all_by_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = load_recipe("homerules-coevo-rl", ["python_path=[mine, /theirs]"])
    assert config.python_path == (str(tmp_path / "mine"), "/theirs")
    plain = load_recipe("homerules-coevo-rl")
    assert "python_path" not in plain.model_dump()
    assert plain.digest() != config.digest()
    kept = config.model_dump(mode="json")
    assert validate(kept, "kept") == config
    with pytest.raises(ConfigError, match="'mine' depends on the working directory"):
        validate(kept | {"python_path": ["mine"]}, "kept")


PATHS = {
    "policy.path": "policy={type: pretrained, path: there}",
    "rollout.engine.python": "rollout.engine={type: vllm, python: there}",
    "evaluation.encoder": "evaluation.encoder=there",
    "bank.writer.model.path": "bank.writer={type: model-contrast, model: {type: frozen, path: there}}",
    "bank.retrieval.encoder.model": "bank.retrieval={type: embedding, encoder: {model: there}}",
}


@pytest.mark.parametrize("name", PATHS)
def test_a_path_that_exists_is_kept_as_an_absolute_one_and_a_name_as_it_is(name, tmp_path, monkeypatch):
    def value(config):
        settings = config.model_dump(mode="json")
        for part in name.split("."):
            settings = settings[part]
        return settings

    monkeypatch.chdir(tmp_path)
    extra = ["warmstart=null"] if name == "policy.path" else []
    assert value(load_recipe("homerules-coevo-rl", [PATHS[name], *extra])) == "there"
    (tmp_path / "there").mkdir()
    config = load_recipe("homerules-coevo-rl", [PATHS[name], *extra])
    assert value(config) == str(tmp_path / "there")
    stored = config.model_dump_json().replace(str(tmp_path / "there"), "there")
    assert value(RunConfig.model_validate_json(stored, context=STORED)) == "there"
