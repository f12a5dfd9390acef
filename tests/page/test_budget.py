"""What a page costs does not grow with the duels: statements, rows looked at, and calls, counted.

`python -m benchmarks page` says how many seconds that is, of a million duels.
"""

import pytest

from page.counting import counted, looks

pytestmark = [pytest.mark.long, pytest.mark.interpreted]
FEW, MANY = 2_000, 200_000


@pytest.mark.parametrize("k", [6, 30])
def test_a_hundred_times_as_many_duels_are_seen_at_about_the_same_cost(tmp_path, k):
    least = {}
    for n in (FEW, MANY):
        store, go_on, all_looks = looks(tmp_path / f"{n}.db", n, k)
        for _ in range(4):  # at first, charts of the past are made
            go_on()
            for name, do in all_looks.items():
                with counted(store) as cost:
                    do()
                least[n, name] = cost.least(least.get((n, name), cost))
        store.close()
    for name in all_looks:
        few, many = least[FEW, name], least[MANY, name]
        assert many.statements <= few.statements + 10 <= 50, (name, few, many)
        assert many.instructions <= 4 * few.instructions, (name, few, many)
        assert many.calls <= 1.5 * few.calls, (name, few, many)


def test_a_look_at_every_duel_would_be_noticed(tmp_path):
    store, _, _ = looks(tmp_path / "few.db", FEW, 2)
    with counted(store) as cost, store.reading() as connection:
        connection.exec_driver_sql("SELECT sum(asked) FROM duels").all()
    assert cost.statements == 2 and cost.instructions > 2 * FEW
    store.close()
