"""The gateway before a real vLLM server, and the same run served in a process of its own."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from support.gateway import TOKENS, chat_run, listening, served

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
ASK = [{"role": "user", "content": "house lotus . task heat mug to counter"}]
IDS = {"return_token_ids": True}


def talk(gateway, session, turns=3):
    """Token ids of a conversation, and the log-probs of its last answer."""
    client, history, ids = gateway.openai(session, timeout=600), list(ASK), ()
    for turn in range(turns):
        reply = client.chat.completions.create(model="m", messages=history, logprobs=True, extra_body=IDS)
        (choice,) = reply.choices
        assert tuple(reply.prompt_token_ids[: len(ids)]) == ids
        ids = (*reply.prompt_token_ids, *choice.token_ids)
        said = choice.message.model_dump(exclude_none=True)
        history += [said, {"role": "user", "content": f"and then? {turn}"}]
    return ids, [each.logprob for each in choice.logprobs.content]


def test_conversations_side_by_side_keep_the_tokens_that_servers_drew(tmp_path):
    workspace = chat_run(tmp_path, overrides=["rollout.engine.type=vllm"], head_dim=32)
    with listening(workspace) as gateway, ThreadPoolExecutor(8) as clients:
        talks = dict(zip("abcdefgh", clients.map(lambda name: talk(gateway, name), "abcdefgh"), strict=True))
        client = gateway.openai("several")
        reply = client.chat.completions.create(model="m", messages=ASK, n=4, max_tokens=5, extra_body=IDS)
        assert len({tuple(choice.token_ids) for choice in reply.choices}) > 1
        assert all(0 < len(choice.token_ids) <= 5 for choice in reply.choices)
        pieces = client.chat.completions.create(model="m", messages=ASK, stream=True, stop=["a"], extra_body=IDS)
        ends = [choice for chunk in pieces for choice in chunk.choices if choice.finish_reason]
        assert 0 < len(ends[0].token_ids) <= TOKENS
        for name in talks:
            headers = {"Authorization": f"Bearer {gateway.token}"}
            client._client.post(f"{gateway.url}/s/{name}/outcome", json={"reward": 1, "success": True}, headers=headers)
        kept = gateway.kept()
    for name, (ids, logprobs) in talks.items():
        turn = kept[name].turns[2]
        assert (*kept[name].prompt_ids(2), *turn.token_ids) == ids
        assert list(turn.logprobs) == logprobs
    with served(workspace) as url:
        reached = gateway.openai("a")
        reached.base_url = f"{url}/v1"
        assert reached.chat.completions.create(model="m", messages=ASK).choices
