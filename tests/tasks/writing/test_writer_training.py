"""A small writer model: trained on other worlds, saved whole, and examined in one that it was not trained on."""

from contextlib import closing

import pytest

from coevo.configs.load.load import load_recipe
from coevo.envs.registry import make
from coevo.memory.writers.writer import writer_of
from coevo.models.policy.policy import load
from coevo.records.draws import key
from coevo.records.task import key_by
from coevo.records.writing import Reply
from coevo.tasks.writing import writer_training
from coevo.tasks.writing.writer_training import Teacher, answered, episode, expert_episodes
from coevo.utilities.errors import ConfigError

RECIPE = "babyai-rules-coevo-rl-writer-model"


def opened(*overrides):
    config = load_recipe(RECIPE, overrides)
    return config, make(config.env), writer_of(config.bank.writer, key_by(config.bank.key))


def test_a_trained_writer_model_is_saved_whole_and_can_be_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(writer_training, "VOCABULARY_TASKS", 4)
    monkeypatch.setattr(writer_training, "TASKS", 1)
    config, env, _ = opened("bank.writer.model.max_new_tokens=8")
    with closing(env):
        grade = writer_training.train_writer_model(config, env, tmp_path / "writer_model", 1, 1, lambda said: None)
    assert (grade.proposed, grade.true) == (0, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["writer_model"]
    assert load(tmp_path / "writer_model").tokenizer.chat_template


def test_a_perfect_writer_model_passes_the_examination_and_a_silent_one_does_not():
    _, env, writer = opened()

    class Perfect:
        def replies(self, questions):
            played = [
                episode(env, task, n, (*draws(task), n)) for task in tasks for n in range(writer_training.REPLICAS)
            ]
            yield from enumerate(Teacher(env, played, draw)(questions))

    class Silent:
        def replies(self, questions):
            yield from ((directory, Reply("", False, fault="gone")) for directory in range(len(questions)))

    draw = key("exam of the test")
    tasks = env.probe(writer_training.TASKS, draw).tasks

    def draws(task):
        return (*draw, task.id)

    with closing(env):
        perfect, silent = (writer_training.examine(env, writer, each(), draw) for each in (Perfect, Silent))
    assert perfect.revealed > 4
    assert (perfect.proposed, perfect.true) == (perfect.revealed, perfect.revealed)
    assert (silent.proposed, silent.true, silent.revealed) == (0, 0, perfect.revealed)


def test_the_teacher_tells_what_episodes_of_other_worlds_reveal():
    config, env, writer = opened()
    with closing(env):
        played = expert_episodes(env, env.probe(4, key("taught")).tasks, 2, key("taught"))
        shown = answered(env, writer, key_by(config.bank.key), played, key("taught"))
    assert shown
    assert any('"lesson": "in ' in answer for _, answer in shown)


def test_a_writer_that_asks_nobody_has_no_writer_model_to_train(tmp_path):
    config = load_recipe("babyai-rules-coevo-rl")
    with closing(make(config.env)) as env, pytest.raises(ConfigError, match=r"set bank\.writer\.type=model-contrast"):
        writer_training.train_writer_model(config, env, tmp_path / "writer_model", 1, 1, lambda said: None)
    assert not list(tmp_path.iterdir())
