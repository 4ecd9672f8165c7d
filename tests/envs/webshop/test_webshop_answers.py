"""Answers to WebShop's prompts: the first action counts."""

import pytest

from coevo.envs.webshop import WebShop
from coevo.models.answers.read import Reader
from coevo.records.draws import key

ACTIONS = (
    "search[blue shirt, size large]", "click[Buy Now]", "click[< Prev]", "click[6.5 wide]", "click[black | red]",
    "search[women's t-shirt (v-neck) \"soft\"]", "click[B07XYZ123]", "click[Next >]",
)  # fmt: skip
PAGES = ("", "[button] Back to Search [button_]\nPage 1", "You have clicked.", "Instruction: [SEP] a shirt")


@pytest.mark.parametrize("action", ACTIONS)
def test_the_first_action_of_an_answer_counts_whatever_page_it_invents(action):
    env = WebShop()
    form = env.guide(env.sample(1, key("answers"))[0]).answer
    for page in PAGES:
        said = f"Thought: so.\nAction: {action}\n{page}\nAction: click[Back to Search]"
        assert Reader(form).read(said).action == action
    assert Reader(form).read(f"Action: {action}.\n").action == action
