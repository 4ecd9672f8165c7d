import pytest
import torch
from support.policies import WORDS

from coevo.configs.context_config import ContextConfig
from coevo.configs.policy_config import LoraConfig, PretrainedPolicyConfig, ScratchPolicyConfig, WarmStartConfig
from coevo.models.policy.cloning import (
    IGNORED,
    ProbeResult,
    WarmStartReport,
    agreement,
    clone,
    demonstrated,
    padded,
    parts,
)
from coevo.models.policy.context import CONTEXT_WORDS, Context
from coevo.models.policy.policy import build, load, save
from coevo.records.demonstration import Answer, Demonstration, Moment, Note
from coevo.records.draws import generator, key

PLACES = ("safe", "drawer", "hall", "microwave")
QUICK = WarmStartConfig(steps=80, lr=1e-2, warmup=5, probe_every=10, ema=0.8)


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def policy():
    config = ScratchPolicyConfig(hidden_size=32, layers=1, heads=2, kv_heads=1, head_dim=16, intermediate_size=48)
    return build(config, (*WORDS, *CONTEXT_WORDS), key(0, "clone"))


def shown(seed, count=24):
    """An expert that goes where its only lesson points."""
    rng = generator(key("shown", seed))
    places = [PLACES[index] for index in rng.integers(len(PLACES), size=count)]
    return [
        Demonstration(Moment("take mug", (Note(f"mug in {place}"),), (), "at hall"), Answer("", f"go {place}"))
        for place in places
    ]


def reading(context):
    """A probe without play: the share of fresh demonstrations whose answer is the most likely one."""

    def probe(probed):
        ids, labels = padded([(context.prompt(one.moment), context.target(one.answer)) for one in shown("probe")])
        with torch.inference_mode():
            said = probed.model(input_ids=ids).logits[:, :-1].argmax(-1)
        right = ((said == labels[:, 1:]) | (labels[:, 1:] == IGNORED)).all(-1).float().mean()
        return ProbeResult(float(right), 0.0)

    return probe


def examples(context):
    return lambda step: demonstrated(context, shown(step))


def cloned(config=QUICK, probe=None, progress=lambda line: None):
    taught = policy()
    context = Context(ContextConfig(), taught.tokenizer)
    return taught, clone(taught, examples(context), probe or reading(context), config, progress)


def test_padding_by_hand():
    ids, labels = padded([((5, 6), (7, 1)), ((5,), (8, 9, 1)), ((5,), (1,))])
    assert ids.tolist() == [[5, 6, 7, 1], [5, 8, 9, 1], [5, 1, 0, 0]]
    none = IGNORED
    assert labels.tolist() == [[none, none, 7, 1], [none, 8, 9, 1], [none, 1, none, none]]


def test_parts_hold_every_example_once():
    context = Context(ContextConfig(), policy().tokenizer)
    demonstrations = [*shown(0, 7), Demonstration(Moment("take mug", (), (), "at hall"), Answer("in safe", "put mug"))]
    made = parts(demonstrated(context, demonstrations))
    rows = sorted(tuple(label for label in row if label != IGNORED) for _, labels in made for row in labels.tolist())
    assert rows == sorted(context.target(one.answer) for one in demonstrations)


def test_cloning_learns_to_read_and_stops_there():
    lines = []
    taught, report = cloned(progress=lines.append)
    assert report.passed
    assert report.steps % QUICK.probe_every == 0
    assert report.steps <= QUICK.steps
    assert report.probe.right >= QUICK.read
    assert len(lines) == report.steps
    assert lines[0].startswith("warm start: step 1 of at most 80")
    assert not taught.model.training
    # What is kept is what was probed.
    assert reading(Context(ContextConfig(), taught.tokenizer))(taught) == report.probe


def test_same_inputs_same_weights():
    config = QUICK.model_copy(update={"steps": 5})
    first, second = cloned(config)[0], cloned(config)[0]
    for mine, other in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(mine, other)


@pytest.mark.parametrize(
    "right, wrong, passed", [(0.75, 0.25, True), (0.74, 0.0, False), (0.9, 0.41, False), (1.0, 0.5, True)]
)
def test_both_thresholds_of_the_probe(right, wrong, passed):
    config = QUICK.model_copy(update={"steps": 3, "probe_every": 2})
    probes = []

    def probe(probed):
        probes.append(probed)
        return ProbeResult(right, wrong)

    _, report = cloned(config, probe)
    # Where the second step passes, the third is not taken; where it does not, the last step is probed too.
    assert report == WarmStartReport(passed, 2 if passed else 3, ProbeResult(right, wrong))
    assert len(probes) == (1 if passed else 2)
    assert report.figures() == {"passed": float(passed), "steps": report.steps, "right": right, "wrong": wrong}


def test_the_average_of_the_weights_is_what_is_kept():
    # Without averaging the last weights are kept: another policy, from the same steps.
    config = QUICK.model_copy(update={"steps": 5, "probe_every": 5, "read": 1.0, "margin": 1.0})
    averaged, _ = cloned(config)
    last, _ = cloned(config.model_copy(update={"ema": 0.0}))
    assert not torch.equal(*(each.model.get_input_embeddings().weight for each in (averaged, last)))


def test_no_steps_leave_the_policy_as_it_is():
    before = policy()
    after, report = cloned(QUICK.model_copy(update={"steps": 0}))
    assert not report.passed
    for mine, other in zip(before.model.parameters(), after.model.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_loss_counts_answers_only():
    lines = []
    cloned(QUICK.model_copy(update={"steps": 1, "probe_every": 1}), progress=lines.append)
    untaught = policy()
    context = Context(ContextConfig(), untaught.tokenizer)
    total, count = 0.0, 0
    with torch.inference_mode():
        for one in shown(0):
            prompt, target = context.prompt(one.moment), context.target(one.answer)
            logprobs = untaught.model(input_ids=torch.tensor([[*prompt, *target]])).logits[0].log_softmax(-1)
            total -= sum(float(logprobs[len(prompt) - 1 + place, token]) for place, token in enumerate(target))
            count += len(target)
    assert f"loss {total / count:.3f}" in lines[0]


@pytest.mark.full
def test_adapters_of_a_pretrained_policy_learn_to_read_and_are_kept(tmp_path):
    save(policy(), tmp_path / "base")
    lora = LoraConfig(r=16, alpha=32)
    config = PretrainedPolicyConfig(type="pretrained", path=str(tmp_path / "base"), lora=lora)
    adapted = build(config, (), key(1))
    said = list[str]()
    base = {name: value.clone() for name, value in adapted.model.named_parameters() if "lora_" not in name}
    context = Context(ContextConfig(), adapted.tokenizer)
    report = clone(adapted, examples(context), reading(context), QUICK, said.append)
    losses = [float(line.partition("loss ")[2].partition(",")[0]) for line in said]
    assert losses[-1] < 0.7 * losses[0]  # the frozen weights are random
    after = dict(adapted.model.named_parameters())
    assert all(torch.equal(value, after[name]) for name, value in base.items())
    save(adapted, tmp_path / "kept")
    assert reading(context)(load(tmp_path / "kept")) == report.probe


def test_cloning_continues_until_reflections_are_as_taught():
    written = iter((0.5, 0.89, 0.9, 1.0))
    lines = []
    _, report = cloned(QUICK, lambda probed: ProbeResult(1.0, 0.0, next(written)), lines.append)
    assert (report.passed, report.steps, report.probe.written) == (True, 3 * QUICK.probe_every, 0.9)
    assert report.figures()["written"] == 0.9
    assert lines[-1].endswith("reflections as taught 0.90")


def test_agreement_is_the_share_of_answers_whose_every_token_is_the_likeliest():
    taught = policy()
    prompt, told = (5, 6, 7), [9, 8]
    with torch.no_grad():
        for place in range(2):
            ids = torch.tensor([[*prompt, *told[:place]]])
            told[place] = int(taught.model(input_ids=ids).logits[0, -1].argmax())
    other = (told[0], (told[1] + 1) % 10)
    examples = [(prompt, tuple(told)), (prompt, other), (prompt, (told[0],)), (prompt, (other[1], told[1]))]
    expected = 0.5 if other[1] != told[0] else 0.25
    assert agreement(taught.model, examples) == expected
    assert agreement(taught.model, examples[:2], free=[other[1]]) == 1.0
