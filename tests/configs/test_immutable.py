"""Values that are made of a configuration stay what they were."""

import pytest
from pydantic import ValidationError
from support.immutable import changeable

import coevo.configs
from coevo.configs.load.load import load_recipe


def test_no_value_can_be_changed():
    assert changeable(coevo.configs) == set()


def test_no_setting_can_be_changed():
    config = load_recipe("homerules-coevo-rl")
    for section in (config, config.env, config.policy, config.rollout.sampling, config.bank.writer):
        name = next(iter(type(section).model_fields))
        with pytest.raises(ValidationError, match="frozen"):
            setattr(section, name, getattr(section, name))
