from coevo.models.engines.vllm.vllm_engine import Routing


def groups_of(rows, groups):
    return [{groups[row] for row in share} for share in rows]


def test_every_row_goes_to_one_replica_and_a_group_stays_together():
    groups = [f"g{row // 4}" for row in range(32)]
    shares = Routing(3).divide(groups)
    assert sorted(row for share in shares for row in share) == list(range(32))
    assert all(share == sorted(share) for share in shares)
    apart = groups_of(shares, groups)
    assert sum(map(len, apart)) == len(set().union(*apart)) == 8
    assert max(map(len, shares)) - min(map(len, shares)) <= 4


def test_a_group_stays_where_its_prefix_is_while_others_end():
    routing = Routing(2)
    groups = ["a", "a", "a", "b", "c", "c", "d"]
    first = groups_of(routing.divide(groups), groups)
    later = ["d", "b", "a"]
    for share, before in zip(groups_of(routing.divide(later), later), first, strict=True):
        assert share <= before


def test_new_groups_go_where_there_is_room():
    routing = Routing(2)
    routing.divide(["a"] * 6)
    shares = routing.divide(["a"] * 6 + ["b", "b", "c"])
    assert sorted(map(len, shares)) == [3, 6]


def test_one_replica_has_it_all_and_many_may_be_idle():
    assert Routing(1).divide(["a", "b"]) == [[0, 1]]
    assert sorted(Routing(3).divide(["a"])) == [[], [], [0]]


def test_groups_whose_requests_come_one_by_one_are_spread_and_stay():
    routing = Routing(2)
    first = [routing.settle(group) for group in "abcd"]
    assert sorted(first) == [0, 0, 1, 1]
    assert [routing.settle(group) for group in "dcba"] == first[::-1]
    routing.forget()
    assert routing.settle("d") == 0
    routing = Routing(2)  # also after a batch
    (_, last) = groups_of(routing.divide(["a", "a", "b"]), ["a", "a", "b"])
    assert last == {"b"}
    assert routing.settle("b") == 1
