import math

import pytest
import torch

from trainer.guard import NonFiniteError, all_finite, check_rollout
from trainer.rollout import Rollout

T, N = 4, 3


def rollout() -> Rollout:
    return Rollout(T, N, {"policy": 5, "critic": 6}, 2, "cpu")


def complaint(storage: Rollout) -> NonFiniteError:
    with pytest.raises(NonFiniteError) as caught:
        check_rollout(storage)
    return caught.value


def test_a_finite_rollout_passes_however_large_its_numbers():
    storage = rollout()
    check_rollout(storage)
    storage.rewards.fill_(3e38)  # the sum overflows, no entry does
    check_rollout(storage)


def test_an_observation_is_named_with_its_columns():
    storage = rollout()
    storage.observations["critic"][2, 1, 3:5] = math.nan
    error = complaint(storage)
    assert str(error) == "observations critic: 2 of 72 non-finite, columns 3, 4"
    assert error.quantity == "observations critic"
    assert error.columns == (3, 4)


def test_on_one_step_the_cause_is_named_before_what_follows_from_it():
    storage = rollout()
    for tensor in (storage.values, storage.means, storage.observations["policy"]):
        tensor[1, 0, 0] = math.nan
    assert complaint(storage).quantity == "observations policy"


def test_an_earlier_step_is_named_before_a_later_one():
    storage = rollout()
    storage.observations["policy"][2, 0, 0] = math.nan
    storage.rewards[1, 0] = math.inf  # the world went bad here
    assert complaint(storage).quantity == "rewards"


def test_returns_are_named_before_the_advantages_they_spoil():
    storage = rollout()
    storage.returns[0, 0] = math.inf
    storage.advantages.fill_(math.nan)
    assert str(complaint(storage)) == "returns: 1 of 12 non-finite"


def test_a_bad_value_is_named_before_the_returns_it_spoils():
    storage = rollout()
    storage.values[3, 2] = -math.inf
    storage.returns[:, 2] = -math.inf
    assert str(complaint(storage)) == "values: 1 of 12 non-finite"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_one_bad_entry_among_many_is_seen(bad):
    tensors = [torch.zeros(1000), torch.zeros(50)]
    assert all_finite(tensors)
    tensors[0][777] = bad
    assert not all_finite(tensors)


def test_opposite_infinities_do_not_cancel():
    assert not all_finite([torch.tensor([math.inf, -math.inf])])
