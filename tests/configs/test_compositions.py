"""Parts that do not go together are refused when they are read, with the reason and the remedy in one line."""

import re

import pytest
from support.refusal import refusal

from coevo.configs.load.load import load_recipe
from coevo.configs.run_config import RunConfig
from coevo.utilities.errors import ConfigError

COEVO, EXPERIENCE, REACT = "homerules-coevo-rl", "homerules-experience-only", "homerules-react"
GRPO, GIGPO, PPO, RLOO = "homerules-grpo", "homerules-gigpo", "homerules-ppo", "homerules-rloo"
CUT, REINFORCE = "homerules-context-lite", "homerules-reinforce"
RETRO, IN_WORDS, SLEA = "homerules-retroagent", "homerules-retroagent-policy", "homerules-slea-rl"
TRAINED, TRAINED_WRITER = "homerules-retroagent-trained", "homerules-coevo-rl-trained-writer"
POLICY_FIRST, BANK_FIRST = "homerules-coevo-rl-policy-first", "homerules-coevo-rl-bank-first"
FROZEN = "homerules-coevo-rl-frozen-bank"
SHARED = "homerules-coevo-rl-qwen3-8b"
AHEAD = ("rollout.ahead=1", "update.loss.importance_cap=2.0")
PRETRAINED = ("warmstart=null", "policy={type: pretrained, path: here}")
CLUSTERS = "clusters.delta=0.85"
WITHIN = "bank.admission={type: within-group}"
ASKING = "bank.writer={type: model-contrast}"
SERVED = "rollout.engine={type: vllm}"
COLD = "bank.writer={type: model-contrast, model: {type: frozen, path: x, temperature: 0.009, engine: {type: vllm}}}"
BY_REFLECTION = "update.reward={type: capability-evolution, potential: reflection}"

ENDPOINT, AWAY = "homerules-experience-only-endpoint", "no weights here"
API = "policy={type: endpoint, url: http://h/v1, model: m}"

SETTING = re.compile(r"(?<![\w.])([a-z][\w.]*)=(\{[^}]*\}|\[[^\]]*\]|[^\s,;:]+)")
INTRODUCTION = re.compile(r"\bset\b|\bcorrect for (?:that|it) with\b")
STEPS = 5
"""Most refusals in a row before the settings are accepted."""

REFUSED = {
    # a policy behind an endpoint
    "an update behind an endpoint": (ENDPOINT, ["update={}"], AWAY, "set update=null"),
    **{
        f"{part} behind an endpoint": (GRPO, [API, *more], AWAY, remedy)
        for part, more, remedy in (
            ("a trained policy", [], "set update=null"),
            ("a warm start", ["update=null", "bank={}"], "set warmstart=null"),
        )
    },
    "a critic behind an endpoint": (ENDPOINT, ["update={critic: {}, advantage: {type: gae}}"], AWAY, "set update=null"),
    "a trained writer behind an endpoint": (ENDPOINT, ["update={writer: {}}"], AWAY, "set update=null"),
    "servers behind an endpoint": (ENDPOINT, [SERVED], AWAY, "leave rollout.engine out"),
    "a placement behind an endpoint": (ENDPOINT, ["placement={type: shared}"], AWAY, "leave placement out"),
    "words behind an endpoint": (ENDPOINT, ["context.style=words"], "in a warm start", "set context.style=con"),
    "a template behind an endpoint": (
        ENDPOINT, ["context.template={enable_thinking: true}"], "is at the endpoint", "policy.extra={chat_template",
    ),
    "a top k behind an endpoint": (ENDPOINT, ["rollout.sampling.top_k=5"], "no field", "policy.extra={top_k: 5}"),
    "no room behind an endpoint": (ENDPOINT, ["policy.context=1000"], "has no room", "lower rollout.sampling.max"),
    # rollouts beside the update
    "an old policy's batch as it is": (GRPO, ["rollout.ahead=1"], "the policy before", "importance_cap=2.0"),
    "ahead of no update": (EXPERIENCE, ["rollout.ahead=1"], "update=null has none", "set rollout.ahead=0"),
    "ahead of parts": (CUT, AHEAD, "continues the last batch's episodes", "rollout.turns=null"),
    **{
        f"parts with a reward of the whole, {reward}": (
            CUT, [f"update.reward={{type: {reward}, gamma: 1.0}}"], "needs whole ones",
            "set update.reward.type=extrinsic, or rollout.turns=null",
        )
        for reward in ("progress-guided", "capability-evolution")
    },
    "ahead of servers that sleep": (SHARED, [*AHEAD, "placement={type: shared}"], "sleep during the", "type=separate"),
    "episodes by themselves, in this process": (GRPO, ["rollout.pace=episode"], "asks a server", "engine.type=vllm"),
    "a server that is too cold": (
        COEVO, [SERVED, "rollout.sampling.temperature=0.009"], "0.009 becomes 0.01 in vLLM", "temperature=0.01",
    ),
    "two ahead": (GRPO, ["rollout.ahead=2"], "rollout.ahead", "0 or 1"),
    # reflections in words
    "words that nobody taught": (
        IN_WORDS, ["warmstart.reflections=0"], "or bank.writer.form=words", "reflections=16",
    ),
    "words that no step teaches": (IN_WORDS, ["warmstart.steps=0"], "or bank.writer.form=words", "reflections=16"),
    "reflections in words by an endpoint": (
        IN_WORDS,
        ["bank.writer.model={type: endpoint, url: http://localhost:8000/v1, model: m}"],
        "form=words is for a policy of single words", "set bank.writer.form=prose",
    ),
    "reflections that nobody asks for": (
        RETRO, ["warmstart.reflections=8"], "asks for reflections in words", "warmstart.reflections=0",
    ),
    "one reflection that nobody asks for": (RETRO, ["warmstart.reflections=1"], "asks for reflections in words"),
    "reflections in words of a pretrained policy": (IN_WORDS, PRETRAINED, "for a policy of single words", "form=prose"),
    "prose of single words": (COEVO, [ASKING], "needs a pretrained policy with context.style=chat", "type=endpoint"),
    "prose in the style of words": (COEVO, [*PRETRAINED, ASKING], "needs a pretrained policy with context.style=chat"),
    "words about a pair": (
        IN_WORDS, ["bank.writer.induction=pairwise"], "shows one attempt", "set bank.writer.induction=single",
    ),
    "an answer as long as the policy": (
        IN_WORDS, ["bank.writer.model.max_new_tokens=512"], "no room for a question", "lower",
    ),
    "an answer longer than the policy": (
        IN_WORDS, ["bank.writer.model.max_new_tokens=600"], "no room for a question in policy.max_positions=512",
    ),
    **{
        f"an answer of 1024 in {length}": (
            SHARED, [f"rollout.engine.max_model_len={length}"], "no room for a question", f"max_model_len={length}",
        )
        for length in (1000, 1024)
    },
    "a writer model that is too cold": (
        SHARED, ["bank.writer.model={type: policy, temperature: 0.009}"], "becomes 0.01", "or rollout.engine.type=",
    ),
    "a frozen writer model that is too cold": (COEVO, [COLD], "becomes 0.01", "model.engine.type=transformers"),
    # the policy trained as writer
    "a rule cannot be trained": (
        COEVO, ["update.writer={}"], "trains the policy as writer", "bank.writer.model.type=policy",
    ),
    "another model cannot be trained": (
        TRAINED_WRITER,
        [
            "bank.writer={form: prose, model: {type: frozen, path: here}}", "warmstart.reflections=0",
            "warmstart.asides=0", "warmstart.lessons=1", "warmstart.write=0.9",
        ],
        "trains the policy as writer", "set update.writer=null",
    ),
    "nobody writes": (COEVO, ["bank=null", "update.writer={}"], "trains the policy as writer", "update.writer=null"),
    "answers at a higher temperature": (TRAINED, ["bank.writer.model.temperature=0.9"], "=0.4 instead of 0.9"),
    "answers at another temperature": (
        TRAINED, ["bank.writer.model.temperature=0.2"], "at the temperature of the rollouts", "temperature=0.4",
    ),
    "predictions of what is said": (
        TRAINED, ["bank.writer.reveal_outcome=true"], "is not told", "bank.writer.reveal_outcome=false",
    ),
    "predictions of unfinished attempts": (
        TRAINED, ["rollout.turns=8", "rollout.group_size=1", "update.advantage={type: gae}", "update.critic={}",
        "update.reward={type: extrinsic}", "bank.retrieval.share=1.0"], "before some have one", "rollout.turns=null",
    ),
    "gains of a batch": (TRAINED_WRITER, ["bank.admission.per=batch"], "gain of each", "bank.admission.per=entry"),
    "gains without replay": (
        TRAINED_WRITER, ["bank.admission={type: append}"], "gain of each candidate", "bank.admission.type=replay",
    ),
    "a KL without a clip": (TRAINED_WRITER, ["update.writer.clip=null"], "belongs to the clipped loss", "clip=0.2"),
    "balanced gains": (TRAINED_WRITER, ["update.writer.balance=true"], "weighs predictions", "balance=false"),
    "predictions that nobody makes": (
        COEVO, ["evaluation.reflections=8"], "needs a reflecting writer", "evaluation.reflections=0",
    ),
    # what is learned, and by whom
    "neither policy nor bank learns": (COEVO, ["bank=null", "update=null"], "leave nothing to learn", "iterations=0"),
    "react has nothing to learn": (REACT, ["iterations=5"], "leave nothing to learn", "iterations=0"),
    "one iteration with nothing to learn": (REACT, ["iterations=1"], "leave nothing to learn", "iterations=0"),
    # trials within the rollout budget
    "a share of no task": (COEVO, [WITHIN, "rollout.tasks=1"], "of rollout.tasks=1 is no task", "raise one of them"),
    "halves of three": (COEVO, [WITHIN, "rollout.group_size=3"], "halves the 3 rollouts", "rollout.group_size=4"),
    "halves of a share": (COEVO, [WITHIN, "bank.retrieval.share=0.25"], "halves the 2 rollouts", "or a larger"),
    "halves of one": (COEVO, [WITHIN, "rollout.group_size=2"], "halves the 2 rollouts", "rollout.group_size=4"),
    "trials ahead": (COEVO, [WITHIN, *AHEAD], "what the last iteration has shown", "set rollout.ahead=0"),
    "trials beside clusters": (
        COEVO, [WITHIN, "bank.retrieval={type: cluster}", CLUSTERS], "are gone when a trial ends", "type=replay",
    ),
    # the schedule
    "policy, then no bank": (POLICY_FIRST, ["bank=null"], "bank=null leaves one of them out", "set bank"),
    "bank, then no policy": (BANK_FIRST, ["update=null"], "update=null leaves one of them out", "leave schedule out"),
    "a frozen bank that is not there": (FROZEN, ["bank=null"], "bank=null leaves one of them out", "set bank"),
    "a frozen bank and policy": (FROZEN, ["update=null"], "update=null leaves one of them out", "set update"),
    "no second phase": (POLICY_FIRST, ["iterations=20"], "none of iterations=20", "set schedule.switch_at lower"),
    "no phase for the policy": (BANK_FIRST, ["iterations=9"], "none of iterations=9", "iterations higher"),
    "a bank phase without firing": (POLICY_FIRST, ["bank.every=21"], "grows the bank for 20", "set bank.every=20"),
    "a first phase without firing": (BANK_FIRST, ["bank.every=40"], "never fires the writer", "set bank.every=20"),
    "a bank that is never updated": (FROZEN, ["bank.every=50"], "grows the bank for 40", "set bank.every=40"),
    "a phase within a revision": (POLICY_FIRST, ["lineage.every=8", "bank.every=8"], "a multiple of lineage.every=8"),
    "a schedule without its switch": (COEVO, ["schedule.type=policy-then-bank"], "switch_at", "is missing; set it"),
    "no second phase of one": (POLICY_FIRST, ["iterations=1", "schedule.switch_at=1"], "none of iterations=1"),
    "one iteration of growth": (POLICY_FIRST, ["iterations=21", "bank.every=2"], "grows the bank for 1 iterations"),
    "one iteration in all": (FROZEN, ["iterations=1", "bank.every=2"], "grows the bank for 1", "set bank.every=1"),
    "a switch without phases": (COEVO, ["schedule.switch_at=3"], "say which kind it is", "schedule.type"),
    # bank and revision
    "a bank within a revision": (COEVO, ["lineage.every=2"], "bank.every=1 must be a multiple", "lineage.every=2"),
    # bank and prompt
    "lessons that have no room": (COEVO, ["context.experience_tokens=0"], "shows nothing", "experience_tokens=200"),
    "lessons longer than a prompt": (COEVO, ["context.experience_tokens=500"], "do not fit", "lower context."),
    "lessons much longer than a prompt": (COEVO, ["context.experience_tokens=600"], "do not fit", "lower context."),
    "lessons in a turn of words": (COEVO, ["context.placement=turn"], "needs prose", "context.placement=task"),
    "messages for the template": (COEVO, ["context.template={messages: x}"], "messages is set by coevo"),
    "a token for the template": (COEVO, ["context.template={eos_token: x}"], "eos_token is set by coevo itself"),
    # bank and group
    "a share that is nobody of three": (
        COEVO, ["bank.retrieval.share=0.1", "rollout.group_size=3"], "rounds to none of them", "share=0.333, or",
    ),
    "half a group of one": (
        COEVO, ["bank.retrieval.share=0.5", "rollout.group_size=1", "update.advantage.type=reinforce"], "to none of",
        "larger rollout.group_size",
    ),
    "a share that is the whole group": (COEVO, ["bank.retrieval.share=0.95"], "rounds to all of them", "share=1.0"),
    "a share that is nobody": (COEVO, ["bank.retrieval.share=0.05"], "rounds to none of them", "share=0.125"),
    # what is written and shown
    "a writer of nothing": (
        SLEA, ["bank.writer.strategies=0", "bank.writer.warnings=0"], "write nothing", "1 or more",
    ),
    "a bank that shows nothing": (COEVO, ["bank.retrieval.k=0"], "shows nothing", "or bank=null"),
    "clusters that show nothing": (SLEA, ["bank.retrieval.k=0", "bank.retrieval.warnings=0"], "shows nothing"),
    "ranks without scores": (
        SLEA, ["bank.writer={type: quote-reflection, induction: single}"], "does not score entries", "admission.type",
    ),
    "skills without kinds": ("homerules-skillrl-style", ["bank.key=task"], "writes for kinds", "set bank.key=kind"),
    "pairs without references": (
        RETRO, ["bank.references=0"], "references=0 keeps none", "references=4, or bank.writer.induction=single",
    ),
    # retrieval and clusters
    "cluster retrieval": (COEVO, ["bank.retrieval.type=cluster"], "needs observation clusters", "clusters.delta=0.85"),
    "clusters of a task": (COEVO, [CLUSTERS, "bank.retrieval={type: cluster, per: both}"], "per", "'step'"),
    "clusters as anchors": (GIGPO, ["update.advantage.anchor=cluster"], "needs observation clusters", CLUSTERS),
    # retrieval, utility and admission
    **{
        f"{retrieval} without utility": (
            EXPERIENCE, [f"bank.retrieval.type={retrieval}", f"bank.admission.type={admission}"], "ranks by utility",
            "set bank.utility={}",
        )
        for retrieval in ("simutil-ucb", "two-phase")
        for admission in ("append", "replay", "within-group")
    },
    "a bank much smaller than it has to be": (
        RETRO, ["bank.admission.capacity=7", "bank.retrieval.min_entries=8"], "room for 7 entries", "lower min_entries",
    ),
    "a bank that forgets too early": (
        COEVO, ["bank.retirement={capacity: 4}", "bank.retrieval.min_entries=4"], "bank.retirement.capacity has room",
        "larger capacity",
    ),
    "three levels of two zones": (
        SLEA, ["bank.admission.capacity={strategy: 3, warning: 1}", "bank.retrieval.min_entries=12"],
        "room for 12 entries", "larger capacity",
    ),
    "strategies without a level": (
        SLEA,
        [
            "bank.writer={type: quote-contrast}", "bank.admission.capacity={strategy: 3, warning: 9}",
            "bank.retrieval.min_entries=3",
        ],
        "room for 3 entries", "larger capacity",
    ),
    "a bank that is never large enough": (
        RETRO, ["bank.admission.capacity=8", "bank.retrieval.min_entries=8"], "room for 8 entries",
        "larger capacity",
    ),
    # advantage and group
    **{
        f"{recipe} with a group of one": (recipe, ["rollout.group_size=1"], "no group to compare with", "2 or more")
        for recipe in (GRPO, GIGPO, RLOO, "homerules-dr-grpo")
    },
    "a batch of one": (
        REINFORCE, ["rollout.group_size=1", "rollout.tasks=1"], "needs two episodes", "rollout.tasks=2",
    ),
    # advantage, critic and reward
    "gae without a critic": (PPO, ["update.critic=null"], "needs values", "set update.critic={}"),
    **{
        f"a critic for {recipe}": (recipe, ["update.critic={}"], "does not use a critic", "set update.critic=null")
        for recipe in (GRPO, GIGPO, RLOO, "homerules-dr-grpo", REINFORCE)
    },
    "a critic that is done too late": (PPO, ["update.critic.warmup=100"], "none of iterations=60", "warmup lower"),
    "a critic of one iteration": (PPO, ["iterations=1", "update.critic.warmup=1"], "none of iterations=1"),
    "a critic that is never done": (PPO, ["update.critic.warmup=60"], "none of iterations=60", "iterations higher"),
    "two discounts": (PPO, ["update.reward.type=discounted"], "discounts by itself", "update.reward.type=extrinsic"),
    **{
        f"two discounts, {reward}": (PPO, [f"update.reward.type={reward}"], "discounts by itself", "reward.gamma=1.0")
        for reward in ("capability-evolution", "progress-guided")
    },
    # episodes that are cut
    "parts without values": (GRPO, ["rollout.turns=4"], "type=grpo has no value for the rest", "update.critic={}"),
    "parts without an update": (EXPERIENCE, ["rollout.turns=4"], "update=null has no value", "rollout.turns=null"),
    "parts of a group": (CUT, ["rollout.group_size=2"], "plays tasks one by one", "set rollout.group_size=1"),
    "parts for a share": (CUT, ["bank={retrieval: {type: tfidf, share: 0.5}}"], "no groups to divide", "share=1.0"),
    # loss
    "kl in the reward that is none": (RLOO, ["update.loss.kl_coefficient=0.0"], "no effect", "update.loss.kl_in=loss"),
    "a divisor for a mean": (GRPO, ["update.loss.width=64"], "that aggregation=token-mean does not use", "width=null"),
    "a divisor for a mean of means": (
        GRPO, ["update.loss.aggregation=seq-mean-token-mean", "update.loss.width=64"], "does not use", "width=null",
    ),
    # sampling and update
    "the likeliest token": (COEVO, ["rollout.sampling.top_k=1"], "full distribution", "top_k=0"),
    "a nucleus": (COEVO, ["rollout.sampling.top_p=0.9"], "full distribution", "top_p=1.0"),
    "the likeliest tokens": (PPO, ["rollout.sampling.top_k=5"], "full distribution", "importance_cap=2.0"),
    # policy
    "prose for words": (COEVO, ["context.style=chat"], "needs a pretrained policy", "context.style=words"),
    "heads that do not share": (COEVO, ["policy.heads=4"], "kv_heads=3 does not divide heads=4", "policy.kv_heads=4"),
    "half precision without a copy": (
        GRPO,
        [*PRETRAINED, "policy.dtype=bfloat16", "update.deepspeed.zero_stage=0"],
        "needs a float32 copy for the update",
        "zero_stage=1",
    ),
    "adapters that are sent": (
        GRPO,
        [*PRETRAINED, "policy.lora={}", "rollout.engine={type: vllm, sync: gloo}"],
        "sends whole weights", "set rollout.engine.sync=files",
    ),
    "adapters of a policy from scratch": (COEVO, ["policy.lora={}"], "no such key"),
    # evaluation, and what a person decides
    "entries of no bank": (GRPO, ["evaluation.internalization=1"], "compares entries", "internalization=0, or a bank"),
    "a search of no bank": (GRPO, ["evaluation.retrieval=true"], "searches a bank", "evaluation.retrieval=false"),
    "a search for observations": (SLEA, ["evaluation.retrieval=true"], "answers observations", "another bank."),
    "decisions about no bank": (GRPO, ["approval.admission=person"], "needs a bank", "approval.admission=none"),
    **{
        f"nobody reflects in {recipe}": (
            recipe, [BY_REFLECTION], "reflecting writer: set bank.writer.type=quote-reflection", "potential=progress",
        )
        for recipe in (COEVO, GRPO)
    },
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_together_is_one_line_with_reason_and_remedy(name):
    recipe, settings, *says = REFUSED[name]
    said = refusal(recipe, settings)
    assert [words for words in says if words not in said] == [], said
    assert said.isprintable()
    assert re.match(rf"{recipe}: |\S+: ", said)
    assert len(said) < 250


def line_of(recipe, settings):
    """The refusal of settings; empty if they are accepted."""
    try:
        load_recipe(recipe, settings)
    except ConfigError as error:
        return str(error)
    return ""


def remedies(said):
    """Lists of settings that a refusal offers, one list for each alternative."""
    offers = [offer for part in INTRODUCTION.split(said)[1:] for offer in re.split(r",? or ", part)]
    return [found for offer in offers if (found := SETTING.findall(offer))]


def followed(recipe, settings, remedy):
    """The settings with a remedy, and their refusal."""
    more = [*settings, *(f"{key}={value}" for key, value in remedy)]
    return more, line_of(recipe, more)


@pytest.mark.parametrize("name", REFUSED)
def test_each_remedy_names_a_key_and_is_accepted_or_leads_on(name):
    recipe, settings, *_ = REFUSED[name]
    said = line_of(recipe, settings)
    for remedy in remedies(said):
        assert {key.split(".")[0] for key, _ in remedy} <= RunConfig.model_fields.keys(), said
        assert followed(recipe, settings, remedy)[1] != said, remedy


@pytest.mark.parametrize("name", REFUSED)
def test_the_first_remedies_lead_to_settings_that_are_accepted(name):
    recipe, settings, *_ = REFUSED[name]
    said = line_of(recipe, settings)
    for _ in range(STEPS):
        if offered := remedies(said):  # without, the user has to give what only the user knows, such as a URL
            settings, said = followed(recipe, settings, offered[0])
    assert not remedies(said), said
