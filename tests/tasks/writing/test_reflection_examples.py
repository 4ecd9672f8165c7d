"""Reflections in the warm start: off by default, and then nothing of a warm start differs."""

import json
import re

import pytest
from support.worker import environment

from coevo.configs.load.load import load_recipe
from coevo.configs.run_config import digest
from coevo.memory.writers.model.words import WORDS
from coevo.models.policy.context import CONTEXT_WORDS
from coevo.models.policy.policy import load
from coevo.models.policy.tokenizers import word_tokenizer
from coevo.tasks.publish.reporter import Silent
from coevo.tasks.run.warmstart import identity, reflections, teaches, undetermined, warm_start
from coevo.utilities.errors import ConfigError

SMALL = ["warmstart.steps=2", "warmstart.probe_every=2", "warmstart.probe_tasks=8", "warmstart.episodes=2"]
RULE, POLICY = "homerules-retroagent", "homerules-retroagent-policy"


def test_defaults_leave_configuration_identity_and_vocabulary_as_they_were(tmp_path):
    config = load_recipe(RULE, SMALL)
    dumped = json.loads(config.model_dump_json())
    assert "reflections" not in dumped["warmstart"]
    assert "form" not in dumped["bank"]["writer"]
    zero = load_recipe(RULE, [*SMALL, "warmstart.reflections=0"])
    assert digest(zero.model_dump(mode="json")) == digest(config.model_dump(mode="json"))
    assert identity(zero, environment()) == identity(config, environment())
    assert teaches(config) is None
    made = load(warm_start(config, environment(), tmp_path, Silent()))
    assert made.tokenizer.get_vocab() == word_tokenizer((*environment().vocabulary, *CONTEXT_WORDS)).get_vocab()
    assert reflections(config, environment(), made.tokenizer)(0) == ()


def test_a_warm_start_with_reflections_has_their_words_and_identity(tmp_path):
    config = load_recipe(POLICY, SMALL)
    told = load_recipe(POLICY, [*SMALL, "bank.writer.reveal_outcome=false"])
    hashes = {identity(each, environment()) for each in (config, told, load_recipe(RULE, SMALL))}
    assert len(hashes) == 3
    made = load(warm_start(config, environment(), tmp_path, Silent()))
    assert set(WORDS) <= made.tokenizer.get_vocab().keys()


def test_examples_fit_the_policy_know_every_word_and_differ_from_step_to_step():
    config = load_recipe(POLICY, SMALL)
    tokenizer = word_tokenizer((*environment().vocabulary, *CONTEXT_WORDS, *WORDS))
    made = reflections(config, environment(), tokenizer)
    assert len(made(0)) == config.warmstart.reflections
    assert made(0) == made(0) != made(1)
    longest = config.bank.writer.model.max_new_tokens
    for prompt, target in made(0):
        assert tokenizer.unk_token_id not in {*prompt, *target}
        assert len(prompt) + longest <= config.policy.max_positions
        assert len(target) <= longest


def test_taught_reflections_tell_a_share_of_the_lessons():
    told = [*SMALL, "bank.writer.reveal_outcome=false", "warmstart.reflections=64"]
    tokenizer = word_tokenizer((*environment().vocabulary, *CONTEXT_WORDS, *WORDS))

    def lessons(*more):
        made = reflections(load_recipe(POLICY, [*told, *more]), environment(), tokenizer)
        return [set(tokenizer.decode(target[:-1]).split(" # ")[1:]) for _, target in made(0)]

    every, some = lessons(), lessons("warmstart.lessons=0.5")
    assert all(mine <= his for his, mine in zip(every, some, strict=True))
    total, kept = sum(map(len, every)), sum(map(len, some))
    # Fair coins: within 4 standard deviations of a half.
    assert abs(kept / total - 0.5) < 2 / total**0.5


@pytest.mark.parametrize(
    ("setting", "off"),
    [("asides=0.5", "0.0"), ("lessons=0.5", "1.0"), ("predictions=random", "true"), ("write=0.7", "0.9")],
)
def test_settings_of_reflections_that_nobody_teaches_are_refused(setting, off):
    name = setting.partition("=")[0]
    said = (
        f"warmstart.{name} is a setting of taught reflections: set warmstart.reflections=16, or warmstart.{name}={off}"
    )
    with pytest.raises(ConfigError, match=re.escape(said)):
        load_recipe(RULE, [f"warmstart.{setting}"])


def test_taught_reflections_tell_asides_in_a_share_of_answers_and_never_what_a_step_reveals():
    told = [*SMALL, "warmstart.reflections=64"]
    tokenizer = word_tokenizer((*environment().vocabulary, *CONTEXT_WORDS, *WORDS))

    def lines(*more):
        made = reflections(load_recipe(POLICY, [*told, *more]), environment(), tokenizer)
        return [
            (tokenizer.decode(prompt), tokenizer.decode(target[:-1]).split(" # ")[1:])
            for step in range(4)
            for prompt, target in made(step)
        ]

    plain, mixed = lines(), lines("warmstart.asides=0.5")
    more = []
    for (attempt, known), (same, every) in zip(plain, mixed, strict=True):
        assert attempt == same
        assert [line for line in every if line in known] == known
        assert every == sorted(every, key=lambda line: int(line.split()[0]))
        added = [line for line in every if line not in known]
        assert len(added) <= 1
        for line in added:
            number, said = line.split(" ", 1)
            # Action and answer stand in the attempt, apart.
            assert said in attempt.split(f" # {number} >")[1].split(" # ")[0].replace(" : ", " ")
        more.append(len(added))
    # 256 fair coins, where a step is left that reveals nothing.
    assert abs(sum(more) / len(more) - 0.5) < 2 / len(more) ** 0.5


@pytest.mark.parametrize(
    ("drawn", "words"),
    [
        ((), set()),
        (("warmstart.predictions=random",), {"yes", "no"}),
        (("warmstart.lessons=0.5",), {"#", "<eos>", *map(str, range(65))}),
        (("warmstart.asides=0.5",), {"#", "<eos>", *map(str, range(65))}),
    ],
)
def test_words_that_the_teacher_draws_are_undetermined(drawn, words):
    tokenizer = word_tokenizer((*environment().vocabulary, *CONTEXT_WORDS, *WORDS))
    warm = load_recipe(POLICY, drawn).warmstart
    assert set(tokenizer.convert_ids_to_tokens(undetermined(warm, tokenizer))) == words


def test_all_other_words_of_a_line_follow_from_the_attempt_and_the_step():
    tokenizer = word_tokenizer((*environment().vocabulary, *CONTEXT_WORDS, *WORDS))
    found = {}
    for drawn in ((), ("warmstart.lessons=0.5",), ("warmstart.asides=0.5",), ("warmstart.asides=1",)):
        made = reflections(load_recipe(POLICY, [*SMALL, "warmstart.reflections=64", *drawn]), environment(), tokenizer)
        for prompt, target in made(0):
            for line in tokenizer.decode(target[:-1]).split(" # ")[1:]:
                step, said = line.split(" ", 1)
                found.setdefault((prompt, step), set()).add(said)
    assert len(found) > 64
    assert {len(said) for said in found.values()} == {1}


def test_random_predictions_are_right_for_half_of_either_outcome_and_nothing_else_differs():
    told = [*SMALL, "bank.writer.reveal_outcome=false", "warmstart.reflections=64"]
    tokenizer = word_tokenizer((*environment().vocabulary, *CONTEXT_WORDS, *WORDS))

    def answers(*more):
        made = reflections(load_recipe(POLICY, [*told, *more]), environment(), tokenizer)
        return [(prompt, tokenizer.decode(target).split()) for step in range(4) for prompt, target in made(step)]

    true, random = answers(), answers("warmstart.predictions=random")
    directory = true[0][1].index("?") + 1
    assert [(prompt, words[directory + 1 :]) for prompt, words in true] == [
        (prompt, words[directory + 1 :]) for prompt, words in random
    ]
    for outcome in ("yes", "no"):
        guesses = [
            mine[directory] == outcome
            for (_, his), (_, mine) in zip(true, random, strict=True)
            if his[directory] == outcome
        ]
        # 256 fair coins: either share is within 4 standard deviations of a half.
        assert abs(sum(guesses) / len(guesses) - 0.5) < 2 / len(guesses) ** 0.5
