"""A real, untrained policy that plays the embedded environment."""

from functools import cache

from configs.load import load_recipe
from envs.registry import make
from models.context import CONTEXT_WORDS
from models.policy import build
from records.draws import key
from tasks.assemble import player_of

CONFIG = load_recipe("homerules-coevo-rl")


@cache
def environment():
    return make(CONFIG.env)


@cache
def player():
    """An untrained player: what it writes is noise, but always the same noise for the same key."""
    policy = build(CONFIG.policy, (*environment().vocabulary(), *CONTEXT_WORDS), key(1))
    return player_of(CONFIG, environment(), policy)
