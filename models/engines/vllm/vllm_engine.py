"""The vLLM engine: batched requests of token ids, and new weights after every update.

A turn of a batch is one request per replica. A single request goes to its group's replica at once, beside those of
other threads.

Repeatability. With ``draws: keyed`` every completion has a seed that is a function of its request's key alone: its
place in the batch, the number of replicas and a restarted server do not change it, and two sides of a comparison are
paired as they are with transformers. vLLM draws by the Gumbel trick, so its tokens differ from the transformers
engine's, and its log-probs depend in their last bits on the rest of the batch: two runs of a recipe have equal tokens
as long as no draw falls within that rounding, but need not be bit-equal. With ``draws: free`` rows are independent, and
no draw can be repeated. (One ``seed`` for a whole request, which is all that vLLM itself offers, draws alike for each
of its prompts: a group would be N copies of one rollout.)
"""

import json
import os
import re
import secrets
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from copy import copy
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

from peft import PeftModel
from safetensors import safe_open
from safetensors.torch import save_file

from coevo.configs.rollout.rollout_config import SamplingConfig, VllmEngineConfig
from coevo.models.engines.requests import Request, check_lengths, completions_of
from coevo.models.engines.vllm.engine_launch import ON_THIS_MACHINE, EngineLaunch, ServerPlaces
from coevo.models.engines.vllm.expected import Weights
from coevo.models.engines.vllm.replica import Replica, closeness_metrics
from coevo.models.engines.vllm.server_client import KEY, Client
from coevo.models.engines.vllm.vllm_server import (
    ServerSettings,
    interpreter,
    sender_settings,
)
from coevo.models.policy.language_model import ends_of, limit_of
from coevo.models.policy.policy import PEFT_CONFIG, PEFT_WEIGHTS, WEIGHTS, base_of, check_fits, outline, weights_at
from coevo.records.draws import seed_of
from coevo.records.episode import Completion
from coevo.utilities.errors import CoevoError

TokenLogprobs = list[tuple[int, float]]
"""Token ids of one completion, with their log-probs."""
CONFIG, HEAD = "config.json", "lm_head.weight"
HEAD_FILE = "model-lm_head.safetensors"
EMBEDDINGS = "embed_tokens.weight"


class Routing:
    """Groups divided among replicas by the number of their rows.

    Args:
        replicas: number of replicas.
    """

    def __init__(self, replicas: int) -> None:
        self._replicas = replicas
        self._of: dict[str, int] = {}
        self._settled: dict[str, int] = {}
        self._settling = Lock()

    def settle(self, group: str) -> int:
        """Replica of a group whose requests come one by one; a new group gets the one with the fewest groups."""
        with self._settling:
            if group in self._of:  # the last row of a batch
                return self._of[group]
            if group not in self._settled:
                groups = Counter(self._settled.values())
                self._settled[group] = min(self._all(), key=lambda replica: groups[replica])
            return self._settled[group]

    def forget(self) -> None:
        """Place every group anew from now on."""
        with self._settling:
            self._settled.clear()

    def divide(self, groups: Sequence[str]) -> list[list[int]]:
        """Rows of each replica, in order; ``groups`` names the group of each row.

        A group keeps its replica as long as it has requests; a new one, the largest first, goes to the replica with the
        fewest rows.
        """
        sizes = Counter(groups)
        self._of = {group: replica for group, replica in self._of.items() if group in sizes}
        loads = [sum(sizes[group] for group, at in self._of.items() if at == replica) for replica in self._all()]
        for group, size in sizes.most_common():
            if group not in self._of:
                self._of[group] = loads.index(min(loads))
                loads[self._of[group]] += size
        return [[row for row, group in enumerate(groups) if self._of[group] == replica] for replica in self._all()]

    def _all(self) -> range:
        return range(self._replicas)


class VllmEngine:
    """Generates in vLLM servers.

    Servers of the run start at once; the first call that needs them waits for them.

    Args:
        policy: directory of the first policy.
        config: number of servers, and their place.
        sampling: sampling of tokens.
        directory: for weights that servers read, and for their logs.
        sleeps: True if ``sleep`` frees memory; it never frees that of a CPU.
        places: of the servers that it starts.

    Attributes:
        key: API key of the servers. Servers of the run get a new one each time.
    """

    def __init__(
        self,
        policy: Path,
        config: VllmEngineConfig,
        sampling: SamplingConfig,
        directory: Path,
        sleeps: bool = False,
        places: ServerPlaces = ON_THIS_MACHINE,
    ) -> None:
        self._places = places
        self.policy = outline(policy)
        self._config = config
        self._sampling = sampling
        self._sleeps = sleeps
        self.key = _key(config)
        self._directory = directory.absolute()
        for left in self._directory.glob("weights-*"):
            shutil.rmtree(left)
        self._numbers = count()
        self._mark = secrets.token_hex(4)
        self._ends = ends_of(self.policy)
        self._adapted = isinstance(self.policy.model, PeftModel)
        self._limit = min(limit_of(self.policy.model.config), config.max_model_len or 2**62)
        self._base = base_of(policy) if self._adapted else ""  # the checked one, not the adapters' own entry
        self._weights = self._lay_out(policy)
        self._replicas = self._begin()
        self._routing = Routing(len(self._replicas))
        self._threads = ThreadPoolExecutor(len(self._replicas), thread_name_prefix="vllm")
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="probe")
        self._aside.submit(lambda: self._weights.probe)  # while the servers start

    @property
    def longest_prompt(self) -> int:
        """Most tokens of a prompt that leave room for the longest answer."""
        return self._limit - self._sampling.max_new_tokens

    @property
    def replicas(self) -> Sequence[Replica]:
        """Servers of this engine."""
        return self._replicas

    def load(self, policy: Path) -> dict[str, float]:
        """Generate with the weights in this directory from now on.

        Returns:
            Where log-probs prove the weights: ``change`` of the policy and the largest ``noise`` of a server, in nats,
            and ``not_distinguishable``, the share of servers whose noise hides the change.

        Raises:
            CoevoError: a server does not have them then: digests of its tensors, or its log-probs of a fixed prompt,
                differ, or its log-probs are those of the weights before.
        """
        check_fits(self.policy, policy)
        former = self._weights
        self._weights = self._lay_out(policy, former)
        found = list(self._threads.map(lambda replica: replica.load(self._weights), self._replicas))
        shutil.rmtree(former.directory)
        return closeness_metrics([each for each in found if each])

    def sleep(self, level: int) -> None:
        """Free the servers' GPUs until the next ``load``.

        Args:
            level: 1 keeps the weights in CPU memory, 2 keeps nothing except the base model of adapters, which no load
                brings.
        """
        depth = 1 if self._adapted else level
        list(self._threads.map(lambda replica: replica.sleep(depth), self._replicas))

    def with_sampling(self, sampling: SamplingConfig) -> "VllmEngine":
        """View of this engine whose requests ask the same servers for another sampling."""
        view = copy(self)
        view._sampling = sampling
        return view

    def forget(self) -> None:
        """Compute every prefix again from now on."""
        self._routing.forget()
        list(self._threads.map(lambda replica: replica.forget(), self._replicas))

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Complete every prompt, in order.

        Raises:
            CoevoError: a prompt is too long, or neither a server nor its replacement answers.
        """
        check_lengths(requests, self._sampling.max_new_tokens, self._limit)
        drawn = self._of_turn(requests) if len(requests) > 1 else self._of_episode(requests)
        return completions_of(self.policy.tokenizer, self._ends, drawn)

    def _of_episode(self, requests: Sequence[Request]) -> list[TokenLogprobs]:
        return [
            _drawn(choice)
            for request in requests
            for choice in self._ask(self._replicas[self._routing.settle(request.group)], [request])
        ]

    def _of_turn(self, requests: Sequence[Request]) -> list[TokenLogprobs]:
        shares = self._routing.divide([request.group for request in requests])
        answers = self._threads.map(self._ask, self._replicas, [[requests[row] for row in rows] for rows in shares])
        found: dict[int, TokenLogprobs] = {}
        for rows, choices in zip(shares, answers, strict=True):
            found |= zip(rows, map(_drawn, choices), strict=True)
        return [found[row] for row in range(len(requests))]

    def close(self) -> None:
        """End the servers of the run."""
        self._aside.shutdown(wait=False, cancel_futures=True)
        self._threads.shutdown()
        for replica in self._replicas:
            replica.close()

    def _ask(self, replica: Replica, requests: Sequence[Request]) -> list[dict[str, Any]]:
        body = completion_body(requests, self._sampling, self._ends, self._config.draws)
        return replica.complete(body) if requests else []

    def _lay_out(self, policy: Path, former: Weights | None = None) -> Weights:
        number = next(self._numbers)
        into = self._directory / f"weights-{number}"
        directory = serve_adapters(policy, into) if self._adapted else serve_model(policy, into)
        adapter = f"adapter-{self._mark}-{number}" if self._adapted else ""  # other processes may have theirs there
        return Weights(policy, directory, adapter, self._config, self._sampling.temperature, former)

    def _begin(self) -> list[Replica]:
        config, weights, key = self._config, self._weights, self.key
        if self._adapted and config.sync != "files":
            raise CoevoError(
                f"rollout.engine.sync={config.sync} sends whole weights, but the policy has adapters: set sync=files"
            )
        launch = EngineLaunch(config, key, self._directory, self._places)
        if config.urls:
            return [Replica(config, weights, None, url, key, launch.sender(at)) for at, url in enumerate(config.urls)]
        with ExitStack() as begun:
            replicas = []
            for at in range(config.replicas):
                replicas.append(Replica(config, weights, launch.server(at, self._serving), "", key, launch.sender(at)))
                begun.callback(replicas[-1].close)
            begun.pop_all()
        return replicas

    def _serving(self, weights: Weights) -> ServerSettings:
        if not self._adapted:
            return ServerSettings(str(weights.directory), 0, self._limit, self._sleeps, self._places.gpus)
        adapters = self.policy.model.peft_config["default"]
        return ServerSettings(self._base, int(adapters.r), self._limit, self._sleeps, self._places.gpus)


def completion_body(
    requests: Sequence[Request], sampling: SamplingConfig, ends: Sequence[int], draws: str
) -> dict[str, Any]:
    """Body of one request to a server, for the prompts of several.

    Args:
        requests: prompts and keys.
        sampling: sampling of tokens.
        ends: ids of the tokens that end an answer.
        draws: ``rollout.engine.draws``.
    """
    body = {
        "prompt": [request.prompt_ids for request in requests],
        "max_tokens": sampling.max_new_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "stop_token_ids": list(ends),
        "logprobs": 0,
    }
    if draws == "keyed":
        return body | {"seeds": [seed_of(request.key) % 2**63 for request in requests]}
    return body | {"return_token_ids": True, "return_tokens_as_token_ids": True}


def check_there(config: VllmEngineConfig, section: str = "rollout.engine", here: bool = True) -> None:
    """Check that servers are available, without starting any; those of a cluster are not ``here``.

    Raises:
        CoevoError: a server that is given by URL does not answer, or no vLLM is found to start our own with.
    """
    for url in config.urls:
        if not Client(url, config.timeout).is_ready():
            raise CoevoError(f"the vLLM server at {url} does not answer: start it, or correct {section}.urls")
    if not config.urls or config.sync != "files":
        interpreter(config, section, here)
    if config.sync != "files":
        sender_settings(config, 0, "")


def _key(config: VllmEngineConfig) -> str:
    """Create a new key for servers of the run; read the key of servers given by URL from the environment."""
    if not config.urls:
        return secrets.token_urlsafe(32)
    key = os.environ.get(KEY, "")
    if not re.fullmatch(r"[!-~]*", key):
        raise CoevoError(f"{KEY} is not an API key: use printable ASCII characters without spaces")
    return key


def _drawn(choice: dict[str, Any]) -> TokenLogprobs:
    return list(zip(choice["token_ids"], choice["logprobs"]["token_logprobs"], strict=True))


def serve_model(policy: Path, into: Path) -> Path:
    """Lay out a policy's full weights; return the directory.

    Raises:
        CoevoError: the policy has no weights, or no embedding to untie.
    """
    _link(policy, into, [path.name for path in policy.iterdir() if path.is_file() and path.name != CONFIG])
    config = json.loads((policy / CONFIG).read_text(encoding="utf-8"))
    if config.get("tie_word_embeddings"):
        _untie(weights_at(policy / WEIGHTS), into)
        config["tie_word_embeddings"] = False
    (into / CONFIG).write_text(json.dumps(config, indent=1), encoding="utf-8")
    return into


def serve_adapters(policy: Path, into: Path) -> Path:
    """Lay out a policy's adapters; return the directory."""
    weights_at(policy / PEFT_WEIGHTS)
    _link(policy, into, (PEFT_CONFIG, PEFT_WEIGHTS))
    return into


def _untie(weights: Path, into: Path) -> None:
    with safe_open(weights, framework="pt") as tensors:
        names = [name for name in tensors.keys() if name.endswith(EMBEDDINGS)]  # noqa: SIM118
        if len(names) != 1:
            raise CoevoError(f"{weights}: no {EMBEDDINGS} to tie the output layer to; untie the model's embeddings")
        save_file({HEAD: tensors.get_tensor(names[0])}, into / HEAD_FILE, metadata={"format": "pt"})


def _link(source: Path, into: Path, names: Iterable[str]) -> None:
    """Hard-link files into another directory, so that they survive their source; copy them if links fail."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    for name in names:
        path = (source / name).resolve()
        try:
            os.link(path, into / name)
        except OSError:  # another disk or mount, or a file of another user
            shutil.copyfile(path, into / name)
