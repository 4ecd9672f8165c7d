"""A tokenizer or an index from elsewhere that takes minutes or gigabytes is refused in one line; others are not."""

import json
import shutil

import pytest
from support import templates
from support.policies import SMALL, WORDS, qwen

from coevo.configs.policy_config import PretrainedPolicyConfig
from coevo.models.policy import bounded_trial, foreign
from coevo.models.policy.decoder import Decoder
from coevo.models.policy.policy import load, save
from coevo.models.policy.sound import load_sound
from coevo.models.policy.stored import INDEX, check_stored
from coevo.models.policy.tokenizers import tokenizer_of
from coevo.utilities.errors import CoevoError


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    directory = tmp_path_factory.mktemp("saved") / "policy"
    save(qwen(), directory)
    return directory


@pytest.fixture
def directory(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "policy")


def replaced(pattern, content, times, kind="normalizer"):
    """The same replacement, again and again."""
    part = {"type": "Replace", "pattern": pattern, "content": content}
    return {kind: {"type": "Sequence", f"{kind}s": [part] * times}}


def split(expression):
    return {
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False}
    }


def more(count):
    token = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": False}
    return lambda held: [*held, *({**token, "id": 1000 + n, "content": f"<{n}>"} for n in range(count))]


HARMFUL = {
    "each a is two, forty times": replaced({"String": "a"}, "aa", 40),
    "each blank is two, forty times": replaced({"String": " "}, "  ", 40),
    "each dot is a page": replaced({"String": "."}, "." * 2000, 4),
    "each word is two when it is decoded": replaced({"String": "mug"}, "mugmug", 40, "decoder"),
    "each sign is two": replaced({"Regex": "."}, "..", 40),
    "an expression without end": split("(a+)+$"),
    "an alternative without end": split("(a|aa)+$"),
    "an expression of words without end": split(r"(\w+\s?)+$"),
    "an expression that looks ahead": split("(?=(a+)+b)a"),
    "an expression that is slow at each sign": split("(?:.{0,60}){0,4}x?x?x?y"),
    "an expression that replaces": replaced({"Regex": "((1+)+)+$"}, "", 1),
    "a million words more": {"added_tokens": more(1_000_000)},
}
"""Changes of a tokenizer's file, each of which makes it unusable."""
HEALTHY = {
    "as it is": {},
    "small letters": {"normalizer": {"type": "Lowercase"}},
    "one replacement": replaced({"String": "a"}, "aa", 1),
    "an expression of words": split(r"\s+|\w+|[^\w\s]+"),
    "that of GPT": split(
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+"
    ),
    "a thousand words more": {"added_tokens": more(1000)},
}


def change(directory, changes):
    file = directory / "tokenizer.json"
    held = json.loads(file.read_text())
    for name, value in changes.items():
        held[name] = value(held[name]) if callable(value) else value
    file.write_text(json.dumps(held))
    return file


@pytest.fixture
def brief(monkeypatch):
    """Limits that end soon."""
    monkeypatch.setattr(bounded_trial, "TOKENIZER_TIMEOUT_S", 3.0)
    monkeypatch.setattr(bounded_trial, "TOKENIZER_MEMORY", 2**29)


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", HARMFUL)
def test_a_tokenizer_without_measure_is_refused_wherever_it_is_opened(directory, brief, name):
    file = change(directory, HARMFUL[name])
    for opens in (
        lambda: load(directory),
        lambda: load_sound(directory, SMALL),
        lambda: tokenizer_of(PretrainedPolicyConfig(type="pretrained", path=str(directory)), WORDS),
    ):
        with pytest.raises(CoevoError) as caught:
            opens()
        assert f"{caught.value}".startswith(f"{file}: cannot be used, it ")
        assert f"{caught.value}".isprintable()
    assert Decoder(directory)([1, 2]) is None


@pytest.mark.parametrize("name", ["each a is two, forty times", "an expression without end"])
def test_two_of_them_are_refused_as_a_run_opens_its_policy(directory, brief, name):
    change(directory, HARMFUL[name])
    with pytest.raises(CoevoError, match=r"tokenizer\.json: cannot be used, it (needs|does|makes|ends)"):
        load_sound(directory, SMALL)


@pytest.mark.parametrize("name", HEALTHY)
def test_others_are_read_as_before(directory, name):
    change(directory, HEALTHY[name])
    assert bounded_trial.try_tokenizer(directory / "tokenizer.json") is None


@pytest.mark.parametrize("name", templates.NAMES)
def test_tokenizers_of_real_models_pass(tmp_path, name):
    templates.tokenizer(name).save_pretrained(tmp_path)
    assert bounded_trial.try_tokenizer(tmp_path / "tokenizer.json") is None


def test_a_tokenizer_is_tried_once_and_one_that_is_too_large_never(directory, monkeypatch):
    started, run = [], bounded_trial.subprocess.run
    monkeypatch.setattr(
        bounded_trial.subprocess, "run", lambda *given, **more: started.append(1) or run(*given, **more)
    )
    change(directory, {"normalizer": {"type": "NFC"}})
    for _ in range(3):
        load(directory)
    shutil.copytree(directory, directory.with_name("copy"))
    load(directory.with_name("copy"))
    assert len(started) == 1
    with (directory / "tokenizer.json").open("r+") as file:
        file.truncate(bounded_trial.MAX_TOKENIZER_BYTES + 1)
    with pytest.raises(CoevoError, match=r"tokenizer\.json: cannot be used, it has \d+ bytes: "):
        load(directory)
    assert len(started) == 1


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", INDEX])
def test_settings_and_an_index_that_are_too_large_are_not_read(directory, name):
    (directory / "model.safetensors").unlink()
    (directory / INDEX).write_text('{"weight_map": {}}')
    (directory / name).touch()
    with (directory / name).open("r+") as file:
        file.truncate(foreign.MAX_SETTINGS_BYTES + 1)
    with pytest.raises(CoevoError, match=rf"{name}: has \d+ bytes"):
        foreign.check_settings(str(directory)) if name != INDEX else check_stored(str(directory))


def test_an_index_of_many_files_is_refused_at_the_first_that_is_missing(directory):
    (directory / "model.safetensors").unlink()
    places = {f"layer.{n}": f"\x1b[2J{n:07d}.safetensors" for n in range(200_000)}
    (directory / INDEX).write_text(json.dumps({"weight_map": places}))
    with pytest.raises(CoevoError, match=r"0000000\.safetensors is missing") as caught:
        check_stored(str(directory))
    assert f"{caught.value}".isprintable()
