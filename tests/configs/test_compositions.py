"""Parts that do not go together are refused when they are read, with the reason and the remedy in one line."""

import re

import pytest

from coevo.configs.errors import ConfigError
from coevo.configs.load.load import load_recipe

COEVO, EXPERIENCE, REACT = "homerules-coevo-rl", "homerules-experience-only", "homerules-react"
GRPO, GIGPO, PPO, RLOO = "homerules-grpo", "homerules-gigpo", "homerules-ppo", "homerules-rloo"
CUT = "homerules-context-lite"
TRAINED, TRAINED_WRITER = "homerules-retroagent-trained", "homerules-coevo-rl-trained-writer"
POLICY_FIRST, BANK_FIRST = "homerules-coevo-rl-policy-first", "homerules-coevo-rl-bank-first"
FROZEN = "homerules-coevo-rl-frozen-bank"
SHARED = "homerules-coevo-rl-qwen3-8b"
AHEAD = ("rollout.ahead=1", "update.loss.importance_cap=2.0")
PRETRAINED = ("warmstart=null", "policy={type: pretrained, path: here}")
CLUSTERS = "clusters.delta=0.85"
WITHIN = "bank.admission={type: within-group}"

REFUSED = {
    # rollouts beside the update
    "an old policy's batch as it is": (GRPO, ["rollout.ahead=1"], "the policy before", "importance_cap=2.0"),
    "ahead of no update": (EXPERIENCE, ["rollout.ahead=1"], "update=null has none", "set rollout.ahead=0"),
    "ahead of parts": (CUT, AHEAD, "continues the last batch's episodes", "rollout.turns=null"),
    "parts with a reward of the whole": (
        CUT, ["update.reward={type: progress-guided, gamma: 1.0}"], "needs whole ones", "update.reward.type=extrinsic",
    ),
    "ahead of servers that sleep": (SHARED, [*AHEAD, "placement={type: shared}"], "sleep during the", "type=separate"),
    "episodes by themselves, in this process": (GRPO, ["rollout.pace=episode"], "asks a server", "engine.type=vllm"),
    "two ahead": (GRPO, ["rollout.ahead=2"], "rollout.ahead", "0 or 1"),
    # reflections in words
    "words that nobody taught": (
        "homerules-retroagent-policy", ["warmstart.reflections=0"], "or bank.writer.form=words", "reflections=16",
    ),
    "reflections in words by an endpoint": (
        "homerules-retroagent-policy",
        ["bank.writer.author={type: endpoint, url: http://localhost:8000/v1, model: m}"],
        "form=words is for a policy of single words", "set bank.writer.form=prose",
    ),
    "reflections that nobody asks for": (
        "homerules-retroagent", ["warmstart.reflections=8"], "asks for reflections in words", "warmstart.reflections=0",
    ),
    "words about a pair": (
        "homerules-retroagent-policy", ["bank.writer.induction=pairwise"], "shows one attempt", "set induction=single",
    ),
    "an answer as long as the policy": (
        "homerules-retroagent-policy", ["bank.writer.author.max_new_tokens=512"], "no room for a question", "lower",
    ),
    # the policy trained as writer
    "a rule cannot be trained": (
        COEVO, ["update.writer={}"], "trains the policy as writer", "bank.writer.author.type=policy",
    ),
    "answers at another temperature": (
        TRAINED, ["bank.writer.author.temperature=0.2"], "at the temperature of the rollouts", "temperature=0.4",
    ),
    "predictions of what is said": (TRAINED, ["bank.writer.told=outcome"], "is not told", "bank.writer.told=nothing"),
    "gains of a batch": (TRAINED_WRITER, ["bank.admission.per=batch"], "gain of each", "bank.admission.per=entry"),
    "gains without replay": (
        TRAINED_WRITER, ["bank.admission={type: append}"], "gain of each candidate", "bank.admission.type=replay",
    ),
    "balanced gains": (TRAINED_WRITER, ["update.writer.balance=true"], "weighs predictions", "balance=false"),
    "predictions that nobody makes": (
        COEVO, ["evaluation.reflections=8"], "needs a reflecting writer", "evaluation.reflections=0",
    ),
    # what is learned, and by whom
    "neither policy nor bank learns": (COEVO, ["bank=null", "update=null"], "leave nothing to learn", "iterations=0"),
    "react has nothing to learn": (REACT, ["iterations=5"], "leave nothing to learn", "iterations=0"),
    # trials within the rollout budget
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
    "a switch without phases": (COEVO, ["schedule.switch_at=3"], "say which kind it is", "schedule.type"),
    # bank and revision
    "a bank within a revision": (COEVO, ["lineage.every=2"], "bank.every=1 must be a multiple", "lineage.every=2"),
    # bank and prompt
    "lessons that have no room": (COEVO, ["context.experience_tokens=0"], "shows nothing", "experience_tokens=200"),
    "lessons longer than a prompt": (COEVO, ["context.experience_tokens=500"], "do not fit", "lower context."),
    # bank and group
    "half a group of one": (
        COEVO, ["bank.retrieval.share=0.5", "rollout.group_size=1", "update.advantage.type=reinforce"], "to none of",
        "larger rollout.group_size",
    ),
    "a share that is the whole group": (COEVO, ["bank.retrieval.share=0.95"], "rounds to all of them", "share=1.0"),
    "a share that is nobody": (COEVO, ["bank.retrieval.share=0.05"], "rounds to none of them", "share=0.125"),
    # what is written and shown
    "a writer of nothing": (
        "homerules-slea-rl", ["bank.writer.strategies=0", "bank.writer.warnings=0"], "write nothing", "1 or more",
    ),
    "a bank that shows nothing": (COEVO, ["bank.retrieval.k=0"], "shows nothing", "or bank=null"),
    "skills without kinds": ("homerules-skillrl-style", ["bank.key=task"], "writes for kinds", "set bank.key=kind"),
    "pairs without references": (
        "homerules-retroagent", ["bank.references=0"], "bank.references=0 keeps none", "set bank.references=4",
    ),
    # retrieval and clusters
    "cluster retrieval": (COEVO, ["bank.retrieval.type=cluster"], "needs observation clusters", "clusters.delta=0.85"),
    "clusters of a task": (COEVO, [CLUSTERS, "bank.retrieval={type: cluster, per: task}"], "'step' or 'both'"),
    "clusters as anchors": (GIGPO, ["update.advantage.anchor=cluster"], "needs observation clusters", CLUSTERS),
    # retrieval, utility and admission
    **{
        f"{retrieval} without utility": (
            EXPERIENCE, [f"bank.retrieval.type={retrieval}", f"bank.admission.type={admission}"], "ranks by utility",
            "set bank.utility={}",
        )
        for retrieval in ("simutil-ucb", "two-phase")
        for admission in ("append", "replay")
    },
    "a bank that is never large enough": (
        "homerules-retroagent", ["bank.admission.capacity=8", "bank.retrieval.min_entries=8"], "room for 8 entries",
        "larger capacity",
    ),
    # advantage and group
    **{
        f"{recipe} with a group of one": (recipe, ["rollout.group_size=1"], "no group to compare with", "2 or more")
        for recipe in (GRPO, GIGPO, RLOO, "homerules-dr-grpo")
    },
    "a batch of one": (
        "homerules-reinforce", ["rollout.group_size=1", "rollout.tasks=1"], "needs two episodes", "rollout.tasks=2",
    ),
    # advantage, critic and reward
    "gae without a critic": (PPO, ["update.critic=null"], "needs values", "set critic={}"),
    **{
        f"a critic for {recipe}": (recipe, ["update.critic={}"], "does not use a critic", "set critic=null")
        for recipe in (GRPO, GIGPO, RLOO, "homerules-dr-grpo", "homerules-reinforce")
    },
    "a critic that is never done": (PPO, ["update.critic.warmup=60"], "none of iterations=60", "iterations higher"),
    "two discounts": (PPO, ["update.reward.type=discounted"], "discounts by itself", "set reward.type=extrinsic"),
    **{
        f"two discounts, {reward}": (PPO, [f"update.reward.type={reward}"], "discounts by itself", "reward.gamma=1.0")
        for reward in ("capability-evolution", "progress-guided")
    },
    # loss
    "kl in the reward that is none": (RLOO, ["update.loss.kl_coefficient=0.0"], "has no effect", "set kl_in=loss"),
    "a divisor for a mean": (GRPO, ["update.loss.width=64"], "that aggregation=token-mean does not use", "width=null"),
    # sampling and update
    "a nucleus": (COEVO, ["rollout.sampling.top_p=0.9"], "full distribution", "top_p=1.0"),
    "the likeliest tokens": (PPO, ["rollout.sampling.top_k=5"], "full distribution", "importance_cap=2.0"),
    # policy
    "prose for words": (COEVO, ["context.style=chat"], "needs a pretrained policy", "context.style=words"),
    "heads that do not share": (COEVO, ["policy.heads=4"], "kv_heads=3 does not divide heads=4", "set kv_heads=4"),
    "half precision without a copy": (
        GRPO,
        [*PRETRAINED, "policy.dtype=bfloat16", "update.deepspeed.zero_stage=0"],
        "needs a float32 copy for the update",
        "zero_stage=1",
    ),
    "adapters that are sent": (
        GRPO,
        [*PRETRAINED, "policy.lora={}", "rollout.engine={type: vllm, sync: gloo}"],
        "sends whole weights", "set sync=files",
    ),
    "adapters of a policy from scratch": (COEVO, ["policy.lora={}"], "no such key"),
    # evaluation
    "no panel": (COEVO, ["evaluation.panels=[]"], "evaluation.panels", "at least 1 item"),
}  # fmt: skip

ALLOWED = {
    "ahead with a bank that comes later": (POLICY_FIRST, AHEAD),
    "episodes by themselves, on a server": (GRPO, ("rollout.pace=episode", "rollout.engine={type: vllm}")),
    "ahead with a critic": (PPO, AHEAD),
    "a phase for each": (POLICY_FIRST, ["iterations=2", "schedule.switch_at=1"]),
    "a revision a phase": (BANK_FIRST, ["lineage.every=10", "bank.every=10"]),
    "a staged run that is only evaluated": (BANK_FIRST, ["iterations=0"]),
    "a later firing under a joint schedule": (COEVO, ["bank.every=100"]),
    "half a group": (COEVO, ["bank.retrieval.share=0.5", "rollout.group_size=2"]),
    "training without what evaluation sees": (COEVO, ["bank.retrieval.share=0.0"]),
    "clusters as anchors without a bank": (GIGPO, [CLUSTERS, "update.advantage.anchor=cluster"]),
    "clusters as anchors beside another retrieval": (
        COEVO, [CLUSTERS, "update.advantage.type=gigpo", "update.advantage.anchor=cluster"],
    ),
    "lessons that no bank has": (GRPO, ["context.experience_tokens=0"]),
    "half precision of a frozen policy": (EXPERIENCE, [*PRETRAINED, "policy.dtype=bfloat16"]),
    "half precision": (GRPO, [*PRETRAINED, "policy.dtype=bfloat16"]),
    "half precision under adapters": (GRPO, [*PRETRAINED, "policy.dtype=bfloat16", "policy.lora={}"]),
    "a nucleus of a frozen policy": (EXPERIENCE, ["rollout.sampling.top_p=0.9"]),
    "a divisor": (GRPO, ["update.loss.aggregation=seq-mean-token-sum-norm", "update.loss.width=64"]),
    "lessons in the system role of words": (COEVO, ["context.placement=system"]),
    "many parts of many methods": (
        FROZEN,
        [
            CLUSTERS, "context.placement=system", "bank.retrieval={type: cluster, k: 2, share: 0.5, warmup: 2}",
            "update.advantage={type: gigpo, anchor: cluster}", "update.reward={type: capability-evolution}",
            "update.loss={aggregation: traj-mean-step-mean, dual_clip: 3.0}",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_together_is_one_line_with_reason_and_remedy(name):
    recipe, settings, *says = REFUSED[name]
    with pytest.raises(ConfigError) as caught:
        load_recipe(recipe, settings)
    said = str(caught.value)
    assert [words for words in says if words not in said] == [], said
    assert said.isprintable()
    assert re.match(rf"{recipe}: |\S+: ", said)
    assert len(said) < 250


@pytest.mark.parametrize("name", ALLOWED)
def test_what_goes_together_loads(name):
    recipe, settings = ALLOWED[name]
    assert load_recipe(recipe, settings).recipe == recipe
