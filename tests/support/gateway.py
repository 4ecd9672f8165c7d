"""Gateways of a small run with a random chat policy, in this process and in one of their own."""

import json
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from urllib.request import Request, urlopen

import uvicorn
from openai import OpenAI
from support.runs import ROOT
from support.small_run import build
from support.writer_models import model

from coevo.flows.endpoint.endpoint_app import application
from coevo.flows.endpoint.listening import listening as listening_at
from coevo.flows.endpoint.model import Model
from coevo.flows.endpoint.origin_guard import hosts_of
from coevo.flows.endpoint.request_limits import DEFAULT
from coevo.flows.gateway.run_gateway import GatewaySettings, gateway_of
from coevo.flows.packages.serving import packaged
from coevo.lineage.trust import confirmed_before
from coevo.lineage.workspace import Workspace
from coevo.models.policy.policy import save
from coevo.tasks.gateway.session_store import FILES, read_sessions

TOKENS = 24
"""Maximum tokens of an answer."""
SETTINGS = ("context.style=chat", f"rollout.sampling.max_new_tokens={TOKENS}")
WON, LOST = {"reward": 1.0, "success": True}, {"reward": 0.0, "success": False}
LISTENS = re.compile(r"Gateway of (\S+) at (http://127\.0\.0\.1:\d+)/s/SESSION/v1; its token is in (\S+)")


def chat_run(root, name="first", template="qwen3", overrides=(), head_dim=16):
    """A run of four revisions with a random chat policy and two lessons of the scope ``lotus``; its workspace."""
    policy = root / "policy"
    policy.mkdir(parents=True)
    save(model(template, positions=4096, head_dim=head_dim), policy)
    named = f"policy={{type: pretrained, path: '{policy}', dtype: float32}}"
    return build(root / "workspace", name, overrides=[*SETTINGS, named, *overrides], policy=policy).workspace.root


@dataclass(frozen=True)
class Reached:
    """A gateway as a client reaches it."""

    url: str
    token: str
    workspace: object

    def openai(self, session, token=None, **options):
        """OpenAI's client of a session."""
        return OpenAI(base_url=f"{self.url}/s/{session}/v1", api_key=token or self.token, max_retries=0, **options)

    def kept(self, mode="training", run="first"):
        """Sessions on the disk."""
        return {each.session: each for each in read_sessions(self.workspace / "gateway/sessions" / run / FILES[mode])}


@contextmanager
def listening(workspace, **settings):
    """A gateway in this process."""
    with gateway_of("first", GatewaySettings(**settings), Workspace(workspace)) as served:
        yield Reached(served.url, served.token_file.read_text(), workspace)


@contextmanager
def served(workspace, registered=""):
    """A packaged agent behind the endpoint's application in this process; its URL."""
    package = packaged("first", Workspace(workspace), confirmed_before)
    with package as (_, directory), listening_at("127.0.0.1", 0) as sock:
        model = Model(str(directory), registered)
        app = application(model, DEFAULT, hosts_of("127.0.0.1", ()))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        thread = Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@contextmanager
def running(workspace, *options):
    """A gateway in a process of its own, and that process, which is killed at the end."""
    line = [sys.executable, "-P", "-m", "coevo.flows", "gateway", "first", *options, "--workspace", str(workspace)]
    process = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        found = None
        while found is None and (said := process.stdout.readline()):
            found = LISTENS.search(said)
        assert found, process.stderr.read()
        yield Reached(found[2], Path(found[3]).read_text(encoding="utf-8"), workspace), process
    finally:
        process.kill()
        process.communicate()


class Agent:
    """An agent's side of a gateway."""

    def __init__(self, served):
        self.url, self.token = served.url, served.token_file.read_text(encoding="utf-8")
        self.told = {}

    def post(self, path, body):
        request = Request(f"{self.url}{path}", json.dumps(body).encode(), {"Authorization": f"Bearer {self.token}"})
        with urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def ask(self, name, text="go", model="any", **more):
        client = OpenAI(base_url=f"{self.url}/s/{name}/v1", api_key=self.token, max_retries=0, timeout=120)
        messages = [{"role": "user", "content": text}]
        ids = {"return_token_ids": True}
        reply = client.chat.completions.create(model=model, messages=messages, extra_body=ids, **more)
        told = self.told.setdefault(name, [])
        told += [(reply.prompt_token_ids, choice.token_ids) for choice in reply.choices]
        return reply.coevo["policy"]

    def hear(self, name, text="go", **more):
        """Ask for an answer in pieces; its token ids."""
        client = OpenAI(base_url=f"{self.url}/s/{name}/v1", api_key=self.token, max_retries=0, timeout=120)
        asked = {"messages": [{"role": "user", "content": text}], "extra_body": {"return_token_ids": True}, **more}
        chunks = client.chat.completions.create(model="any", stream=True, **asked)
        (ids,) = [choice.token_ids for chunk in chunks for choice in chunk.choices if choice.finish_reason]
        return ids

    def play(self, name, group="g", outcome=WON, turns=2, **opening):
        """Play a session to its end; the policies that answered."""
        self.post(f"/s/{name}", {"group": group, **opening})
        by = [self.ask(name, f"house lotus . turn {turn}") for turn in range(turns)]
        self.post(f"/s/{name}/outcome", outcome)
        return by


@contextmanager
def commanded(workspace, *arguments):
    """A command that listens, in a process of its own, and an agent of its gateway."""
    line = [sys.executable, "-P", "-m", "coevo.flows", *arguments, "--workspace", str(workspace)]
    with subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            found = None
            while found is None and (said := process.stdout.readline()):
                found = LISTENS.search(said)
            assert found, f"exit code {process.wait()}"
            yield process, Agent(SimpleNamespace(url=found[2], token_file=Path(found[3])))
        finally:
            process.kill()
