import pytest

from presets.overrides import collect, parse
from presets.problems import PresetError


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("trainer.gamma=0.98", {"trainer": {"gamma": 0.98}}),
        ("trainer.gamma = .98", {"trainer": {"gamma": 0.98}}),
        ("trainer.learning_rate=1e-4", {"trainer": {"learning_rate": 1e-4}}),
        ("trainer.schedule=fixed", {"trainer": {"schedule": "fixed"}}),
        ('trainer.schedule="fixed"', {"trainer": {"schedule": "fixed"}}),
        ("trainer.actor.hidden_dims=[64, 64]", {"trainer": {"actor": {"hidden_dims": [64, 64]}}}),
        ("a.b=true", {"a": {"b": True}}),
        ('a.".*_hip".c=1', {"a": {".*_hip": {"c": 1}}}),
        ('a={b = 1, c = "x=y"}', {"a": {"b": 1, "c": "x=y"}}),
        ("a=two words", {"a": "two words"}),
        ("a=-half", {"a": "-half"}),
        ("a=.*_calf", {"a": ".*_calf"}),
    ],
)
def test_a_setting_is_a_dotted_key_with_a_toml_value_or_a_text(text, table):
    assert parse(text).table == table


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("trainer.gamma", "must be key=value"),
        ("=5", "must be key=value"),
        ("a..b=5", "must be key=value"),
        ("a=1\nb.c=5", None),
        ("a = 1\nb=5", None),
        ("trainer.gamma=", "has no value"),
        ("a=[1, 2", "not a TOML value: Unclosed array"),
        ('a="x', "not a TOML value"),
    ],
)
def test_what_is_no_setting_is_refused(text, message):
    if message is None:  # a line break cannot smuggle in a second key
        assert list(parse(text).table) == ["a"]
        return
    with pytest.raises(PresetError, match=message):
        parse(text)


def test_one_key_with_two_values_is_refused_by_naming_both():
    with pytest.raises(PresetError) as caught:
        collect(["env.num_envs=128"], {"--num-envs": 64})
    assert caught.value.messages == [
        "--set env.num_envs=128 and --num-envs 64 disagree; give one of them"
    ]
    with pytest.raises(PresetError, match=r"--set a\.b=1 and --set a\.b=2 disagree"):
        collect(["a.b=1", "a={b = 2}"], {})
    with pytest.raises(PresetError, match="disagree"):
        collect(["a=1", "a=true"], {})


def test_one_key_twice_with_one_value_is_fine():
    changes = collect(["env.num_envs=64", "env.num_envs=64"], {"--num-envs": 64, "--seed": None})
    assert [change.origin for change in changes] == ["--set", "--set", "--num-envs"]
