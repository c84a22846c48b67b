import types

import numpy as np
import pytest

from spec_cascades.decoding import Finish, Statistics
from spec_cascades.evaluation import costs


def result(*, gamma=3, **rows):
    """A result of three rows, the last of which is padding and full of rubbish."""
    statistics = {
        name: np.zeros(3, np.int32)
        for name in Statistics.__dataclass_fields__
        if not name.endswith("_at")
    }
    statistics["verified_at"] = np.zeros((3, gamma), np.int32)
    statistics["accepted_at"] = np.zeros((3, gamma), np.int32)
    for name, values in rows.items():
        if name in statistics:
            statistics[name] = np.array([*values, np.full_like(values[0], 99)], np.int32)
    lengths = np.array([*rows["lengths"], 99], np.int32)
    finish = np.array([*rows["finish"], Finish.PADDING], np.int32)
    return types.SimpleNamespace(
        statistics=types.SimpleNamespace(**statistics), lengths=lengths, finish=finish
    )


@pytest.fixture
def counts():
    """Two rows of gamma = 3: row 0 ends inside a block, row 1 at the cap."""
    first = result(
        target_calls=[2, 4],
        drafter_calls=[8, 16],
        target_prefills=[1, 1],
        drafter_prefills=[1, 1],
        drafted=[5, 12],
        accepted=[4, 5],
        corrected=[1, 3],
        bonus=[0, 1],
        deferred=[2, 6],
        verified_at=[[2, 2, 1], [4, 3, 2]],
        accepted_at=[[2, 1, 1], [3, 1, 1]],
        lengths=[5, 9],
        finish=[Finish.EOS, Finish.LENGTH],
    )
    return costs.count([first])


def test_padding_rows_count_nowhere(counts):
    assert counts.rows == 2
    assert counts.emitted == 14
    assert counts.lengths == (5, 9)
    assert counts.target_calls == 6
    assert counts.verified_at == (6, 5, 3)


def test_figures_by_hand(counts):
    cost = costs.cost(counts)
    assert cost["tokens_per_target_call"] == 14 / 6
    assert cost["mean_acceptance_length"] == 1 + 9 / 6
    assert cost["block_efficiency"] == 14 / 24
    assert cost["acceptance_rate"] == 9 / 17
    assert cost["token_acceptance"] == 9 / 14
    assert cost["acceptance_at"] == [5 / 6, 2 / 6, 2 / 6]
    assert cost["conditional_acceptance_at"] == [5 / 6, 2 / 5, 2 / 3]
    assert cost["deferral_rate"] == 8 / 14
    assert cost["drafter_calls_per_token"] == 24 / 14
    assert cost["output_length"] == 7
    assert cost["cap_hits"] == 1
    assert cost["cap_hit_rate"] == 0.5
    assert cost["batch_tokens_per_target_call"] == 9 / 4


def test_identities(counts):
    cost = costs.cost(counts)
    assert cost["emitted"] == cost["accepted"] + cost["corrected"] + cost["bonus_tokens"]
    assert cost["emitted"] == sum(counts.lengths)
    assert cost["rejection_rate"] == pytest.approx(1 - cost["token_acceptance"])
    blocks = counts.verified_at[0]
    assert cost["mean_acceptance_length"] == pytest.approx(
        1 + sum(a * blocks for a in cost["acceptance_at"]) / cost["target_calls"]
    )
    conditional = np.array(cost["conditional_acceptance_at"])
    # Where nothing is cut short, unconditional rates are running products of conditional ones.
    assert cost["acceptance_at"][0] == conditional[0]


def test_batches_add_up(counts):
    again = result(lengths=[1, 2], finish=[Finish.EOS] * 2, target_calls=[1, 2], bonus=[1, 2])
    both = costs.count([again, again])
    assert both.rows == 4
    assert both.target_calls == 6
    assert both.sequential_target_calls == 4
    assert both.sequential_tokens == 4


def test_a_figure_without_denominator_is_none():
    drafter = result(
        accepted=[3, 4], drafted=[3, 4], lengths=[3, 4], finish=[Finish.EOS] * 2, gamma=1
    )
    cost = costs.cost(costs.count([drafter]), blocks=False)
    assert cost["tokens_per_target_call"] is None
    assert cost["acceptance_rate"] == 1
    assert cost["mean_acceptance_length"] is None


def test_every_figure_is_documented():
    for name, figure in costs.FIGURES.items():
        assert figure.formula and figure.meaning, name


def test_cost_model():
    assert costs.block_yield(1.0, 5) == 6
    assert costs.block_yield(0.0, 5) == 1
    assert costs.block_yield(0.5, 2) == pytest.approx(1.75)
    assert costs.block_yield(1 - 1e-9, 5) == pytest.approx(6)
    # A free drafter that is always right, and verifications as cheap as a step.
    assert costs.predicted_speedup(1.0, 5, 0.0) == 6
    assert costs.predicted_speedup(0.5, 2, 0.25) == pytest.approx(1.75 / 1.5)
    assert costs.predicted_speedup(0.5, 2, 0.25, 2.0) == pytest.approx(1.75 / 2.5)


@pytest.mark.parametrize("acceptance", [0.2, 0.7])
def test_block_yield_is_the_mean_of_a_simulation(acceptance):
    rng = np.random.default_rng(0)
    stands = rng.random((100_000, 4)) < acceptance
    accepted = np.cumprod(stands, axis=1).sum(axis=1)
    assert costs.block_yield(acceptance, 4) == pytest.approx(1 + accepted.mean(), abs=0.02)
