"""Parts that go together: some beside a refusal, the last value before it, and conditions that only together refuse."""

import pytest

from coevo.configs.compositions import flaws
from coevo.configs.load.load import load_recipe

COEVO, FROZEN = "homerules-coevo-rl", "homerules-coevo-rl-frozen-bank"
EXPERIENCE, GIGPO = "homerules-experience-only", "homerules-gigpo"
GRPO, PPO, REINFORCE, CUT = "homerules-grpo", "homerules-ppo", "homerules-reinforce", "homerules-context-lite"
RETRO, IN_WORDS, SLEA = "homerules-retroagent", "homerules-retroagent-policy", "homerules-slea-rl"
POLICY_FIRST, BANK_FIRST = "homerules-coevo-rl-policy-first", "homerules-coevo-rl-bank-first"
SHARED = "homerules-coevo-rl-qwen3-8b"
PRETRAINED = ("warmstart=null", "policy={type: pretrained, path: here}")
SERVED, ASKING = "rollout.engine={type: vllm}", "bank.writer={type: model-contrast}"
COLD = "bank.writer={type: model-contrast, model: {type: frozen, path: here, temperature: 0.009}}"
AHEAD = ("rollout.ahead=1", "update.loss.importance_cap=2.0")
CLUSTERS = "clusters.delta=0.85"
WITHIN = "bank.admission={type: within-group}"

ALLOWED = {
    "ahead with a bank that comes later": (POLICY_FIRST, AHEAD),
    "episodes by themselves, on a server": (GRPO, ("rollout.pace=episode", SERVED)),
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
    "prose of a pretrained policy": (COEVO, [*PRETRAINED, "context.style=chat", "context.placement=turn", ASKING]),
    "an answer that leaves one token": (IN_WORDS, ["bank.writer.model.max_new_tokens=511"]),
    "an answer that leaves one token in a server": (SHARED, ["rollout.engine.max_model_len=1025"]),
    "an answer in a server of the policy's length": (SHARED, ["rollout.engine.max_model_len=null"]),
    "a writer model as cold as can be": (SHARED, ["bank.writer.model={type: policy, temperature: 0.01}"]),
    "a cold writer model in this process": (COEVO, [COLD]),
    "a server as cold as can be": (COEVO, [SERVED, "rollout.sampling.temperature=0.01"]),
    "a cold policy in this process": (COEVO, ["rollout.sampling.temperature=0.009"]),
    "heads that share": (COEVO, ["policy.heads=6"]),
    "lessons that leave one token": (COEVO, ["context.experience_tokens=499"]),
    "trials in halves of two": (COEVO, [WITHIN, "rollout.group_size=4"]),
    "trials in half a group": (COEVO, [WITHIN, "bank.retrieval.share=0.5"]),
    "one firing after the policy": (POLICY_FIRST, ["bank.every=20"]),
    "one firing before the policy": (BANK_FIRST, ["bank.every=20"]),
    "one firing in all": (FROZEN, ["bank.every=40"]),
    "no firing in a run that is only evaluated": (BANK_FIRST, ["iterations=0", "bank.every=40"]),
    "room for one entry more": (RETRO, ["bank.admission.capacity=9", "bank.retrieval.min_entries=8"]),
    "room for one entry more than retire": (COEVO, ["bank.retirement={capacity: 5}", "bank.retrieval.min_entries=4"]),
    "room for one entry more in two zones": (
        SLEA, ["bank.admission.capacity={strategy: 3, warning: 1}", "bank.retrieval.min_entries=11"],
    ),
    "strategies alone": (SLEA, ["bank.writer.warnings=0"]),
    "warnings alone": (SLEA, ["bank.writer.strategies=0"]),
    "as many strategies as warnings": (SLEA, ["bank.writer.strategies=5", "bank.writer.warnings=5"]),
    "general entries alone": (COEVO, ["bank.retrieval.k=0", "bank.retrieval.general=1"]),
    "warnings of a cluster alone": (SLEA, ["bank.retrieval.k=0"]),
    "single episodes without references": (RETRO, ["bank.writer.induction=single", "bank.references=0"]),
    "two episodes": (REINFORCE, ["rollout.group_size=1", "rollout.tasks=2"]),
    "one episode without a baseline": (
        REINFORCE, ["rollout.group_size=1", "rollout.tasks=1", "update.advantage.baseline=none"],
    ),
    "a critic that is done before the last iteration": (PPO, ["update.critic.warmup=59"]),
    "a critic that is never trained": (PPO, ["iterations=0"]),
    "parts beside a whole bank": (CUT, ["bank={retrieval: {type: tfidf}}"]),
    "a nucleus that is corrected for": (COEVO, ["rollout.sampling.top_p=0.9", "update.loss.importance_cap=2.0"]),
    "a potential by reflection": (RETRO, ["update.reward.potential=reflection"]),
    "full precision without a copy": (GRPO, [*PRETRAINED, "update.deepspeed.zero_stage=0"]),
    "half precision under adapters without a copy": (
        GRPO, [*PRETRAINED, "policy.dtype=bfloat16", "policy.lora={}", "update.deepspeed.zero_stage=0"],
    ),
    "weights that are sent": (GRPO, [*PRETRAINED, "rollout.engine={type: vllm, sync: gloo}"]),
    "adapters in files": (GRPO, [*PRETRAINED, "policy.lora={}", SERVED]),
    "attempts beside replays": (COEVO, ["evaluation.discovery=2"]),
    "attempts beside entries that are appended": (RETRO, ["evaluation.discovery=2"]),
    "attempts without a bank": (GRPO, ["evaluation.discovery=3"]),
    "all that is measured of a bank, and a person": (
        COEVO, ["evaluation.internalization=1", "evaluation.retrieval=true", "approval.admission=person"],
    ),
    "predictions of a reflecting writer": (RETRO, ["evaluation.reflections=1"]),
}  # fmt: skip


@pytest.mark.parametrize("name", ALLOWED)
def test_what_just_goes_together_loads(name):
    recipe, settings = ALLOWED[name]
    assert load_recipe(recipe, settings).recipe == recipe


def test_vllm_takes_heads_of_those_sizes_alone_that_it_has_kernels_for():
    config = load_recipe(COEVO, [SERVED])

    def fits(size):
        policy = config.policy.model_copy(update={"head_dim": size})
        return not list(flaws(config.model_copy(update={"policy": policy})))

    assert [size for size in range(8, 300) if fits(size)] == [32, 64, 80, 96, 112, 128, 160, 192, 224, 256]
