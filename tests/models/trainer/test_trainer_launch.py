"""GPUs of several processes of the trainer."""

import pytest

from coevo.configs.update.update_config import DeepSpeedConfig
from coevo.models.trainer.trainer_launch import TrainerRanks
from coevo.utilities.errors import CoevoError


def test_each_process_needs_a_visible_gpu(tmp_path):
    config = DeepSpeedConfig(device="cuda", processes=4)
    with pytest.raises(CoevoError, match=r"processes=4, but CUDA_VISIBLE_DEVICES=4,6,7: each process needs its own"):
        TrainerRanks(config, tmp_path / "log", {"CUDA_VISIBLE_DEVICES": "4,6,7"})
    assert not list(tmp_path.iterdir())
