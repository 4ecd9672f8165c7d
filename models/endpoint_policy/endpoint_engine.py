"""Engine of a policy behind an endpoint: prompts become chat messages, answers come over HTTP and are kept at once.

A call is identified by all that is sent and by the key of its draw, so that a run that was killed asks only for what is
missing. There are no log-probabilities, and no weights to load. What the endpoint cannot be brought to answer ends
the run in one line, and a resumed run continues there; what the model leaves empty is an answer without an action.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from anyio import Event
from anyio.from_thread import BlockingPortal, start_blocking_portal
from openai import APIStatusError

from coevo.configs.base import MAX_TOKENS
from coevo.configs.policy_config import EndpointPolicyConfig
from coevo.configs.rollout.rollout_config import SamplingConfig
from coevo.models.endpoint_policy.call_ledger import (
    NO_ANSWER,
    OF_A_RUN,
    CallExpense,
    CallLedger,
    CallRemedies,
    KeptAnswer,
)
from coevo.models.engines.requests import Request, check_lengths
from coevo.models.policy.language_model import Policy
from coevo.models.policy.tokenizers import MessageTokens
from coevo.models.writer_models.chat_endpoint import ChatEndpoint, Wave
from coevo.models.writer_models.failure import After, Failure
from coevo.records.draws import seed_of
from coevo.records.episode import Completion
from coevo.records.inert import encodable
from coevo.records.writing import Reply, estimated
from coevo.utilities.errors import CoevoError

MAX_ANSWER = "rollout.sampling.max_new_tokens"
"""Setting of the longest answer."""
MAX_CHARS = 64
"""Maximum characters of an answer per token of its limit."""
FRAME = 8
"""Tokens that an endpoint counts around a message."""
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "n_predict", "num_predict")
"""Fields of a request that limit its answer."""
REFUSED = 20
"""Refusals of prompts in a row, without an answer between them, after which none is taken for the prompt's own."""
_WITHHELD = r"content.?(?:filter|policy|management)|safety|moderation|context.?(?:length|window)"
_OF_THE_LIMIT = r"max_(?:\w{1,12}_)?tokens|maxOutputTokens|completion|(?:output|new|generated) tokens"
_OF_THE_PROMPT = re.compile(
    rf"{_WITHHELD}|\A(?!.*(?:{_OF_THE_LIMIT})).*(?:too (?:long|many tokens)|maximum.{{0,40}}tokens)",
    re.IGNORECASE | re.DOTALL,
)
"""Words of a refusal that is about one prompt, and not about every request."""


@dataclass(frozen=True)
class _PaidCall:
    """A request to the endpoint.

    Attributes:
        id: hash of all that decides its answer.
        body: what is sent.
        most: most that one attempt may cost.
    """

    id: str
    body: dict[str, Any]
    most: CallExpense


@dataclass
class _Shared:
    """State that the views of an engine share.

    Attributes:
        ledger: answers and expense.
        endpoint: pace and repeats.
        flying: calls that wait for an answer, with an event for others that want the same one.
        opening: lock of the connection.
        stack: what is to be closed.
        portal: event loop of the connection; None until the first call.
        wave: connection, with the limits of all calls.
        settled: event of the next call that is settled; None while nobody waits for it.
        told: reasons of empty answers that were reported.
        refused: refusals of prompts since the last answer.
    """

    ledger: CallLedger
    endpoint: ChatEndpoint
    flying: dict[str, Event]
    opening: Lock
    stack: ExitStack
    portal: BlockingPortal | None = None
    wave: Wave | None = None
    settled: Event | None = None
    told: set[str] = field(default_factory=set)
    refused: int = 0


class EndpointEngine:
    """Generates with a model behind an endpoint.

    Args:
        config: the policy.
        sampling: sampling of tokens.
        directory: of the ledger.
        warn: function that gets a line of text when answers stay empty.
        remedies: how to go on after an error.

    Attributes:
        policy: tokens of its prompts, and limits; it has no weights.
        sampling: sampling of tokens.

    Raises:
        CoevoError: the environment has no key, the address has no meaning, the ledger is damaged, or a budget is set
            and no request says how long its answer may be.
    """

    def __init__(
        self,
        config: EndpointPolicyConfig,
        sampling: SamplingConfig,
        directory: Path,
        warn: Callable[[str], None],
        remedies: CallRemedies = OF_A_RUN,
    ) -> None:
        self._tokens = MessageTokens()
        limits = SimpleNamespace(max_position_embeddings=config.context or MAX_TOKENS, vocab_size=len(self._tokens))
        self.policy = Policy(SimpleNamespace(config=limits), self._tokens)
        self._config, self.sampling, self._warn = config, sampling, warn
        self._is_view, self._remedies = False, remedies
        check_bounded(config, sampling)
        ledger = CallLedger(directory, config, forgets=not config.reuse)
        endpoint = ChatEndpoint(config, sampling.max_new_tokens, MAX_ANSWER)
        self._shared = _Shared(ledger, endpoint, {}, Lock(), ExitStack())
        self._before = (ledger.spent, asdict(endpoint.traffic))

    @property
    def longest_prompt(self) -> int:
        """Most tokens of a prompt that leave room for the longest answer."""
        return int(self.policy.model.config.max_position_embeddings) - self.sampling.max_new_tokens

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Complete every prompt, in order; several threads may call it at once.

        Raises:
            CoevoError: a prompt is too long, the endpoint does not answer, or the budget is spent.
        """
        check_lengths(requests, self.sampling.max_new_tokens, self.longest_prompt + self.sampling.max_new_tokens)
        calls = [self._call(request) for request in requests]
        missing = {call.id: call for call in calls if self._shared.ledger.answer(call.id) is None}
        if missing:
            self._ask(list(missing.values()))
        return [self._completion(call) for call in calls]

    def load(self, policy: Path) -> dict[str, float]:
        """Refuse: nothing here changes what is behind an endpoint."""
        raise CoevoError("policy.type=endpoint has no weights to load: set update=null")

    def with_sampling(self, sampling: SamplingConfig) -> "EndpointEngine":
        """View of this engine with another sampling: the same connection, ledger and budget."""
        view = copy(self)
        view.sampling, view._is_view = sampling, True
        return view

    def forget(self) -> None:
        """End a revision: its answers stay until it is committed. A view ends none."""
        if not self._is_view:
            self._shared.ledger.turn_over()

    def close(self) -> None:
        """End the connection."""
        self._shared.stack.close()
        self._shared.portal = self._shared.wave = None

    def raise_to(self, rates: Mapping[str, float]) -> None:
        """Count at least the expense of the run that a revision states, by the names of ``expense``."""
        prompt, answer = (int(rates.get(f"cost/policy/run_{kind}", 0)) for kind in ("prompt_tokens", "answer_tokens"))
        self._shared.ledger.raise_to(CallExpense(prompt, answer))
        self._before = (self._shared.ledger.spent, self._before[1])

    def expense(self) -> dict[str, float]:
        """Requests, tokens and money since the last call, and tokens of the run so far, by name of the metric.

        They depend on failures and kills, so that a repeated run has others.
        """
        spent, traffic = self._shared.ledger.spent, asdict(self._shared.endpoint.traffic)
        new, sent = spent - self._before[0], {name: count - self._before[1][name] for name, count in traffic.items()}
        self._before = (spent, traffic)
        priced = {} if self._config.price is None else {"money": new.money(self._config.price)}
        run = {f"run_{name}": count for name, count in asdict(spent).items()}
        return {f"cost/policy/{name}": float(n) for name, n in (sent | asdict(new) | priced | run).items()}

    def _call(self, request: Request) -> _PaidCall:
        messages = [
            {"role": each["role"], "content": encodable(each["content"])}
            for each in self._tokens.messages(request.prompt_ids)
        ]
        sampling = self.sampling
        fields: dict[str, Any] = {
            "model": self._config.model,
            "messages": messages,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p if sampling.top_p < 1 else None,
            "max_tokens": sampling.max_new_tokens,
        }
        drawn = _hash(self._config.url, fields) if self._config.reuse else f"{seed_of(request.key)}"
        fields["seed"] = int(_hash(drawn)[:8], 16) % 2**31
        fields |= self._config.extra
        size = sum(estimated(each["content"]) + FRAME for each in messages)
        most = CallExpense(size, _longest_answer(self._config, sampling) or sampling.max_new_tokens)
        return _PaidCall(_hash(self._config.url, drawn, fields), fields, most)

    def _completion(self, call: _PaidCall) -> Completion:
        kept = self._shared.ledger.answer(call.id)
        assert kept is not None
        pieces, end = self._tokens(kept.text)["input_ids"], self._tokens.eos_token_id
        finished = kept.finished or not pieces
        return Completion((*pieces, *([end] if finished else [])), (), kept.text, finished)

    def _ask(self, calls: Sequence[_PaidCall]) -> None:
        """Ask side by side until each has an answer; after a failure nothing new is sent, and what waits is kept."""
        portal, wave = self._opened()
        wave = replace(wave, until=self._shared.endpoint.wave(wave.client, self._config.seconds).until)
        stopped: list[str] = []
        asked: list[Future[None]] = [portal.start_task_soon(self._answered, wave, call, stopped) for call in calls]
        try:
            wait(asked)
            for future in asked:
                future.result()
        finally:
            for future in asked:
                future.cancel()
        if stopped:
            host = urlsplit(self._config.url).netloc
            raise CoevoError(f"the policy at {host}: {stopped[0]}; {self._remedies.kept}")

    def _opened(self) -> tuple[BlockingPortal, Wave]:
        shared = self._shared
        with shared.opening:
            if shared.portal is None or shared.wave is None:
                shared.portal = shared.stack.enter_context(start_blocking_portal(name="endpoint_policy"))
                client = shared.endpoint.client()
                shared.stack.enter_context(shared.portal.wrap_async_context_manager(client))
                shared.wave = shared.endpoint.wave(client, self._config.seconds)
            return shared.portal, shared.wave

    async def _answered(self, wave: Wave, call: _PaidCall, stopped: list[str]) -> None:
        """Bring an answer to the ledger, or the reason why there is none to ``stopped``."""
        flying = self._shared.flying
        while call.id in flying and not stopped:
            await flying[call.id].wait()
        if stopped or self._shared.ledger.answer(call.id) is not None:
            return
        flying[call.id] = Event()
        try:
            async with wave.limiter:
                try:
                    reason = await self._insist(wave, call, stopped)
                except OSError as error:  # of the ledger: nothing may be asked that cannot be noted
                    reason = f"its answers cannot be kept ({error.strerror or error}): make room for {error.filename}"
                if reason:
                    stopped.append(reason)
                    self._wake()
        finally:
            flying.pop(call.id).set()

    async def _insist(self, wave: Wave, call: _PaidCall, stopped: list[str]) -> str:
        """Ask until there is an answer; return the reason if none is to be had."""
        endpoint, ledger, repeats = self._shared.endpoint, self._shared.ledger, 0
        while await self._reserve(call, stopped):
            sent = await endpoint.turn(wave)
            if sent is None or stopped or endpoint.fault:
                self._settle(call, CallExpense())
                return endpoint.fault or f"it does not answer within policy.seconds={self._config.seconds:g}"
            found = await self._sent(wave, call)
            if isinstance(found, Reply):
                self._settle(call, _paid(call, found), self._bounded(found))
                endpoint.answered(sent)
                return ""
            self._settle(call, _paid(call, found))
            if not await endpoint.goes_on(wave, found, sent, repeats):
                return self._given_up(call, found)
            repeats += found.after is After.AGAIN
        spent = ledger.exhausted()
        return endpoint.fault or (f"{spent}: {self._remedies.higher}" if spent else "")

    async def _reserve(self, call: _PaidCall, stopped: list[str]) -> bool:
        """Wait until the budget pays for a call; False if nothing is asked any more."""
        shared = self._shared
        while not (stopped or shared.endpoint.fault or shared.ledger.exhausted()):
            if shared.ledger.reserve(call.id, call.most):
                return True
            shared.settled = shared.settled or Event()
            await shared.settled.wait()
        return False

    def _settle(self, call: _PaidCall, paid: CallExpense, answer: KeptAnswer | None = None) -> None:
        try:
            self._shared.ledger.settle(call.id, call.most, paid, answer)
        finally:
            self._wake()

    def _wake(self) -> None:
        """Let the calls go on that wait for the budget."""
        if self._shared.settled is not None:
            self._shared.settled.set()
            self._shared.settled = None

    async def _sent(self, wave: Wave, call: _PaidCall) -> Reply | Failure:
        endpoint = self._shared.endpoint
        try:
            found = await endpoint.send(wave.client, call.body)
        except APIStatusError as error:
            failure = endpoint.refusal(error)
            silent = failure.after is After.NEXT and _OF_THE_PROMPT.search(failure.fault) is not None
            self._shared.refused += silent
            return replace(failure, silent=silent)
        if isinstance(found, Reply) or found.silent:
            self._shared.refused = 0
        if isinstance(found, Failure) and found.unread:
            return replace(found, after=After.AGAIN)  # the same request may well be answered as it should be
        return found

    def _bounded(self, found: Reply) -> KeptAnswer:
        """Answer without the key, and no longer than its tokens may be: later prompts show it again."""
        text, most = self._shared.endpoint.hidden(found.text), self.sampling.max_new_tokens * MAX_CHARS
        return KeptAnswer(text[:most], found.finished and len(text) <= most)

    def _given_up(self, call: _PaidCall, found: Failure) -> str:
        """Keep an answer without text if the model gave none; else return the reason why there is no answer."""
        said, shared = self._shared.endpoint.line(found.fault, 300), self._shared
        if not found.silent:
            return said
        if shared.refused >= REFUSED:
            return f"{said} ({shared.refused} refusals in a row, no answer between them)"
        shared.ledger.keep(call.id, NO_ANSWER)
        if said not in shared.told:
            shared.told.add(said)
            self._warn(f"an answer of the policy has no text, and holds no action: {said}")
        return ""


def check_bounded(config: EndpointPolicyConfig, sampling: SamplingConfig) -> None:
    """Check that a budget can hold. Raises ``CoevoError`` if requests do not say how long an answer may be."""
    if config.budget is not None and _longest_answer(config, sampling) is None:
        raise CoevoError(
            "policy.extra leaves answers without a limit, and policy.budget cannot hold then: set one there, as "
            f"max_completion_tokens: {sampling.max_new_tokens}, or set policy.budget=null"
        )


def _longest_answer(config: EndpointPolicyConfig, sampling: SamplingConfig) -> int | None:
    """Largest limit of an answer that a request states; None if it states none, or one that is no number of tokens."""
    sent = {"max_tokens": sampling.max_new_tokens} | config.extra
    limits = [sent[name] for name in LIMITS if sent.get(name) is not None]
    known = [limit for limit in limits if type(limit) is int and limit > 0]
    return max(known) if known and len(known) == len(limits) else None


def _paid(call: _PaidCall, found: Reply | Failure) -> CallExpense:
    """Expense of an attempt; one that may have been received and had no answer counts at full length."""
    if isinstance(found, Failure) and found.unsure:
        return call.most
    if not (found.prompt_tokens or found.answer_tokens):
        return CallExpense() if isinstance(found, Failure) else call.most
    return CallExpense(found.prompt_tokens or call.most.prompt_tokens, found.answer_tokens)


def _hash(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
