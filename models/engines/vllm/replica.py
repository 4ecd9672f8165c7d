"""One replica: a vLLM server with its weights. A dead or hanging server of the run is restarted.

Several threads may ask for completions at once. The first that finds the server dead restarts it; the others wait for
that, and ask the new one. Everything else is for one thread at a time.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import RLock
from time import monotonic, sleep
from typing import Any, TypeVar

from coevo.configs.rollout.rollout_config import VllmEngineConfig
from coevo.models.engines.vllm.expected import Weights
from coevo.models.engines.vllm.sender import FILES, Delivery
from coevo.models.engines.vllm.server_check import Closeness
from coevo.models.engines.vllm.server_client import Client, ConflictError, MissingError, UnreachableError
from coevo.models.engines.vllm.vllm_server import VllmServer
from coevo.utilities.errors import CoevoError
from coevo.utilities.processes import PlaceLostError

T = TypeVar("T")
Start = Callable[[Weights], VllmServer]
RETRY_INTERVAL_S = 0.2
"""Seconds between two requests to empty a cache that is in use."""
GONE = (UnreachableError, PlaceLostError)
"""Errors of a server that does not answer, or whose place is lost; another one may answer."""


class Replica:
    """A server, and everything to restart it.

    Args:
        config: time limits, and the tolerance of log-probs.
        weights: the first weights.
        start: starts a server with weights; None for a foreign server at ``url``.
        url: address of the foreign server.
        key: its API key; empty for none.
        delivery: way for full weights to it.
    """

    def __init__(
        self,
        config: VllmEngineConfig,
        weights: Weights,
        start: Start | None,
        url: str = "",
        key: str = "",
        delivery: Delivery = FILES,
    ) -> None:
        self._config = config
        self._delivery = delivery
        self._weights = weights
        self._start = start
        self._server = start(weights) if start else None
        self._key = key
        self._client = Client(self._server.url if self._server else url, config.timeout, key)
        self._is_new = True
        self._computes = False
        self._held = ""
        self._closeness: Closeness | None = None
        self._asleep = False
        self._changing = RLock()
        self._failed: CoevoError | None = None

    def load(self, weights: Weights) -> Closeness | None:
        """Switch to other weights and check them; return how near both are where log-probs prove them.

        Raises:
            CoevoError: the server's answers do not match them, or it is not available.
        """
        self._settle()
        self._weights, self._closeness = weights, None
        self._insist(self._take)
        return self._closeness

    def sleep(self, level: int) -> None:
        """Free its GPUs until it is next needed; at level 1 weights stay in main memory, at level 2 none do.

        A server of the run that does not answer is ended, which also frees them, and restarted to wake.
        """
        if self._asleep:
            return
        self._settle()
        self._delivery.close()  # a sender may hold memory of the GPU
        try:
            self._client.post(f"/sleep?level={level}", {})
        except UnreachableError:
            if self._server is None:
                raise
            self._server.stop()
        self._asleep = True

    def forget(self) -> None:
        """Empty the prefix cache."""
        if not self._is_new and not self._asleep:  # in both cases it is empty
            self._insist(self._reset)

    def complete(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Choices that answer a batch, in the order of its prompts.

        A server that died or hung during the batch gets the whole batch again; nothing of a first answer is kept, and
        with seeds the second one is equal.

        Raises:
            CoevoError: the server is not available.
        """
        with self._changing:
            self._settle()
            if self._asleep:
                self._insist(self._take)
        return self._insist(lambda: self._complete(body))

    def close(self) -> None:
        """End a server of the run, and what delivers its weights."""
        self._delivery.close()
        if self._server:
            self._server.stop()

    @property
    def url(self) -> str:
        """Current address of the server."""
        return self._client.url

    @property
    def server(self) -> VllmServer | None:
        """Process of a server of the run; None for a foreign one."""
        return self._server

    def _insist(self, ask: Callable[[], T]) -> T:
        """Ask a server; restart a server of the run that does not answer, up to the configured number of times."""
        for _ in range(self._config.restarts if self._start else 0):
            with self._changing:
                asked = self._server
            try:
                return ask()
            except GONE:
                with suppress(PlaceLostError):  # nothing answers in a lost place: the next request replaces it, too
                    self._replace(asked)
        try:
            return ask()
        except GONE as error:
            if self._server:
                raise CoevoError(
                    f"{error}, nor do its replacements: see {self._server.log}, or raise "
                    f"rollout.engine.timeout={self._config.timeout:g} s"
                ) from None
            raise CoevoError(f"{error}: start it again, then continue with `coevo resume`") from None

    def _settle(self) -> None:
        """Wait for a server that was just started, and verify its weights."""
        if not self._is_new:
            return
        self._insist(self._await)
        if self._server is None:
            self._insist(self._take)
        else:
            self._insist(self._verify)
        self._is_new = False

    def _replace(self, server: VllmServer | None) -> None:
        """Restart a server, unless another thread has done so; what failed there fails here, too."""
        with self._changing:
            if self._server is server:
                self._failed = None
                try:
                    self._restart()
                except CoevoError as error:
                    self._failed = error
                    raise
            elif self._failed:
                raise self._failed

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
        """Load the weights into the server, which is awake afterwards."""
        if self._asleep:
            self._client.post("/wake_up?tags=weights", {})  # keys and values need their memory only afterwards
        if self._weights.adapter:
            self._add_adapter()
        else:
            directory = self._weights.directory
            reads = self._server is not None and self._delivery is FILES
            self._delivery.deliver(self._client, self._there() if reads else directory)
            self._note()
        if self._asleep:
            self._rise()
        self._reset()
        self._verify()

    def _there(self) -> Path:
        """Directory of the weights as the server finds it."""
        return self._server.bring(self._weights.directory) if self._server else self._weights.directory

    def _note(self) -> None:
        """Let a foreign server refuse to complete with other weights, which another process may load into it."""
        if self._is_shared():
            self._ask_extension("/coevo/weights", {"weights": self._weights.files_digest})

    def _is_shared(self) -> bool:
        """True if other processes may load full weights into this server, and it can refuse."""
        return self._server is None and not self._weights.adapter and self._config.draws == "keyed"

    def _rise(self) -> None:
        if self._client.post("/wake_up?tags=kv_cache", {})["status"] != "awake":
            raise UnreachableError(f"the vLLM server at {self.url} does not wake up")
        self._asleep = False

    def _add_adapter(self) -> None:
        former, self._held = self._held, self._weights.adapter
        adapter = {"lora_name": self._held, "lora_path": str(self._there()), "load_inplace": True}
        self._client.post("/v1/load_lora_adapter", adapter)
        if former and former != self._held:
            self._client.post("/v1/unload_lora_adapter", {"lora_name": former})

    def _reset(self) -> None:
        """Empty the prefix cache; while requests of other processes hold it, wait."""
        until = monotonic() + self._config.timeout
        while not self._client.post("/reset_prefix_cache", {})["success"]:
            if monotonic() > until:
                raise UnreachableError(f"the vLLM server at {self.url} is still computing, and keeps its cache")
            sleep(RETRY_INTERVAL_S)

    def _verify(self) -> None:
        """Check the weights: by digests where the server has them, else by the probe; the first ones by both.

        Raises:
            WeightsError: the server has other weights, or computes something else with them.
        """
        if not self._has_digests() or not self._computes:
            self._compute()
            self._computes = True

    def _has_digests(self) -> bool:
        """True if digests prove the weights; foreign servers and adapters have none."""
        if self._server is None or self._weights.adapter:
            return False
        expected = self._weights.digests
        asked = {"method": "coevo_digests", "args": [expected.shapes]}
        return expected.check(self._client.post("/collective_rpc", asked)["results"], self.url)

    def _compute(self) -> None:
        answer = self._client.post("/v1/completions", self._weights.probe.body() | self._named())
        self._closeness = self._weights.probe.check(answer["choices"][0], self._config, self.url)

    def _complete(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        choices: list[dict[str, Any]] = self._answer({**body, **self._named()})["choices"]
        if [choice["index"] for choice in choices] != list(range(len(body["prompt"]))):
            raise UnreachableError(f"the vLLM server at {self.url} answered {len(choices)} of {len(body['prompt'])}")
        return choices

    def _answer(self, body: Mapping[str, Any]) -> Any:
        if "seeds" not in body:
            return self._client.post("/v1/completions", body)
        asked = {"weights": self._weights.files_digest} if self._is_shared() else {}
        return self._ask_extension("/coevo/completions", {**body, **asked})

    def _ask_extension(self, path: str, body: Mapping[str, Any]) -> Any:
        """Ask for what only a server with our extension has."""
        try:
            return self._client.post(path, body)
        except MissingError as error:
            raise CoevoError(
                f"{error}: start it with our extension, as docs/engines.md says, or set rollout.engine.draws=free"
            ) from None
        except ConflictError as error:
            raise CoevoError(f"{error}: give each run a server of its own, then continue with `coevo resume`") from None

    def _named(self) -> dict[str, str]:
        return {"model": self._weights.adapter} if self._weights.adapter else {}


def closeness_metrics(found: Sequence[Closeness]) -> dict[str, float]:
    """Metrics of what the servers found; none if digests proved the weights of all."""
    if not found:
        return {}
    hidden = sum(not each.distinguishable for each in found) / len(found)
    worst = max(each.noise for each in found)
    return {"change": found[0].change, "noise": worst, "not_distinguishable": hidden}
