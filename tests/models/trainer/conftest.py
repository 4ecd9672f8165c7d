"""A tiny policy, samples that it drew, and a process group for DeepSpeed."""

import gc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from support.rows import plain_logprobs, ragged
from support.trainer import join

from coevo.configs.policy_config import ScratchPolicyConfig
from coevo.models.policy.policy import build, save
from coevo.models.trainer.samples import SAMPLES
from coevo.models.trainer.update_batch import Batch, read
from coevo.records.draws import generator, key

WORDS = tuple(f"w{index}" for index in range(20))
TINY = ScratchPolicyConfig(hidden_size=16, layers=2, heads=2, kv_heads=1, head_dim=8, intermediate_size=32)


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Threads only wait for each other on models this small."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def policy():
    return build(TINY, WORDS, key("policy"))


@pytest.fixture(scope="session")
def policy_path(policy, tmp_path_factory):
    path = tmp_path_factory.mktemp("policy")
    save(policy, path)
    return path


@pytest.fixture(scope="session")
def samples_path(policy, tmp_path_factory):
    path = tmp_path_factory.mktemp("samples") / "batch.parquet"
    prompts, completions, groups = ragged(groups=4)
    with torch.no_grad():
        logprobs, _ = plain_logprobs(policy.model, prompts, completions)
    advantages = generator(key("advantages")).normal(size=len(prompts) // 3).tolist()
    rows = [
        {
            "episode": f"e{row // 3}",
            "group": f"g{groups[row]}",
            "turn": row % 3,
            "prompt_ids": prompts[row],
            "token_ids": completions[row],
            "logprobs": logprobs[row].tolist(),
            "advantage": [advantages[row // 3]] * len(completions[row]),
            "value": [0.0] * len(completions[row]),
            "return": [float(row % 2)] * len(completions[row]),
        }
        for row in range(len(prompts))
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=SAMPLES), path)
    return path


@pytest.fixture(scope="session")
def empty_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("empty") / "batch.parquet"
    pq.write_table(SAMPLES.empty_table(), path)
    return path


@pytest.fixture(scope="session")
def batch(samples_path) -> Batch:
    return read(samples_path)


@pytest.fixture(scope="session")
def joined():
    """DeepSpeed's process group of this process, in which other modules may have trained before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCAL_RANK", "0")
        join()
        gc.freeze()  # DeepSpeed collects garbage several times for an engine in half precision
        yield
        gc.unfreeze()
        torch.distributed.destroy_process_group()
