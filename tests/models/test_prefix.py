import torch
from transformers import DynamicCache

from models.prefix import Prefix, SlotCache, common, heads


def test_common_prefix():
    assert common([(1, 2, 3), (1, 2, 4), (1, 2, 3, 5)]) == 2
    assert common([(1, 2), (1, 2, 3)]) == 2
    assert common([(1,), (2,)]) == 0
    assert common([(7, 8)]) == 2
    assert common([(), (1,)]) == 0


def test_a_head_leaves_every_prompt_a_token():
    prompts = {"a": [(1, 2, 3), (1, 2, 4)], "b": [(5, 6), (5, 6)], "c": [(9,)], "d": [(1, 2), (1, 2, 3)]}
    assert heads(prompts) == {"a": (1, 2), "b": (5,), "c": (), "d": (1,)}


def states(columns, seed):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(3, 2, columns, 4, generator=rng), torch.randn(3, 2, columns, 4, generator=rng)


def test_writes_what_a_dynamic_cache_writes():
    ours, theirs = SlotCache(10), DynamicCache()
    for step, columns in enumerate((4, 1, 1)):
        for layer in range(2):
            keys, values = states(columns, 10 * step + layer)
            for mine, other in zip(ours.update(keys, values, layer), theirs.update(keys, values, layer), strict=True):
                assert torch.equal(mine, other)
        assert ours.get_seq_length() == theirs.get_seq_length()


def test_rows_leave_and_come_several_times():
    cache = SlotCache(4)
    keys, values = states(3, 0)
    cache.update(keys, values, 0)
    cache.keep(torch.tensor([0, 2, 2]))
    seen, _ = cache.update(keys[:, :, :1], values[:, :, :1], 0)
    assert torch.equal(seen[:, :, :3], keys[[0, 2, 2]])
    assert torch.equal(seen[:, :, 3:], keys[:, :, :1])


def test_prefixes_there_and_back():
    cache = SlotCache(3)
    keys, values = states(3, 0)
    cache.update(keys, values, 0)
    ids = [(1, 2, 3), (1,), ()]
    prefixes = list(cache.prefixes(ids))
    assert [prefix.layers[0][0].shape[1] for prefix in prefixes] == [3, 1, 0]
    assert isinstance(prefixes[0], Prefix)
    filled = SlotCache(5)
    filled.fill(prefixes, 2)
    assert filled.get_seq_length() == 2
    seen, _ = filled.update(keys[:, :, :1], values[:, :, :1], 0)
    assert torch.equal(seen[0, :, :2], keys[0, :, :2])
    assert torch.equal(seen[1, :, :1], keys[1, :, :1])
    assert torch.equal(seen[:, :, 2:], keys[:, :, :1])
