"""Tokens that an update gets, against those that the engine drew: streams, tools, rewritten histories, four clients.

The engine answers with random tokens, or with a call of a tool, and remembers each prompt and draw. The clients of
OpenAI and Anthropic, and agents of openai-agents and pydantic-ai, talk to the gateway before it. Its sessions become
episodes and an update's rows, as in a run that trains. ``COEVO_CLIENTS_PYTHON`` names an interpreter that has
the packages ``openai``, ``anthropic``, ``openai-agents`` and ``pydantic-ai-slim``.
"""

import os
import random
import socket
import subprocess
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.bench import Bench, BenchResult
from benchmarks.speed.gateway_processes import TOKEN, TOKEN_ID_BOUND
from benchmarks.speed.rendering import qwen
from coevo.configs.context_config import ContextConfig
from coevo.flows.gateway.gateway_app import Gateway, Tokens
from coevo.flows.gateway.run_gateway import GatewaySettings, ServedGateway
from coevo.models.engines.requests import Request, completions_of
from coevo.models.policy.context import Context
from coevo.models.policy.language_model import Policy
from coevo.models.policy.message_prompts import MessagePrompts
from coevo.models.trainer.samples import write_turns
from coevo.records.episode import Completion
from coevo.tasks.gateway.chat_agent import ChatAgent, root_of
from coevo.tasks.gateway.draw_queue import DrawQueue
from coevo.tasks.gateway.gateway_session import SessionLimits, Sessions
from coevo.tasks.gateway.session_episodes import EpisodeReader
from coevo.tasks.gateway.session_store import FILES, SessionStore, read_sessions
from coevo.tasks.gateway.session_tree import AnswerOrigin
from coevo.tasks.pending_revision import Position
from coevo.utilities.errors import CoevoError

TURNS = 10_000
CLIENTS = ("openai", "openai-stream", "anthropic", "anthropic-stream", "openai-agents", "pydantic-ai")
AT_ONCE = 100
"""Sessions of a process of a client, one after the other."""
PROCESSES = 2
"""Processes of clients at a time."""
CALL = '<tool_call>\n{"name": "go", "arguments": {"place": "safe"}}\n</tool_call>'
POLICY = "bench@0"
SCRIPT = '''
import asyncio, json, sys
from urllib.request import Request, urlopen

kind, url, token, first, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}


def end(name):
    body = json.dumps({"reward": 1.0, "success": True}).encode()
    urlopen(Request(f"{url}/s/{name}/outcome", body, {"Authorization": f"Bearer {token}"})).read()


def rewritten(messages, turn):
    """The history, of which every third turn has another past."""
    return [{"role": "user", "content": f"heat the mug, attempt {turn}"}, *messages[1:]] if turn % 3 == 2 else messages


def openai_talk(name, stream):
    from openai import OpenAI

    client = OpenAI(base_url=f"{url}/s/{name}/v1", api_key=token, max_retries=0)
    tools = [{"type": "function", "function": {"name": "go", "parameters": SCHEMA}}]
    messages = [{"role": "user", "content": "heat the mug"}]
    for turn in range(8):
        sent = rewritten(messages, turn)
        if stream:
            with client.chat.completions.stream(model="m", messages=sent, tools=tools) as events:
                for _ in events:
                    pass
                message = events.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(model="m", messages=sent, tools=tools, n=2).choices[0].message
        said = {"role": "assistant", "content": message.content or ""}
        calls = [each.model_dump(include={"id", "type", "function"}) for each in message.tool_calls or []]
        for each in calls:
            each["function"] = {key: each["function"][key] for key in ("name", "arguments")}
        messages += [{**said, "tool_calls": calls} if calls else said]
        messages += [{"role": "tool", "tool_call_id": each["id"], "content": "a mug"} for each in calls]
        messages += [] if calls else [{"role": "user", "content": f"and then? {turn}"}]


def anthropic_talk(name, stream):
    from anthropic import Anthropic

    client = Anthropic(base_url=f"{url}/s/{name}", api_key=token, max_retries=0)
    options = {"model": "m", "max_tokens": 32, "system": "Be brief.", "tools": [{"name": "go", "input_schema": SCHEMA}]}
    messages = [{"role": "user", "content": "heat the mug"}]
    for turn in range(8):
        sent = rewritten(messages, turn)
        if stream:
            with client.messages.stream(messages=sent, **options) as events:
                reply = events.get_final_message()
        else:
            reply = client.messages.create(messages=sent, **options)
        used = [each for each in reply.content if each.type == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": each.id, "content": "a mug"} for each in used]
        content = [each.model_dump(include={"type", "text", "id", "name", "input"}) for each in reply.content]
        messages += [{"role": "assistant", "content": content}, {"role": "user", "content": results or "and then?"}]


async def agents_talk(name):
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
    from agents.exceptions import AgentsException
    from openai import AsyncOpenAI

    @function_tool
    def go(place: str) -> str:
        """Go to a place."""
        return f"{place} has a mug"

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{url}/s/{name}/v1", api_key=token, max_retries=0)
    model = OpenAIChatCompletionsModel(model="m", openai_client=client)
    agent, heard = Agent(name="house", instructions="Be brief.", tools=[go], model=model), "heat the mug"
    for _ in range(3):
        try:
            result = await Runner.run(agent, heard, max_turns=6)
        except AgentsException:
            return
        heard = [*result.to_input_list(), {"role": "user", "content": "and then?"}]


async def pydantic_talk(name):
    from pydantic_ai import Agent
    from pydantic_ai.exceptions import AgentRunError
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=f"{url}/s/{name}/v1", api_key=token)
    agent, past = Agent(OpenAIChatModel("m", provider=provider), instructions="Be brief."), []

    @agent.tool_plain
    def go(place: str) -> str:
        """Go to a place."""
        return f"{place} has a mug"

    for heard in ("heat the mug", "and then?", "and now?"):
        try:
            result = await agent.run(heard, message_history=past)
        except AgentRunError:
            return
        past = result.all_messages()


for number in range(first, first + count):
    name = f"{kind}-{number}"
    if kind.startswith("openai-agents"):
        asyncio.run(agents_talk(name))
    elif kind.startswith("pydantic"):
        asyncio.run(pydantic_talk(name))
    else:
        (openai_talk if kind.startswith("openai") else anthropic_talk)(name, kind.endswith("stream"))
    end(name)
'''


class RecordingEngine:
    """An engine that answers at random and remembers what it drew.

    Attributes:
        drawn: number of draws by prompt, token ids and log-probs.
    """

    longest_prompt = 2**16

    def __init__(self) -> None:
        tokenizer = qwen()
        model = SimpleNamespace(generation_config=SimpleNamespace(eos_token_id=tokenizer.eos_token_id))
        self.policy = Policy(model, tokenizer)
        self.drawn: Counter[tuple[Any, ...]] = Counter()
        self._random, self._end = random.Random(0), tokenizer.eos_token_id
        self._call = tokenizer.encode(CALL, add_special_tokens=False)

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Complete every prompt."""
        rows = [self._row() for _ in requests]
        for request, row in zip(requests, rows, strict=True):
            self.drawn[_key(request.prompt_ids, *zip(*row, strict=True))] += 1
        return completions_of(self.policy.tokenizer, [self._end], rows)

    def _row(self) -> list[tuple[int, float]]:
        draw = self._random
        ids = [draw.randrange(300, TOKEN_ID_BOUND) for _ in range(draw.randrange(4, 24))]
        ids = [*self._call, self._end] if draw.random() < 0.4 else [*ids, self._end]
        return [(each, -draw.random()) for each in ids]


def run(bench: Bench) -> None:
    """Measure where it is missing, and print the figures."""
    found = bench.cell("tokens", tokens)
    for kind, count in found["clients"].items():
        print(f"{kind:18}{count:7} turns")
    print(f"{found['equal']} of {found['turns']} turns train on the tokens and log-probs that were drawn")


def tokens(turns: int = TURNS) -> BenchResult:
    """Number of turns whose rows of an update are what the engine drew, each once."""
    engine: Any = RecordingEngine()
    with TemporaryDirectory() as directory, ThreadPoolExecutor(PROCESSES) as threads:
        store = SessionStore(Path(directory, "sessions"))
        served = _served(engine, store, Path(directory, "token"))
        number = 0
        while engine.drawn.total() < turns:
            batch = [(kind, served.url, number) for kind in CLIENTS]
            list(threads.map(lambda each: _talk(*each), batch))
            number += AT_ONCE
        served.close()
        store.close()
        sessions = list(read_sessions(Path(directory, "sessions", FILES["training"])))
        reader = EpisodeReader("none", engine.policy.tokenizer, [engine.policy.tokenizer.eos_token_id], {POLICY: 0})
        episodes = [reader.episode(each, reader.task(each), 0, Position(1, 0)) for each in sessions]
        write_turns(Path(directory, "batch.parquet"), episodes)
        rows = pq.read_table(Path(directory, "batch.parquet")).to_pylist()
    trained = Counter(_key(row["prompt_ids"], row["token_ids"], row["logprobs"]) for row in rows)
    kinds: Counter[str] = Counter()
    for each in sessions:
        kinds[each.session.rpartition("-")[0]] += len(each.turns)
    equal = (trained & engine.drawn).total()
    return {"turns": engine.drawn.total(), "trained": len(rows), "equal": equal, "clients": dict(kinds)}


def _served(engine: Any, store: SessionStore, token_file: Path) -> ServedGateway:
    config, words = ContextConfig(style="chat"), engine.policy.tokenizer
    prompts = MessagePrompts(words, config.template)
    agent = ChatAgent(engine, DrawQueue(engine, 64), Context(config, words), prompts, None, root_of(0, 0))
    agent.serve(None, root_of(0, 0), AnswerOrigin(POLICY))
    sessions = Sessions(store, SessionLimits(), "training", POLICY, "")
    listener = socket.create_server(("127.0.0.1", 0))
    token_file.write_text(TOKEN, encoding="utf-8")
    gateway = Gateway(agent, sessions, Tokens(TOKEN, "bench"), 4 * 2**20, {})
    return ServedGateway(gateway, GatewaySettings(), listener, token_file)


def _talk(kind: str, url: str, first: int) -> None:
    """Let a client of a kind play its sessions in a process of its own."""
    python = os.environ.get("COEVO_CLIENTS_PYTHON")
    if python is None:
        raise CoevoError("COEVO_CLIENTS_PYTHON is not set: name an interpreter with the clients of this benchmark")
    line = [python, "-P", "-c", SCRIPT, kind, url, TOKEN, str(first), str(AT_ONCE)]
    here = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(line, env=here, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{kind}: {done.stderr[-2000:]}")


def _key(prompt: Sequence[int], ids: Sequence[int], logprobs: Sequence[float]) -> tuple[Any, ...]:
    return tuple(prompt), tuple(ids), tuple(np.asarray(logprobs, dtype=np.float32).tolist())
