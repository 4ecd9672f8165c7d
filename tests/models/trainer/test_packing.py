"""A token that rows share is in the trie once, and attends to what stands before it in its rows."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from support.rows import batch_of, packed_as, ragged

from coevo.models.trainer.packing import pack_rows, pack_trie

IDS = st.lists(st.integers(1, 3), min_size=1, max_size=6).map(tuple)
ROWS = st.lists(st.tuples(IDS, IDS), min_size=1, max_size=12)


def attended(packed):
    """Nodes that each node attends to, in order, by the bins; the ends of subtrees say the same."""
    found = {}
    for part in packed.paths.bins:
        causal = torch.ones(part.queries.shape[1], part.keys.shape[1], dtype=torch.bool).tril()
        for leaf, (queries, keys) in enumerate(zip(part.queries.tolist(), part.keys, strict=True)):
            mask = causal if part.mask is None else part.mask[leaf, 0]
            for column, node in enumerate(queries):
                found.setdefault(node, keys[mask[column]].tolist())
    ends = packed.paths.ends.tolist()
    assert found == {node: [key for key in range(node + 1) if node < ends[key]] for node in range(len(ends))}
    return found


def rows_of(packed, batch):
    """The rows that a trie stands for."""
    seen = attended(packed)
    for row, completion in enumerate(batch.completions):
        places = packed.places[row, : len(completion)]
        path = seen[int(packed.reads[places[-1]])]
        assert [seen[int(packed.reads[place])] for place in places] == [
            path[: len(batch.prompts[row]) + index] for index in range(len(completion))
        ]
        assert packed.targets[places].tolist() == list(completion)
        assert packed.positions[path].tolist() == list(range(len(path)))
        yield (*packed.ids[path].tolist(), completion[-1])


def test_shared_parts_are_there_once():
    prompts = [(1, 2, 3, 9), (1, 2, 3, 9), (1, 2, 4, 9), (1, 2, 3, 9)]
    packed = packed_as(pack_trie, (prompts, [(5, 6), (5, 7), (5, 6), (8,)]))
    assert packed.ids.tolist() == [1, 2, 3, 9, 5, 4, 9, 5]
    assert packed.positions.tolist() == [0, 1, 2, 3, 4, 2, 3, 4]
    assert packed.paths.ends.tolist() == [8, 8, 5, 5, 5, 8, 8, 8]
    assert packed.reads[packed.places].tolist() == [[3, 4], [3, 4], [6, 7], [3, 3]]
    assert packed.targets[packed.places][0].tolist() == [5, 6]


def test_a_conversation_is_one_causal_chain():
    ids = tuple(range(1, 60))
    packed = packed_as(pack_trie, ([ids[:10], ids[:25], ids[:41]], [ids[10:15], ids[25:30], ids[41:59]]))
    assert packed.ids.tolist() == list(ids[:-1])
    (only,) = packed.paths.bins
    assert only.mask is None
    assert only.keys.tolist() == [list(range(58))]


@given(ROWS, st.data())
def test_every_row_is_in_the_trie_and_the_trie_of_some_is_that_of_a_batch_of_them(rows, data):
    batch = batch_of(*zip(*rows, strict=True))
    packed = pack_trie(batch, range(len(batch)))
    assert list(rows_of(packed, batch)) == [prompt + completion for prompt, completion in rows]
    whole = [(len(prompt), prompt + completion) for prompt, completion in rows]
    assert len(packed.ids) == len({row[:end] for _, row in whole for end in range(1, len(row))})
    assert len(packed.targets) == len({row[:end] for start, row in whole for end in range(start + 1, len(row) + 1)})
    chosen = data.draw(st.lists(st.sampled_from(range(len(rows))), min_size=1, unique=True))
    one, other = pack_trie(batch, chosen), packed_as(pack_trie, list(zip(*(rows[row] for row in chosen), strict=True)))
    assert torch.equal(one.ids, other.ids)
    assert torch.equal(one.paths.ends, other.paths.ends)
    assert torch.equal(one.reads[one.places], other.reads[other.places])


def test_padded_rows_end_in_the_same_column():
    packed = packed_as(pack_rows, ([(1, 2, 3), (4,)], [(5,), (6, 7)]))
    assert packed.ids.tolist() == [[1, 2, 3], [0, 4, 6]]
    assert packed.positions.tolist() == [[0, 1, 2], [0, 0, 1]]
    assert packed.real.tolist() == [[1, 1, 1], [0, 1, 1]]
    assert packed.targets.tolist() == [[5, 0], [6, 7]]
    assert packed.columns.tolist() == [[1, 1], [0, 1]]


def test_the_trie_is_smaller_than_its_rows():
    prompts, completions, _ = ragged()
    alone = sum(map(len, prompts)) + sum(map(len, completions))
    assert len(packed_as(pack_trie, (prompts, completions)).ids) < alone / 2
