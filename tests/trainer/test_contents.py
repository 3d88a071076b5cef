import pytest
import torch

from trainer.contents import lacking, wrong_kinds

TABLES_OF_TENSORS = ("actor", "critic", "obs", "episodes", "intrinsic")
TABLES = ("rnd", "env")
LISTS = ("actor_hidden", "critic_hidden", "edits", "other_ranks")
COUNTS = ("completed_iterations", "env_steps", "world_size")
NUMBERS = ("elapsed", "mean_reward")
TEXTS = ("preset", "device")
ALL = (*TABLES_OF_TENSORS, *TABLES, *LISTS, *COUNTS, *NUMBERS, *TEXTS, "optimizer", "generator")
BYTES = torch.zeros(8, dtype=torch.uint8)


@pytest.mark.parametrize(
    ("part", "fits"),
    [
        (3, {*COUNTS, *NUMBERS}),
        (0, {"completed_iterations", "env_steps", *NUMBERS}),
        (-1, {*NUMBERS}),
        (0.5, {*NUMBERS}),
        (float("nan"), {*NUMBERS}),
        (True, set()),
        (None, {"obs"}),
        ("x", {*TEXTS}),
        ([], {*LISTS}),
        ([1], set()),
        ([{}], {"edits", "other_ranks"}),
        ([None, {}], {"other_ranks"}),
        ([torch.zeros(2)], {"actor_hidden", "critic_hidden"}),
        ({}, {*TABLES_OF_TENSORS, *TABLES}),
        ({"x": 1}, {*TABLES}),
        ({1: torch.zeros(1)}, set()),
        ({"x": torch.zeros(1)}, {*TABLES_OF_TENSORS, *TABLES}),
        ({"param_groups": [{}], "state": {0: {}}}, {"optimizer", *TABLES}),
        ({"param_groups": 3, "state": {}}, {*TABLES}),
        (torch.zeros(2), set()),
        (BYTES, {"generator"}),
    ],
)
def test_each_part_is_of_its_kind_and_every_other_is_named(part, fits):
    told = wrong_kinds(dict.fromkeys(ALL, part))
    assert {sentence.split()[0] for sentence in told} == set(ALL) - fits
    assert all(" must be " in sentence and ", not " in sentence for sentence in told)


def test_a_long_value_is_told_by_its_kind():
    assert wrong_kinds({"device": [1] * 1000, "elapsed": "9" * 1000}) == [
        "elapsed must be a number, not '" + "9" * 39,
        "device must be a text, not list",
    ]


def test_what_nobody_knows_may_be_anything_and_what_is_needed_must_be_there():
    assert wrong_kinds({"theirs": object()}) == []
    assert lacking({"actor": {}, "critic": None}, ("actor", "critic", "env")) == ["critic", "env"]
