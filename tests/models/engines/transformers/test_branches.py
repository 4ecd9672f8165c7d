import torch

from coevo.models.engines.transformers.embedded_engine import Branches

ALL = torch.ones(4, dtype=torch.bool)


def test_answers_to_one_prompt_begin_as_one_row():
    branches = Branches.begin(["a", "b", "a", "c", "b"])
    assert branches.rows.tolist() == [0, 1, 0, 2, 1]
    assert branches.prompts.tolist() == [0, 1, 2]
    assert branches.answers.tolist() == [0, 1, 2, 3, 4]


def test_they_stay_one_row_while_they_draw_the_same_and_part_where_they_do_not():
    branches = Branches.begin(["a", "a", "a", "b"])
    branches, parents, tokens = branches.grow(torch.tensor([7, 7, 5, 7]), ALL)
    assert list(zip(parents.tolist(), tokens.tolist(), strict=True)) == [(0, 5), (0, 7), (1, 7)]
    assert branches.rows.tolist() == [1, 1, 0, 2]
    assert branches.prompts.tolist() == [0, 0, 1]
    # The same token again: what has parted stays apart.
    branches, parents, tokens = branches.grow(torch.tensor([3, 3, 3, 3]), ALL)
    assert parents.tolist() == [0, 1, 2]
    assert tokens.tolist() == [3, 3, 3]
    assert branches.rows.tolist() == [1, 1, 0, 2]


def test_a_row_goes_when_all_its_answers_have_ended():
    branches = Branches.begin(["a", "a", "b"])
    branches, parents, tokens = branches.grow(torch.tensor([0, 9, 0]), torch.tensor([False, True, False]))
    assert (branches.answers.tolist(), branches.rows.tolist(), branches.prompts.tolist()) == ([1], [0], [0])
    assert (parents.tolist(), tokens.tolist()) == ([0], [9])
