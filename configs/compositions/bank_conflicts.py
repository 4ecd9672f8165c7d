"""Conflicts between retrieval, writer and admission of a bank, and of a writer model with policy, prompt and engine."""

import itertools
from collections.abc import Iterator

from coevo.configs.bank.admission_config import (
    AppendAdmissionConfig,
    ScoreAdmissionConfig,
    WithinGroupAdmissionConfig,
)
from coevo.configs.bank.bank_config import BankConfig
from coevo.configs.bank.retrieval_config import ClusterRetrievalConfig
from coevo.configs.bank.writer import (
    ModelExtremesConfig,
    ModelReflectionConfig,
    ModelSkillsConfig,
    QuoteExtremesConfig,
    QuoteReflectionConfig,
    QuoteSkillsConfig,
    asked_model,
)
from coevo.configs.bank.writer_model_config import (
    NO_PROSE,
    AnyWriterModelConfig,
    FrozenWriterModelConfig,
    PolicyWriterModelConfig,
)
from coevo.configs.compositions.learning_conflicts import LEAST_TEMPERATURE
from coevo.configs.policy_config import WarmStartConfig
from coevo.configs.sections import RunSections

EXTREMES = (QuoteExtremesConfig, ModelExtremesConfig)
REFLECTIONS = (QuoteReflectionConfig, ModelReflectionConfig)
SKILLS = (QuoteSkillsConfig, ModelSkillsConfig)


def flaws(config: RunSections) -> Iterator[str]:
    """Conflicts between the parts of the bank, and with other sections."""
    yield from _clusters(config)
    yield from _halves(config)
    yield from _nothing(config)
    yield from _evidence(config)
    yield from _scored(config)
    yield from _room(config)
    yield from _ranked(config)
    yield from _internalized(config)
    yield from _found_again(config)
    yield from _approved(config)
    yield from _tried(config)


def _clusters(config: RunSections) -> Iterator[str]:
    if config.bank is not None and config.bank.retrieval.type == "cluster" and config.clusters is None:
        yield "bank.retrieval.type=cluster needs observation clusters: set clusters.delta=0.85"


def _halves(config: RunSections) -> Iterator[str]:
    if config.bank is None:
        return
    share, group = config.bank.retrieval.share, config.rollout.group_size
    for count, reached, other in ((0, "none", round(1 / group, 3)), (group, "all", 1.0)):
        if 0 < share < 1 and round(share * group) == count:
            yield (
                f"bank.retrieval.share={share} of rollout.group_size={group} rounds to {reached} of them: "
                f"set bank.retrieval.share={other}, or a larger rollout.group_size"
            )


def _nothing(config: RunSections) -> Iterator[str]:
    """Check that entries are written and shown."""
    if config.bank is None:
        return
    writer, retrieval = config.bank.writer, config.bank.retrieval
    if isinstance(writer, EXTREMES) and writer.strategies == writer.warnings == 0:
        yield "bank.writer.strategies=0 and bank.writer.warnings=0 write nothing: set either to 1 or more"
    besides = retrieval.warnings if isinstance(retrieval, ClusterRetrievalConfig) else retrieval.general
    if retrieval.k == 0 and not besides:
        yield "bank.retrieval.k=0 shows nothing: set it to 1 or more, or bank=null"


def _evidence(config: RunSections) -> Iterator[str]:
    """Check that writers get the episodes they need."""
    if config.bank is None:
        return
    writer, key, references = config.bank.writer, config.bank.key, config.bank.references
    if isinstance(writer, REFLECTIONS) and writer.induction == "pairwise" and references == 0:
        yield (
            "bank.writer.induction=pairwise compares with earlier episodes, but bank.references=0 keeps none: "
            "set bank.references=4, or bank.writer.induction=single"
        )
    if isinstance(writer, SKILLS) and key != "kind":
        yield f"bank.writer.type={writer.type} writes for kinds of tasks, but bank.key={key}: set bank.key=kind"


def _scored(config: RunSections) -> Iterator[str]:
    """Check that admission by score gets scores."""
    bank = config.bank
    if bank is None or bank.admission.type != "score":
        return
    if bank.writer.scores is False:
        yield (
            f"bank.writer.type={bank.writer.type} does not score entries, but bank.admission.type=score ranks by their "
            "scores: set bank.writer.type to quote-contrast, quote-extremes, model-contrast or model-extremes, or "
            "another admission"
        )


def _room(config: RunSections) -> Iterator[str]:
    """Check that a bank of limited size can reach ``min_entries``."""
    if config.bank is None:
        return
    bank, least = config.bank, config.bank.retrieval.min_entries
    kept = None if bank.retirement is None else bank.retirement.capacity
    bounds = {"admission": _most_admitted(bank), "retirement": kept}
    for section, most in bounds.items():
        if most is not None and most <= least:
            yield (
                f"bank.{section}.capacity has room for {most} entries, but bank.retrieval.min_entries={least} shows "
                "the bank only if it holds more: set a larger capacity or a lower min_entries"
            )


def _most_admitted(bank: BankConfig) -> int | None:
    """Maximum number of entries that the admission lets a bank hold; None without a limit."""
    admission = bank.admission
    if isinstance(admission, AppendAdmissionConfig):
        return admission.capacity
    if not isinstance(admission, ScoreAdmissionConfig):
        return None
    strategies, warnings = admission.capacity.strategy, admission.capacity.warning
    # Three levels of either zone, or strategies without a level.
    return 3 * (strategies + warnings) if isinstance(bank.writer, EXTREMES) else strategies


def _ranked(config: RunSections) -> Iterator[str]:
    """Check that utilities can differ if retrieval ranks by them."""
    bank = config.bank
    if bank is None or bank.utility is not None or bank.admission.type not in ("append", "replay", "within-group"):
        return
    if bank.retrieval.type in ("simutil-ucb", "two-phase"):
        yield (
            f"bank.retrieval.type={bank.retrieval.type} ranks by utility, but with bank.utility=null and "
            f"bank.admission.type={bank.admission.type} all entries have the same: set bank.utility={{}}"
        )


def _internalized(config: RunSections) -> Iterator[str]:
    every = config.evaluation.internalization
    if every and config.bank is None:
        yield (
            f"evaluation.internalization={every} compares entries of a bank, but bank=null has none: set "
            "evaluation.internalization=0, or a bank"
        )


def _found_again(config: RunSections) -> Iterator[str]:
    """Check that retrieval ranks a bank for instructions, which it is measured by."""
    if not config.evaluation.retrieval:
        return
    if config.bank is None:
        yield (
            "evaluation.retrieval=true searches a bank, but bank=null has none: set evaluation.retrieval=false, or "
            "a bank"
        )
    elif config.bank.retrieval.type == "cluster":
        yield (
            "evaluation.retrieval=true asks with instructions, but bank.retrieval.type=cluster answers observations: "
            "set evaluation.retrieval=false, or another bank.retrieval.type"
        )


def _approved(config: RunSections) -> Iterator[str]:
    if config.bank is None and config.approval.admission == "person":
        yield "approval.admission=person needs a bank: set approval.admission=none, or a bank"


def _tried(config: RunSections) -> Iterator[str]:
    """Check that groups can be halved, and that their tasks are known before they are played."""
    bank, rollout = config.bank, config.rollout
    if bank is None or not isinstance(bank.admission, WithinGroupAdmissionConfig):
        return
    seers = round(bank.retrieval.share * rollout.group_size)
    if seers < 4:
        least = next(size for size in itertools.count(4) if round(bank.retrieval.share * size) >= 4)
        yield (
            f"bank.admission.type=within-group halves the {seers} rollouts of a group that see the bank, and a half of "
            f"one has nothing to compare: set rollout.group_size={least} or more, or a larger bank.retrieval.share"
        )
    if not round(bank.admission.revisit * rollout.tasks):
        yield (
            f"bank.admission.revisit={bank.admission.revisit:g} of rollout.tasks={rollout.tasks} is no task, so "
            "nothing is tried: raise one of them"
        )
    if rollout.ahead:
        yield "bank.admission.type=within-group plays with what the last iteration has shown: set rollout.ahead=0"
    if bank.retrieval.type == "cluster":
        yield (
            "bank.retrieval.type=cluster links entries to the episodes that taught them, which are gone when a trial "
            "ends: set bank.admission.type=replay, or another bank.retrieval.type"
        )


OF_REFLECTIONS = ("predictions", "lessons", "asides", "write")
"""Fields of the warm start that are about taught reflections."""


def writer_model_flaws(config: RunSections) -> Iterator[str]:
    """Conflicts of the writer model with other sections."""
    writer_model = None if config.bank is None else asked_model(config.bank.writer)
    yield from _words(config)
    yield from _untaught(config)
    yield from _trained(config)
    yield from _examined(config)
    if isinstance(writer_model, PolicyWriterModelConfig):
        yield from _speechless(config)
        yield from _writer_room(writer_model, config)
        yield from _cold(writer_model, config.rollout.engine.type, "rollout")
    elif isinstance(writer_model, FrozenWriterModelConfig):
        yield from _cold(writer_model, writer_model.engine.type, "bank.writer.model")


def _speechless(config: RunSections) -> Iterator[str]:
    single = config.policy.type == "scratch" or config.context.style == "words"
    if single and not (_in_words(config) and _taught(config)):
        yield NO_PROSE


def _words(config: RunSections) -> Iterator[str]:
    """Conflicts of reflections in words, which a policy of single words learns in its warm start."""
    writer = None if config.bank is None else config.bank.writer
    own = writer is not None and isinstance(asked_model(writer), PolicyWriterModelConfig)
    single = config.policy.type == "scratch" and config.context.style == "words"
    if _in_words(config) and not (single and own):
        yield (
            "bank.writer.form=words is for a policy of single words that writes itself: set bank.writer.form=prose, or "
            "bank.writer.model.type=policy, policy.type=scratch and context.style=words"
        )
    if _taught(config) and not _in_words(config):
        yield (
            "warmstart.reflections needs a writer that asks for reflections in words: set warmstart.reflections=0, or "
            "bank.writer.type=model-reflection and bank.writer.form=words"
        )


def _untaught(config: RunSections) -> Iterator[str]:
    """Settings of reflections in a warm start that teaches none."""
    warm = config.warmstart
    for name in OF_REFLECTIONS:
        default = WarmStartConfig.model_fields[name].default
        if warm is not None and not warm.reflections and getattr(warm, name) != default:
            yield (
                f"warmstart.{name} is a setting of taught reflections: set warmstart.reflections=16, or "
                f"warmstart.{name}={default}"
            )


def _in_words(config: RunSections) -> bool:
    writer = None if config.bank is None else config.bank.writer
    return isinstance(writer, ModelReflectionConfig) and writer.form == "words"


def _taught(config: RunSections) -> bool:
    return config.warmstart is not None and config.warmstart.steps > 0 and config.warmstart.reflections > 0


def _trained(config: RunSections) -> Iterator[str]:
    """Conflicts of the training of the policy as writer."""
    trained, bank = None if config.update is None else config.update.writer, config.bank
    if trained is None:
        return
    writer_model = None if bank is None else asked_model(bank.writer)
    if bank is None or not isinstance(writer_model, PolicyWriterModelConfig):
        yield (
            "update.writer trains the policy as writer: set update.writer=null, or bank.writer.type=model-reflection "
            "and bank.writer.model.type=policy"
        )
        return
    drawn, played = writer_model.temperature, config.rollout.sampling.temperature
    if drawn != played:
        yield (
            f"update.writer learns at the temperature of the rollouts: set bank.writer.model.temperature={played:g} "
            f"instead of {drawn:g}"
        )
    if trained.reward == "prediction" and getattr(bank.writer, "reveal_outcome", True):
        yield (
            "update.writer.reward=prediction needs predictions of an outcome that is not told: set "
            "bank.writer.type=model-reflection and bank.writer.reveal_outcome=false"
        )
    if trained.reward == "prediction" and config.rollout.turns is not None:
        yield (
            "update.writer.reward=prediction needs the outcome of each attempt, and rollout.turns updates before some "
            "have one: set rollout.turns=null"
        )
    if trained.reward == "replay" and getattr(bank.admission, "per", "batch") == "batch":
        yield (
            "update.writer.reward=replay needs the gain of each candidate: set bank.admission.type=replay and "
            "bank.admission.per=entry"
        )


def _examined(config: RunSections) -> Iterator[str]:
    if config.evaluation.reflections and (config.bank is None or config.bank.writer.reflects is False):
        yield (
            "evaluation.reflections needs a reflecting writer: set bank.writer.type=model-reflection, or "
            "evaluation.reflections=0"
        )


def _writer_room(writer_model: PolicyWriterModelConfig, config: RunSections) -> Iterator[str]:
    engine, policy = config.rollout.engine, config.policy
    if policy.type == "scratch" and writer_model.max_new_tokens >= policy.max_positions:
        yield (
            f"bank.writer.model.max_new_tokens={writer_model.max_new_tokens} leaves no room for a question in "
            f"policy.max_positions={policy.max_positions}: lower max_new_tokens"
        )
    if (
        engine.type == "vllm"
        and engine.max_model_len is not None
        and writer_model.max_new_tokens >= engine.max_model_len
    ):
        yield (
            f"bank.writer.model.max_new_tokens={writer_model.max_new_tokens} leaves no room for a question in "
            f"rollout.engine.max_model_len={engine.max_model_len}: lower max_new_tokens"
        )


def _cold(writer_model: AnyWriterModelConfig, engine: str, section: str) -> Iterator[str]:
    if engine == "vllm" and writer_model.temperature < LEAST_TEMPERATURE:
        yield (
            f"bank.writer.model.temperature={writer_model.temperature:g} becomes {LEAST_TEMPERATURE} in vLLM: set "
            f"bank.writer.model.temperature={LEAST_TEMPERATURE}, or {section}.engine.type=transformers"
        )
