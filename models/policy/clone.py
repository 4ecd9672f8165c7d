"""Cloning: training of a policy on expert answers, until it reads its lessons, and writes them if it is taught to.

The probe decides when to stop: success with true lessons, its distance from success with false lessons, and the share
of reflections as they are taught. The probed and final policy is a running average of the weights.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from coevo.configs.policy_config import WarmStartConfig
from coevo.models.policy.cloning import Examples, optimizers, parts, step_on
from coevo.models.policy.context import Context
from coevo.models.policy.policy import Policy
from coevo.records.demonstration import Demonstration


@dataclass(frozen=True)
class ProbeResult:
    """Result of a probe.

    Attributes:
        right: success rate with true lessons.
        wrong: success rate with false lessons.
        written: share of reflections as the teacher gives them, but for what it draws; None if none are taught.
    """

    right: float
    wrong: float
    written: float | None = None


@dataclass(frozen=True)
class WarmStartReport:
    """Result of cloning.

    Attributes:
        passed: True if the probe was passed within the maximum number of steps.
        steps: optimizer steps taken.
        probe: the last probe.
    """

    passed: bool
    steps: int
    probe: ProbeResult

    def figures(self) -> dict[str, float]:
        """Report as metrics."""
        return {
            "passed": float(self.passed),
            "steps": float(self.steps),
            "right": self.probe.right,
            "wrong": self.probe.wrong,
        } | ({} if self.probe.written is None else {"written": self.probe.written})


def clone(
    policy: Policy,
    context: Context,
    demonstrations: Callable[[int], Sequence[Demonstration]],
    probe: Callable[[Policy], ProbeResult],
    config: WarmStartConfig,
    progress: Callable[[str], None],
    more: Callable[[int], Examples] = lambda step: (),
) -> WarmStartReport:
    """Train ``policy`` in place on the demonstrations of each step, until the probe passes or the steps run out.

    Args:
        policy: trained in place.
        context: writes its prompts.
        demonstrations: expert material of a step.
        probe: plays the reading probe.
        config: settings.
        progress: gets a line per step.
        more: further prompts and answers of a step, in token ids.
    """
    model = policy.model
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(config.ema))  # type: ignore[no-untyped-call]
    made = optimizers(model, config.lr)
    result, step = ProbeResult(0.0, 0.0), 0
    while step < config.steps and not _passes(result, config):
        model.train()
        examples = batches(context, demonstrations(step), more(step))
        loss = step_on(model, made, examples, _rate(step, config), config.clip)
        average.update_parameters(model)
        step += 1
        if step % config.probe_every == 0 or step == config.steps:
            result = probe(Policy(average.module.eval(), policy.tokenizer))
        progress(
            f"warm start: step {step} of at most {config.steps}, loss {loss:.3f}, "
            f"success with right lessons {result.right:.2f}, with wrong ones {result.wrong:.2f}"
            f"{'' if result.written is None else f', reflections as taught {result.written:.2f}'}"
        )
    model.load_state_dict(average.module.state_dict())
    model.eval()
    return WarmStartReport(_passes(result, config), step, result)


def batches(
    context: Context, demonstrations: Sequence[Demonstration], more: Examples = ()
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Token ids and labels of one step, (rows, longest), in parts of similar length."""
    shown = [(context.prompt(each.moment), context.target(each.answer)) for each in demonstrations]
    return parts([*shown, *more])


def _rate(step: int, config: WarmStartConfig) -> float:
    return config.lr * min(1.0, (step + 1) / max(1, config.warmup))


def _passes(result: ProbeResult, config: WarmStartConfig) -> bool:
    reads = result.right >= config.read and result.right - result.wrong >= config.margin
    return reads and (result.written is None or result.written >= config.write)
