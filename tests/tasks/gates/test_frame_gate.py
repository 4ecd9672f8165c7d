"""The gate itself, with Great Expectations for real."""

from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pyarrow as pa
import pytest

from coevo.tasks.gates.frame_gate import Check, GateError, expect, hold


def check(name, value):
    rule = expect().ExpectColumnValuesToBeBetween(column=name, min_value=0)
    return Check(name, pd.DataFrame({name: [1.0, value]}), [rule])


def test_gates_side_by_side_judge_their_own_batches(tmp_path):
    def passes(number):
        name, value = f"rows{number}", -1.0 if number % 3 == 0 else 1.0
        table = pa.table({name: [value]})
        try:
            hold(name, [check(name, value)], lambda: table, tmp_path)
        except GateError as error:
            assert f"gate {name}: " in str(error)
            assert f"{name}='-1.0'" in str(error)
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(passes, range(24))) == [number % 3 != 0 for number in range(24)]


def test_the_first_check_that_fails_is_reported(tmp_path):
    with pytest.raises(GateError, match=r"gate two: .*1 of 2 second, for example second='-2.0'"):
        hold(
            "two",
            [check("first", 0.0), check("second", -2.0), check("third", -3.0)],
            lambda: pa.table({"n": [1]}),
            tmp_path,
        )
