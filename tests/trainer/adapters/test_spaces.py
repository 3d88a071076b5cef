import numpy as np
import pytest
from gymnasium import spaces

from trainer.adapters.spaces import action_names, action_width, complaint, to_actions

OBSERVATION = spaces.Box(-1, 1, (3,))


def actions(space, numbers):
    """What a batch of worlds is given; each action must lie in the space of one world."""
    batch = to_actions(space)(np.asarray(numbers, np.float32))
    for action in batch:
        assert space.contains(action), action
    return batch.tolist()


def test_a_box_is_filled_from_minus_one_to_one_and_never_left():
    box = spaces.Box(np.array([0.0, -2.0], np.float32), np.array([10.0, 2.0], np.float32))
    assert actions(box, [[-1, -1], [0, 0], [1, 1], [9, -9]]) == [[0, -2], [5, 0], [10, 2], [10, -2]]
    assert action_width(box) == 2


def test_a_box_without_ends_takes_numbers_as_they_are():
    box = spaces.Box(np.array([-np.inf, 0.0]), np.array([np.inf, np.inf]), dtype=np.float64)
    assert actions(box, [[-3.5, -3.5], [7, 7]]) == [[-3.5, 0.0], [7, 7]]


def test_a_box_keeps_its_shape_and_type():
    box = spaces.Box(-1, 1, (2, 2), np.float32)
    batch = to_actions(box)(np.zeros((5, 4), np.float32))
    assert batch.shape == (5, 2, 2)
    assert batch.dtype == np.float32


def test_the_largest_number_is_the_choice():
    assert actions(spaces.Discrete(3), [[0, 2, 1], [5, -1, 0]]) == [1, 0]
    assert actions(spaces.Discrete(2, start=-1), [[0, 1], [1, 0]]) == [0, -1]
    assert action_names(spaces.Discrete(2, start=5)) == ("option_5", "option_6")


def test_several_choices_and_switches_have_columns_of_their_own():
    choices = spaces.MultiDiscrete([2, 3])
    assert actions(choices, [[0, 1, 0, 0, 9], [1, 0, 3, 2, 1]]) == [[1, 2], [0, 0]]
    assert action_width(choices) == 5
    assert action_names(choices)[2] == "choice_1_option_0"
    assert actions(spaces.MultiBinary(2), [[0.1, -0.1], [0, 5]]) == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    "action", [OBSERVATION, spaces.Discrete(2), spaces.MultiDiscrete([2]), spaces.MultiBinary(1)]
)
def test_nothing_is_said_of_what_can_be_learnt(action):
    assert complaint(OBSERVATION, action) == ""
    assert complaint(spaces.Dict(a=OBSERVATION, b=spaces.Discrete(2)), action) == ""


def test_what_cannot_be_learnt_is_named():
    dictionary = spaces.Dict(a=OBSERVATION)
    assert "Dict cannot be chosen by a Gaussian; Box," in complaint(OBSERVATION, dictionary)
    assert "Sequence have no fixed width" in complaint(spaces.Sequence(OBSERVATION), OBSERVATION)
    assert "no actions" in complaint(OBSERVATION, spaces.Box(-1, 1, (0,)))
