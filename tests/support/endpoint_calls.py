"""Calls of a policy behind an endpoint, as requests of an engine; as a script, a process that makes them all.

python tests/support/endpoint_calls.py URL LEDGER COUNT [BUDGET]
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def settings(url, budget=None, **more):
    from coevo.configs.policy_config import EndpointPolicyConfig  # where the root is found, see ``main``

    bound = {"tokens": budget} if isinstance(budget, int) else budget
    fields = {"model": "m", "timeout": 60.0, "concurrency": 8, "budget": bound, **more}
    return EndpointPolicyConfig.model_validate({"type": "endpoint", "url": url, **fields})


def engine(config, ledger, warn=print, **sampling):
    from coevo.configs.rollout.rollout_config import SamplingConfig
    from coevo.models.endpoint_policy.endpoint_engine import EndpointEngine

    return EndpointEngine(config, SamplingConfig(**{"max_new_tokens": 32, **sampling}), Path(ledger), warn)


def requests(
    count, text="Task: house lotus . task put mug to table\n\nYou observe: at hall hold nothing . seen nothing"
):
    """Requests of so many draws."""
    from coevo.models.engines.requests import Request
    from coevo.records.draws import key

    return [Request(prompt(("user", text)), key(number), "group") for number in range(count)]


def prompt(*messages):
    """Token ids of messages, up to the beginning of the answer."""
    from coevo.models.policy.encoding import TemplateEncoder
    from coevo.models.policy.layout import Layout
    from coevo.models.policy.tokenizers import MessageTokens

    tokens = MessageTokens()
    encoder = TemplateEncoder(tokens)
    roles, texts = zip(*messages, strict=True)
    return encoder.ids(Layout(tokens, encoder, {}).prompt(roles).parts(encoder, texts))


def main(url, ledger, count, budget=None):
    sys.path.insert(0, str(ROOT))
    made = engine(settings(url, budget and int(budget)), ledger)
    try:
        made.generate(requests(int(count)))
    finally:
        made.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
