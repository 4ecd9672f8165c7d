"""One replica: a vLLM server with the weights it should have. A dead or hung one of our own is started anew."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from configs.engine import VllmEngineConfig
from configs.errors import CoevoError
from models.engines.vllm.check import Probe
from models.engines.vllm.client import Client, MissingError, UnreachableError
from models.engines.vllm.server import Server

T = TypeVar("T")
Start = Callable[["Weights"], Server]


@dataclass(frozen=True)
class Weights:
    """What a server should have.

    Attributes:
        directory: as ``models.engines.vllm.weights`` laid it out.
        adapter: name of the adapters in it; empty for full weights.
        probe: what it then answers.
    """

    directory: Path
    adapter: str
    probe: Probe


class Replica:
    """A server, and what it takes to have it again.

    Args:
        config: time limits, and how far log-probs may be off.
        weights: those to begin with.
        start: starts a server with weights; None for one that somebody else runs at ``url``.
        url: where that one is.
        key: that it asks for; empty for none.
    """

    def __init__(
        self, config: VllmEngineConfig, weights: Weights, start: Start | None, url: str = "", key: str = ""
    ) -> None:
        self._config = config
        self._weights = weights
        self._start = start
        self._server = start(weights) if start else None
        self._key = key
        self._client = Client(self._server.url if self._server else url, config.timeout, key)
        self._is_new = True
        self._held = ""
        self._asleep = False

    def load(self, weights: Weights) -> None:
        """Have other weights from now on, checked.

        Raises:
            CoevoError: they are not those that the server then answers with, or it cannot be had.
        """
        self._settle()
        self._weights = weights
        self._insist(self._take)

    def sleep(self, level: int) -> None:
        """Leave its GPUs to others until it is next needed; at level 1 weights stay in main memory, at 2 nothing does.

        One of our own that does not answer is ended, which leaves them as well, and started anew to wake.
        """
        if self._asleep:
            return
        self._settle()
        try:
            self._client.post(f"/sleep?level={level}", {})
        except UnreachableError:
            if self._server is None:
                raise
            self._server.stop()
        self._asleep = True

    def forget(self) -> None:
        """Have nothing in the prefix cache."""
        if not self._is_new and not self._asleep:  # either has none
            self._insist(self._reset)

    def complete(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The choices that answer a batch, in the order of its prompts.

        A server that died or hung while it had the batch is asked for all of it again; nothing of a first answer is
        kept, and with seeds the second one is equal.

        Raises:
            CoevoError: it cannot be had.
        """
        self._settle()
        if self._asleep:
            self._insist(self._take)
        return self._insist(lambda: self._complete(body))

    def close(self) -> None:
        """End a server of our own."""
        if self._server:
            self._server.stop()

    @property
    def url(self) -> str:
        """Where it is at present."""
        return self._client.url

    @property
    def server(self) -> Server | None:
        """The process, where it is one of our own."""
        return self._server

    def _insist(self, ask: Callable[[], T]) -> T:
        """What a server says; one of our own that does not is started anew, so many times."""
        for _ in range(self._config.restarts if self._start else 0):
            try:
                return ask()
            except UnreachableError:
                self._restart()
        try:
            return ask()
        except UnreachableError as error:
            if self._server:
                raise CoevoError(
                    f"{error}, nor did those started in its place: see {self._server.log}, or raise "
                    f"rollout.engine.timeout={self._config.timeout:g} s"
                ) from None
            raise CoevoError(f"{error}: start it again, then continue with `coevo resume`") from None

    def _settle(self) -> None:
        """Wait for a server that was just started, and make sure of its weights."""
        if not self._is_new:
            return
        self._await()
        if self._server is None:
            self._insist(self._take)
        else:
            self._insist(self._verify)
        self._is_new = False

    def _restart(self) -> None:
        assert self._start
        assert self._server
        self._server.stop()
        self._held, self._asleep = "", False
        self._server = self._start(self._weights)
        self._client = Client(self._server.url, self._config.timeout, self._key)
        self._await()
        self._verify()

    def _await(self) -> None:
        if self._server:
            self._server.wait(self._config.startup_timeout, self._client.is_ready)
            if self._weights.adapter:
                self._add_adapter()
        elif not self._client.is_ready():
            raise CoevoError(f"the vLLM server at {self.url} does not answer: start it, then `coevo resume`")

    def _take(self) -> None:
        """Bring the weights to the server, which is awake then."""
        if self._asleep:
            self._client.post("/wake_up?tags=weights", {})  # keys and values need their memory only afterwards
        if self._weights.adapter:
            self._add_adapter()
        else:
            where = {"weights_path": str(self._weights.directory)}
            self._client.post("/collective_rpc", {"method": "reload_weights", "kwargs": where})
        if self._asleep:
            self._rise()
        self._reset()
        self._verify()

    def _rise(self) -> None:
        if self._client.post("/wake_up?tags=kv_cache", {})["status"] != "awake":
            raise UnreachableError(f"the vLLM server at {self.url} does not wake up")
        self._asleep = False

    def _add_adapter(self) -> None:
        former, self._held = self._held, self._weights.adapter
        adapter = {"lora_name": self._held, "lora_path": str(self._weights.directory), "load_inplace": True}
        self._client.post("/v1/load_lora_adapter", adapter)
        if former and former != self._held:
            self._client.post("/v1/unload_lora_adapter", {"lora_name": former})

    def _reset(self) -> None:
        if not self._client.post("/reset_prefix_cache", {})["success"]:
            raise UnreachableError(f"the vLLM server at {self.url} still computes something, and keeps its cache")

    def _verify(self) -> None:
        answer = self._client.post("/v1/completions", self._weights.probe.body() | self._named())
        self._weights.probe.check(answer["choices"][0], self._config, self.url)

    def _complete(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        path = "/coevo/completions" if "seeds" in body else "/v1/completions"
        try:
            choices: list[dict[str, Any]] = self._client.post(path, {**body, **self._named()})["choices"]
        except MissingError as error:
            if "seeds" not in body:
                raise
            raise CoevoError(
                f"{error}: start it with our extension, as docs/engines.md says, or set rollout.engine.draws=free"
            ) from None
        if [choice["index"] for choice in choices] != list(range(len(body["prompt"]))):
            raise UnreachableError(f"the vLLM server at {self.url} answered {len(choices)} of {len(body['prompt'])}")
        return choices

    def _named(self) -> dict[str, str]:
        return {"model": self._weights.adapter} if self._weights.adapter else {}
