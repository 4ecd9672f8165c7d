"""WebShop: its pages, its reward, its goals, and the files of the original, real ones where they are."""

import json
import os
import re
from itertools import product as combinations
from pathlib import Path

import pytest
from rapidfuzz.fuzz import token_set_ratio
from rapidfuzz.utils import default_process

from coevo.envs.expert_turns import expert_turns
from coevo.envs.webshop import WebShop
from coevo.envs.webshop.purchase import COLOURS, STOP_WORDS, UNITS, noun_rule, purchase
from coevo.envs.webshop.shop import ShopState
from coevo.envs.webshop.shop_tasks import goals_of
from coevo.envs.webshop.webshop import first_hit
from coevo.records.draws import generator, key
from coevo.utilities.errors import CoevoError, ConfigError

REAL = Path(os.environ.get("WEBSHOP_DATA_DIR") or Path(__file__).parents[4] / "shared" / "data" / "webshop")
real = pytest.mark.skipif(not REAL.is_dir(), reason="WebShop's files are not here: set WEBSHOP_DATA_DIR")
PURCHASES = 200


def rows(catalogue):
    """Rows of products as WebShop's loader makes them."""
    for number, each in enumerate(catalogue.products):
        pricing = [each.price, each.price + 8] if number % 7 == 0 else [each.price]
        yield {
            "asin": each.asin, "name": each.title, "category": each.category, "query": each.query,
            "product_category": " › ".join(each.path), "pricing": pricing, "options": dict(each.options),
            "Attributes": list(each.attributes), "BulletPoints": list(each.bullets), "Description": each.description,
        }  # fmt: skip


def wishes(catalogue):
    """Attributes and wishes as ``items_ins_v2`` has them."""
    told = {each.asin: {"attributes": list(each.attributes)} for each in catalogue.products}
    for each in catalogue.products[::3]:
        told[each.asin] |= {
            "instruction": f"Find me {each.query}.",
            "instruction_attributes": list(each.attributes[:2]),
        }
    return told


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    """A folder in the format of WebShop's files, with products of a made catalogue."""
    folder, catalogue = tmp_path_factory.mktemp("shop"), WebShop(products=200).catalogue
    lines = [json.dumps({"id": row["asin"], "contents": "", "product": row}) for row in rows(catalogue)]
    (folder / "products_200.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "items_ins_v2_200.json").write_text(json.dumps(wishes(catalogue)), encoding="utf-8")
    return folder


@pytest.fixture(params=["stand-in", pytest.param("real", marks=real)])
def folder(request, stand_in):
    return REAL if request.param == "real" else stand_in


def products(folder):
    """The rows of a folder's products, as plain JSON."""
    (path,) = folder.glob("products*.jsonl")
    return [json.loads(line)["product"] for line in path.read_text(encoding="utf-8").splitlines()]


def told(folder):
    return json.loads(next(folder.glob("items_ins_v2*.json")).read_text(encoding="utf-8"))


def goals(env):
    return [goal for each in env.catalogue.products for _, goal in goals_of(each)]


def bought(env, goal):
    """Last step of the oracle for a goal."""
    state, done = ShopState(goal, 100), False
    while not done:
        (step,) = env.step([state], [env.advise(state, None, key(0)).action])
        state, done = step.state, step.done
    return step


def test_every_goal_of_the_files_is_reached_by_its_oracle(folder):
    env = WebShop(path=str(folder))
    expected = sum(
        len(list(combinations(*row["options"].values())))
        for row in products(folder)
        if told(folder).get(row["asin"], {}).get("instruction_attributes")
    )
    every = goals(env)
    assert len(every) == expected
    assert folder != REAL or expected == 501
    assert {bought(env, goal).reward for goal in every} == {1.0}


def test_rewards_of_random_purchases_are_those_of_the_published_formula(folder):
    env, table, notes = WebShop(path=str(folder)), products(folder), told(folder)
    every, rng, rewards = goals(env), generator(key("purchases")), []
    for number in range(PURCHASES):
        goal = every[rng.integers(len(every))]
        # Every second purchase is of the same kind as the wish, where rewards are not 0.
        wanted = next(row for row in table if row["asin"] == goal.asin)
        near = [row for row in table if row["category"] == wanted["category"]] if number % 2 else table
        row = near[rng.integers(len(near))]
        chosen = {
            name: values[rng.integers(len(values))] for name, values in row["options"].items() if rng.random() < 0.8
        }
        product = env.catalogue.products[env.catalogue.numbers[row["asin"]]]
        expected = formula(row, notes, chosen.values(), wanted, goal, product.price)
        actual = purchase(
            product, chosen.values(), env.catalogue.products[env.catalogue.numbers[goal.asin]], goal, nouns
        )
        assert actual.reward == pytest.approx(expected), (row["asin"], chosen, goal)
        assert row["pricing"][0] <= product.price <= row["pricing"][-1]
        rewards.append(actual.reward)
    assert len({round(reward, 3) for reward in rewards}) > 5, "the purchases differ in what they fulfil"


def nouns(title):
    return noun_rule("words")(title)


def formula(row, notes, chosen, wanted, goal, price):
    """Reward of a purchase, from rows of the files and the formula of the paper's appendix."""

    def alike(one, other):
        return token_set_ratio(one, other, processor=default_process) > 85

    def coloured(value):
        for colour in COLOURS:
            if colour in value:
                return colour
        return value

    attributes = 0
    for wish in goal.attributes:
        listed = any(alike(have, wish) for have in notes[row["asin"]].get("attributes", row["Attributes"]))
        texts = [row["name"], " ".join(row["BulletPoints"]), row["Description"]]
        attributes += listed or any(wish in text.lower() for text in texts)
    options = sum(any(alike(coloured(have), coloured(wish)) for have in chosen) for wish in goal.options)
    words = [
        {
            word for word in re.findall(r"[^\W_]+", each["name"].lower())
            if not re.search(r"\d", word) and word not in STOP_WORDS and word not in UNITS
        }
        for each in (wanted, row)
    ]  # fmt: skip
    overlap = len(words[0] & words[1]) / len(words[0]) if words[0] else 0.2
    paths = [{part.strip() for part in each["product_category"].split("›")} for each in (wanted, row)]
    kind = 1.0 if wanted["query"] == row["query"] or len(paths[0] & paths[1]) > 1 or overlap > 0.2 else 0.5
    kind = 0.0 if overlap == 0 else 0.1 if overlap < 0.1 else kind
    fulfilled = attributes + options + (price <= goal.price_upper)
    return fulfilled / (len(goal.attributes) + len(goal.options) + 1) * kind


@pytest.mark.parametrize("size", [500, 1000])
def test_the_oracle_reaches_every_goal_and_the_first_hit_few(size):
    env = WebShop(products=size)
    tasks = (*env.sample(100, key("oracle")), *env.panel("held-out", 100).tasks)
    assert {bought(env, env.start(task)[0].goal).reward for task in tasks} == {1.0}
    assert sum(first_hit(env, task).success for task in tasks) / len(tasks) <= 0.4


def test_the_price_limit_is_the_larger_of_two_of_the_next_four_steps():
    limits = [(each.price, goal.price_upper) for each in WebShop().catalogue.products for _, goal in goals_of(each)]
    steps = {round((upper - price // 10 * 10) / 10) for price, upper in limits}
    assert steps == {2, 3, 4}


def test_pages_offer_what_they_show_and_nothing_else():
    env = WebShop(products=300)
    (task,) = env.sample(1, key("pages"))
    state, page = env.start(task)
    assert page == "WebShop [SEP]\nSearch"

    def act(action, valid=True):
        nonlocal state
        (step,) = env.step([state], [action])
        assert step.valid is valid, (action, step.feedback)
        state = step.state
        return step.observation.split(" [SEP]\n")

    act("click[Buy Now]", valid=False)
    first = act("search[lamp table chair free]")
    assert first[:2] == ["Back to Search", "Page 1 (Total results: 50)"]
    shown = [asin for asin in first if re.fullmatch(r"B\d{9}", asin)]
    assert len(shown) == 10
    assert "< Prev" not in first
    second = act("CLICK[next >]")
    assert not {*shown} & {*second} - {"Back to Search", "Next >"} - {
        *[field for field in second if " " in field or "$" in field]
    }
    act(f"click[{shown[0]}]", valid=False)
    for _ in range(3):
        last = act("click[Next >]")
    assert "Next >" not in last
    act("click[Next >]", valid=False)
    asin = next(field for field in last if re.fullmatch(r"B\d{9}", field))
    item = act(f"click[ {asin.lower()} ]")
    product = env.catalogue.products[env.catalogue.numbers[asin]]
    assert item[-6:] == [
        f"Price: {product.price_text}",
        "Rating: N.A.",
        "Description",
        "Features",
        "Reviews",
        "Buy Now",
    ]
    colour = product.options["color"][0]
    assert f"color ({colour})" in act(f"click[{colour.upper()}]")
    assert act("click[Features]")[2:] == list(product.bullets)
    act(f"click[{colour}]", valid=False)
    assert f"color ({colour})" in act("click[< Prev]")
    act("click[no such thing]", valid=False)
    assert act("click[Back to Search]") == ["WebShop", "Search"]


def test_an_episode_ends_with_the_purchase_or_after_its_steps():
    env = WebShop(products=300, steps=4)
    (task,) = env.sample(1, key("end"))
    states, steps = [env.start(task)[0]], []
    for action in ("click[x]", "search[lamp free]", "click[next >]", "click[< prev]"):
        steps += env.step([states[-1]], [action])
        states.append(steps[-1].state)
    assert [(step.done, step.truncated, step.reward) for step in steps] == [(False, False, 0.0)] * 3 + [
        (True, True, 0.0)
    ]
    step = bought(env, states[0].goal)
    assert (step.feedback, step.success, dict(step.scores)) == ("bought , all as wished", True, {"score": 100.0})
    missing = first_hit(WebShop(), WebShop().panel("held-out", 2).tasks[1])
    assert missing.success or re.fullmatch(r"bought( , (without|not|too|another) [^,]+)+", missing.feedback)


def test_products_of_one_title_are_in_one_split():
    env = WebShop()
    parts = [env.sample(150, key("part")), env.probe(60, key("part")).tasks, env.panel("held-out", 150).tasks]
    titles = [
        {env.catalogue.products[env.catalogue.numbers[task.data["asin"]]].title for task in tasks} for tasks in parts
    ]
    assert not (titles[0] & titles[1] or titles[0] & titles[2] or titles[1] & titles[2])


def test_results_say_whose_products_they_are_and_how_nouns_were_found(stand_in):
    made, read = WebShop(products=200), WebShop(path=str(stand_in))
    assert made.version == "1 made/200/0 words"
    assert re.fullmatch(r"1 webshop/[0-9a-f]{12} words", read.version)
    assert made.panel("held-out", 5).hash != WebShop(products=200, seed=1).panel("held-out", 5).hash
    (task,) = made.sample(1, key("other"))
    with pytest.raises(CoevoError, match=r"'made/200/0', not 'webshop/.*set env\.path"):
        read.start(task)
    with pytest.raises(CoevoError, match=r"env\.nouns=spacy: .*en_core_web_lg is not installed"):
        WebShop(nouns="spacy")


def test_raw_files_and_wishes_of_people_are_read(tmp_path):
    row = {
        "asin": "B01", "name": "Red lamp", "category": "garden", "query": " Desk Lamps ",
        "product_category": "Home › Lamps", "pricing": "$19.99$27.99", "full_description": "a lamp",
        "small_description": ["dimmable"], "Reviews": [],
        "customization_options": {"Color": [{"value": "Red/White", "image": None}, {"value": "blue"}], "Size": None},
    }  # fmt: skip
    person = {"instruction": "a lamp.", "instruction_attributes": ["dimmable"], "instruction_options": ["blue"]}
    (tmp_path / "items_shuffle_1.json").write_text(json.dumps([row]))
    (tmp_path / "items_ins_v2_1.json").write_text(json.dumps({"B01": {"attributes": ["dimmable"]}}))
    (tmp_path / "items_human_ins.json").write_text(
        json.dumps({"B01": [person, person | {"instruction_attributes": []}]})
    )
    env = WebShop(path=str(tmp_path))
    (product,) = env.catalogue.products
    assert product.options == {"color": ("red | white", "blue")}
    assert 19.99 <= product.price <= 27.99
    assert product.price_text == "$19.99 to $27.99"
    (goal,) = goals(env)
    assert goal.options == ("blue",)
    assert bought(env, goal).success


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("products.jsonl", "{", "is no file of WebShop"),
        ("products.jsonl", '{"product": {"asin": "B1"}}', "KeyError: 'name'"),
        ("products.jsonl", "[1]", "is no file of WebShop"), ("products.jsonl", "[" * 100_000, "is no file of WebShop"),
        ("products.jsonl", "", "has no product"), ("items_ins_v2.json", "[]", "is no file of WebShop"),
        ("products.jsonl", None, r"has no items_shuffle\*\.json or products\*\.jsonl"),
    ],
)  # fmt: skip
def test_what_is_no_file_of_webshop_is_refused_in_one_line(name, text, says, stand_in, tmp_path):
    for path in stand_in.iterdir():
        if not path.name.startswith(name.split(".")[0]):
            (tmp_path / path.name).write_bytes(path.read_bytes())
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(CoevoError, match=says) as caught:
        WebShop(path=str(tmp_path))
    assert "\n" not in str(caught.value)


def test_a_wrong_call_is_one_line():
    for call, says in (
        (lambda: WebShop(products=11), r"env\.products = 11"),
        (lambda: WebShop(products=49, catalogue="makers"), r"env\.products=49: .* a multiple of 3, 48 at most"),
        (lambda: WebShop(products=51, catalogue="makers"), r"env\.products=51: .* a multiple of 3, 48 at most"),
        (lambda: WebShop(nouns="guess"), r"env\.nouns = 'guess'"),
        (lambda: WebShop(products=100).panel("held-out", 10**6), r"'held-out' has \d+ tasks in this catalogue, not"),
        (lambda: WebShop(products=100).demonstrations(1, 2, key(0)), r"set warmstart\.drills=0"),
        (lambda: WebShop(products=100).expert(None, key(0)), "use advise"),
    ):
        with pytest.raises((CoevoError, ConfigError), match=says):
            call()


def test_the_vocabulary_holds_every_word_of_episodes():
    env, other = WebShop(products=200), WebShop(products=200, seed=9)
    known = {*other.vocabulary}
    assert known == {*env.vocabulary}
    shown = env.demonstrations(12, 0, key("shown"))
    assert {*" ".join(f"{turn.moment.observation} {turn.answer.action}" for turn in shown).split()} <= known
    for task in env.sample(30, key("words")):
        for advise in (env.advise, env.shopper):
            (state, observation), done, said = env.start(task), False, [task.instruction]
            while not done:
                action = advise(state, None, key(0)).action
                (step,) = env.step([state], [action])
                said += [observation, action, step.feedback]
                state, observation, done = step.state, step.observation, step.done
            assert {*" ".join((*said, observation)).split()} <= known


MADE = {"products": 48, "catalogue": "makers", "steps": 5}


def bought_of(env, task, maker):
    """Last step of a customer that buys a maker's product with all that the page shows as wished."""
    (state, _), query = env.start(task), task.scope
    found = next(each for each in env.catalogue.products if each.title.startswith(maker) and each.query == query)
    for action in (f"search[{query}]", f"click[{found.asin}]", f"click[{task.data['options'][0]}]", "click[Buy Now]"):
        (step,) = env.step([state], [action])
        state = step.state
    return step


def makers(env, task):
    return {each.title.split()[0]: each for each in env.catalogue.products if each.query == task.scope}


def test_only_a_purchase_tells_which_maker_has_what():
    env = WebShop(**MADE)
    for task in env.sample(40, key("makers")):
        (attribute,) = task.data["attributes"]
        steps = {maker: bought_of(env, task, maker) for maker in makers(env, task)}
        (right,) = (maker for maker, step in steps.items() if step.success)
        assert {step.feedback for step in steps.values()} == {
            f"for {attribute} buy {'' if maker == right else 'not '}{maker}" for maker in steps
        }
        assert attribute not in makers(env, task)[right].text
    assert len({WebShop(**MADE, seed=seed).catalogue.products[0].attributes for seed in range(20)}) == 3


def test_a_customer_obeys_a_note_and_else_guesses():
    env = WebShop(**MADE)
    probe = env.probe(48, key("customer"))
    others = (*env.sample(150, key("all")), *env.panel("held-out", 96).tasks)
    assert not {task.id for task in probe.tasks} & {task.id for task in others}
    for notes, least, most in ((probe.right, 48, 48), (probe.wrong, 0, 0), (((),) * 48, 6, 30)):
        chosen = [
            expert_turns(env, task, key(0), told, env.customer) for task, told in zip(probe.tasks, notes, strict=True)
        ]
        titles = {each.asin: each.title.split()[0] for each in env.catalogue.products}
        named = [titles[turns[1].answer.action.split()[1]] for turns in chosen]
        assert least <= sum(bought_of(env, *each).success for each in zip(probe.tasks, named, strict=True)) <= most
        assert {turns[-1].answer.action for turns in chosen} == {"click[ Buy Now ]"}


def test_makers_panels_hold_out_colours_of_the_training_products():
    env = WebShop(**MADE)
    train, held = env.sample(144, key("train")), env.panel("held-out", 96).tasks
    assert {task.data["asin"] for task in train} == {task.data["asin"] for task in held}
    pairs = [{(task.data["asin"], *task.data["options"]) for task in tasks} for tasks in (train, held)]
    assert not pairs[0] & pairs[1]
    assert [task.id for task in env.panel("no-bank", 96).tasks] == [task.id for task in held]
    assert (env.panel_bank("held-out"), env.panel_bank("no-bank")) == (None, [])


def test_the_vocabulary_of_makers_holds_what_cloning_shows_in_other_catalogues():
    env = WebShop(**MADE)
    shown = [turn for draw in range(4) for turn in env.demonstrations(12, 12, key("shown", draw))]
    said = " ".join(
        " ".join((turn.moment.instruction, turn.moment.observation, turn.answer.thought, turn.answer.action,
                  *(note.text for note in turn.moment.lessons), *(past.feedback for past in turn.moment.history)))
        for turn in shown
    )  # fmt: skip
    assert {*said.split()} <= {*env.vocabulary}
