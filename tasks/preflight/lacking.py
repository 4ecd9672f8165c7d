"""Things that a start on this machine lacks: the policy's model, and the key of its writer's author.

They are looked up before anything is written: a key in the place of its variable's name must not be stored.
"""

from collections.abc import Iterator

from coevo.configs.policy_config import PretrainedPolicyConfig
from coevo.configs.run_config import RunConfig
from coevo.models.policy.foreign import absent
from coevo.tasks.run.run_author import check_author
from coevo.utilities.errors import CoevoError


def lacking(config: RunConfig, guessed: bool = False) -> Iterator[str]:
    """Reasons why a run cannot start here, one line each.

    Args:
        config: the run.
        guessed: True if its prompts were estimated without the policy's files.
    """
    if isinstance(config.policy, PretrainedPolicyConfig) and guessed:
        yield str(absent(config.policy.path))
    yield from _lacking_key(config)


def _lacking_key(config: RunConfig) -> Iterator[str]:
    """Reason why the author's endpoint cannot be asked; it would be found once the policy has warmed up."""
    try:
        check_author(config)
    except CoevoError as error:
        yield str(error)
