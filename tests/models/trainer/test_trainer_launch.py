"""GPUs of several processes of the trainer."""

import pytest

from coevo.configs.update.update_config import DeepSpeedConfig
from coevo.models.trainer import trainer_launch
from coevo.utilities.errors import CoevoError


def test_processes_take_the_gpus_that_they_are_left():
    left = {"CUDA_VISIBLE_DEVICES": "4,6,7"}
    assert trainer_launch._here(DeepSpeedConfig(device="cuda", processes=2), left) == ["4", "6"]
    assert trainer_launch._here(DeepSpeedConfig(processes=4), left) == ["0", "1", "2", "3"]
    with pytest.raises(CoevoError, match=r"processes=4, but CUDA_VISIBLE_DEVICES=4,6,7: each process needs its own"):
        trainer_launch._here(DeepSpeedConfig(device="cuda", processes=4), left)
