import tomllib
from pathlib import Path

import pytest

from presets import files
from presets.loader import DEFAULT, describe, load, to_toml
from presets.problems import PresetError
from tests.presets.tiny import TINY, write


def refused(name, *settings, **more):
    with pytest.raises(PresetError) as caught:
        load(name, settings, **more)
    return caught.value.messages


# Layers.


def test_a_preset_takes_its_values_from_its_file_and_the_rest_from_defaults():
    resolved = load("tiny")
    assert resolved.preset.name == "tiny"
    assert resolved.preset.env.num_envs == 16
    assert resolved.preset.trainer.actor.hidden_dims == (8,)
    assert resolved.preset.trainer.gamma == 0.99
    assert resolved.origins["env.num_envs"] == "presets/tiny.toml"
    assert resolved.origins["trainer.gamma"] == DEFAULT
    assert resolved.origins["env.rewards.alive.weight"] == "presets/tiny.toml"


def test_a_preset_inherits_and_changes_what_it_extends():
    child = """
        extends = "tiny"
        [env.rewards]
        cart_vel.weight = -0.5
        extra = { term = "action_l2", weight = -0.1 }
        [trainer]
        gamma = 0.9
    """
    write(Path(), child=child)
    resolved = load("child")
    assert resolved.preset.name == "child"
    assert list(resolved.preset.env.rewards) == ["alive", "pole_pos", "cart_vel", "extra"]
    assert resolved.preset.env.rewards["cart_vel"].weight == -0.5
    assert resolved.preset.env.rewards["cart_vel"].params == {"joints": "slider_to_cart"}
    assert resolved.origins["env.rewards.cart_vel.weight"] == "presets/child.toml"
    assert resolved.origins["env.rewards.cart_vel.joints"] == "presets/tiny.toml"
    assert resolved.origins["trainer.gamma"] == "presets/child.toml"


def test_false_takes_an_inherited_term_away_and_keeps_the_order_of_the_rest():
    write(
        Path(),
        child='extends = "tiny"\n[env]\n'
        "rewards.pole_pos = false\nobservations.policy.joint_vel_rel = false",
    )
    resolved = load("child")
    assert list(resolved.preset.env.rewards) == ["alive", "cart_vel"]
    assert list(resolved.preset.env.observations["policy"]) == ["joint_pos_rel"]
    assert not any("pole_pos" in key for key in resolved.origins)


def test_taking_away_a_term_that_is_not_there_is_refused_with_the_nearest():
    assert refused("tiny", "env.rewards.pole_po=false") == [
        "--set env.rewards.pole_po=false: there is no such term to take away; "
        "did you mean pole_pos?"
    ]


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        ("env.rewards={}", "; a term is taken away by env.rewards.alive = false"),
        ("env.rewards.pole_pos={}", ""),
        ("trainer.actor={}", ""),
    ],
)
def test_an_empty_table_over_one_that_is_not_would_change_nothing_and_is_refused(setting, remedy):
    assert refused("tiny", setting) == [
        f"--set {setting}: changes nothing, tables are merged key by key{remedy}"
    ]


def test_an_empty_table_of_a_file_is_refused_alike():
    write(Path(), child='extends = "tiny"\n[env.rewards]\n')
    assert refused("child") == [
        "presets/child.toml: env.rewards = {}: changes nothing, tables are merged key by key; "
        "a term is taken away by env.rewards.alive = false"
    ]


def test_false_stays_a_value_where_no_term_stands():
    preset = load("tiny", ["trainer.use_clipped_value_loss=false"]).preset
    assert preset.trainer.use_clipped_value_loss is False


def test_the_cpu_tables_of_the_whole_chain_apply_on_the_cpu_alone():
    write(
        Path(),
        base=TINY + "[cpu.env]\nnum_envs = 4\n[cpu.trainer]\nnum_mini_batches = 2",
        child='extends = "base"\n[env]\nnum_envs = 64\n[cpu.trainer]\nnum_mini_batches = 1',
    )
    cpu, gpu = load("child", device="cpu"), load("child", device="cuda")
    assert (cpu.preset.env.num_envs, cpu.preset.trainer.num_mini_batches) == (4, 1)
    assert (gpu.preset.env.num_envs, gpu.preset.trainer.num_mini_batches) == (64, 4)
    assert cpu.origins["env.num_envs"] == "presets/base.toml [cpu]"
    assert cpu.origins["trainer.num_mini_batches"] == "presets/child.toml [cpu]"
    assert (cpu.uses_cpu_table, gpu.uses_cpu_table) == (True, False)


def test_a_mistake_in_the_cpu_table_is_found_on_a_gpu_too():
    write(Path(), bad=TINY + "[cpu.env]\nnum_env = 4")
    assert refused("bad", device="cuda") == [
        "presets/bad.toml [cpu]: env.num_env = 4: unknown key; did you mean env.num_envs?"
    ]


def test_the_command_line_wins_over_file_and_cpu_table():
    write(Path(), child='extends = "tiny"\n[cpu.env]\nnum_envs = 4')
    by_set = load("child", ["env.num_envs=8"])
    by_flag = load("child", flags={"--num-envs": 32, "--seed": None})
    assert (by_set.preset.env.num_envs, by_set.origins["env.num_envs"]) == (8, "--set")
    assert (by_flag.preset.env.num_envs, by_flag.origins["env.num_envs"]) == (32, "--num-envs")
    assert by_flag.preset.trainer.seed is None


# Finding and reading files.


def test_presets_are_found_by_path_here_in_the_users_folder_and_in_ours(tmp_path):
    user = tmp_path / "config" / "ppo-tui" / "presets"
    user.mkdir(parents=True)
    (user / "mine.toml").write_text(TINY)
    (tmp_path / "elsewhere.toml").write_text(TINY)
    assert {"mine", "tiny"} <= set(files.names())
    assert load("mine").file.path == user / "mine.toml"
    assert load("elsewhere.toml").preset.name == "elsewhere"
    assert load(str(tmp_path / "elsewhere.toml")).preset.name == "elsewhere"


def test_a_preset_of_the_current_folder_hides_one_of_the_user_and_may_extend_it(tmp_path):
    user = tmp_path / "config" / "ppo-tui" / "presets"
    user.mkdir(parents=True)
    (user / "tiny.toml").write_text(TINY)
    write(tmp_path, tiny='extends = "tiny"\n[trainer]\ngamma = 0.5')
    resolved = load("tiny")
    assert resolved.preset.trainer.gamma == 0.5
    assert resolved.origins["env.num_envs"] == str(user / "tiny.toml")


def test_a_base_given_as_a_path_lies_beside_its_child(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "base.toml").write_text(TINY)
    (tmp_path / "deep" / "child.toml").write_text('extends = "base.toml"')
    assert load("deep/child.toml").preset.env.robot == "cartpole"


def test_a_mistyped_name_is_refused_with_the_nearest_and_all_names():
    first, second = refused("tinyy")
    assert first == 'no preset "tinyy"; did you mean tiny?'
    assert second == f"presets: {', '.join(files.names())}"
    assert refused("")[0] == 'no preset ""'


def test_a_mistyped_base_is_refused():
    write(Path(), child='extends = "tinny"')
    assert refused("child")[0] == (
        'presets/child.toml: extends = "tinny": no such preset; did you mean tiny?'
    )


def test_presets_that_extend_each_other_are_refused():
    write(Path(), a='extends = "b"', b='extends = "a"')
    assert refused("a") == [
        "presets extend each other in a circle: presets/a.toml -> presets/b.toml -> presets/a.toml"
    ]
    write(Path(), own='extends = "own"')
    assert "in a circle" in refused("own")[0]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.toml", "nowhere.toml: no such file"),
        ("run/", "run/: is a folder, not a preset; did you mean run/config.toml?"),
        ("presets/", "presets/: is a folder, not a preset"),
    ],
)
def test_a_path_that_is_no_file_is_refused(name, message):
    Path("run").mkdir()
    Path("run/config.toml").write_text(TINY)
    assert refused(name) == [message]


def test_a_file_that_is_not_toml_is_refused_with_its_line():
    write(Path(), broken="[env]\nrobot = cartpole\n", cut="[env]\nrobot = [1,")
    assert refused("broken") == ["presets/broken.toml: line 2, column 9: not TOML: Invalid value"]
    assert refused("cut")[0].startswith("presets/cut.toml: end of the file: not TOML: ")


def test_a_byte_order_mark_is_no_part_of_a_preset():
    Path("presets/marked.toml").write_bytes(b"\xef\xbb\xbf" + TINY.encode())
    assert load("marked").preset.env.num_envs == 16


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("latin-1", "line 2: is not UTF-8 text; save it as UTF-8"),
        ("utf-16", "is UTF-16 text; save it as UTF-8"),
        ("utf-16-le", "holds null bytes, as UTF-16 text does; save it as UTF-8"),
    ],
)
def test_a_preset_in_another_encoding_is_refused(encoding, said):
    letter = "o" if encoding == "utf-16-le" else "\xf6"  # then all bytes are UTF-8 by chance
    text = f'extends = "tiny"\ndescription = "h{letter}rt"\n'
    Path("presets/other.toml").write_bytes(text.encode(encoding))
    assert refused("other") == [f"presets/other.toml: {said}"]


def test_a_listing_survives_a_broken_file():
    write(Path(), broken="=", child='extends = "tiny"')
    found = {file.name: describe(file) for file in files.files()}
    assert found["tiny"] == "A pole on a cart, for tests"
    assert found["child"] == "A pole on a cart, for tests"
    assert "not TOML" in found["broken"]


# Mistakes in values.


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("trainer.gama=0.9", "unknown key; did you mean trainer.gamma?"),
        ("trainer.entropy_coeff=0", "unknown key; did you mean trainer.entropy_coef?"),
        ("ppo.gama=.9", "unknown key; did you mean trainer.gamma?"),
        ("num_envs=3", "unknown key; did you mean env.num_envs?"),
        ("env.num_steps_per_env=3", "unknown key; did you mean trainer.num_steps_per_env?"),
        ("trainer.anneal_lr=true", "unknown key; did you mean trainer.schedule?"),
        ("trainer.lr_schedule=linear", "unknown key; did you mean trainer.schedule?"),
        ("trainer.n_steps=5", "unknown key; did you mean trainer.num_steps_per_env?"),
        ("trainer.actor.width=5", "unknown key; allowed here: trainer.actor.hidden_dims, "),
        ("trainer.desired_kl=0", "must be greater than 0"),
        ("trainer.desired_kl=-0.01", "must be greater than 0"),
        ("trainer.desired_kl=nan", "must be a finite number"),
        ("trainer.desired_kl=inf", "must be a finite number"),
        ("trainer.gamma=1.5", "must be at most 1"),
        ("trainer.seed=4294967296", "must be less than 4294967296"),
        ("trainer.schedule=adaptve", "must be 'adaptive' or 'fixed'; did you mean adaptive?"),
        ("trainer.num_iterations=2.5", "must be a whole number"),
        ("trainer.num_iterations=true", "must be a whole number"),
        ('trainer.num_iterations="7"', "must be a whole number"),
        ("trainer.num_iterations=2026-01-01", "must be a whole number"),
        ("trainer.use_clipped_value_loss=1", "must be true or false"),
        ("trainer.actor=5", "must be a table"),
        ("trainer.actor.hidden_dims=5", "must be a list"),
        ("env.robot=5", 'must be a text in "quotes"'),
        ("env.robot=cartpol", "did you mean cartpole?"),
        ("env.rewards.alive.term=is_alve", "did you mean is_alive?"),
        ("env.rewards.pole_pos.targt=1.0", "did you mean target?"),
        ("env.rewards.pole_pos.wieght=1.0", "did you mean weight?"),
        ("env.terminations.time_out.timeout=true", "did you mean time_out?"),
        ("env.observations.policy.joint_vel_rel.niose=[0, 1]", "did you mean noise?"),
        ("env.robot=CARTPOLE", "did you mean cartpole?"),
        ("env.rewards.pole_pos.joints=cart_pole", "cart_to_pole"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(setting, message):
    key, _, value = setting.partition("=")
    (said,) = refused("tiny", setting)
    assert said.startswith(f"--set {key}=")
    assert message in said
    assert value.strip('"').lstrip("0.") in said


def test_a_wrong_value_in_a_file_is_named_with_the_file_and_the_full_key():
    text = TINY.replace("[trainer]", "[trainer]\ngama = 0.9\nactor.hidden_dims = [8, 0]")
    write(Path(), wrong=text.replace("actor.hidden_dims = [8]", ""))
    assert refused("wrong") == [
        "presets/wrong.toml: trainer.actor.hidden_dims[1] = 0: must be at least 1",
        "presets/wrong.toml: trainer.gama = 0.9: unknown key; did you mean trainer.gamma?",
    ]


def test_a_missing_value_is_named_with_the_file_of_its_table():
    write(Path(), wrong=TINY + "[env.rewards.new]\nterm = 'is_alive'")
    assert refused("wrong") == ["presets/wrong.toml: env.rewards.new.weight: is missing"]
    write(Path(), empty="")
    assert refused("empty") == ["presets/empty.toml: env: is missing"]


def test_a_rule_between_keys_is_told_in_its_own_words():
    (said,) = refused("tiny", "trainer.learning_rate=0.5")
    assert said.startswith("--set trainer.learning_rate=0.5: learning_rate 0.5 lies outside")
    (said,) = refused("tiny", "env.events.push.mode=interval")
    assert said.startswith('--set env.events.push.mode="interval": interval_range_s goes with')
    write(Path(), high=TINY.replace("[trainer]", "[trainer]\nlearning_rate = 0.5"))
    (said,) = refused("high", "trainer.gamma=0.9")
    assert said.startswith("presets/high.toml: trainer.learning_rate = 0.5: learning_rate 0.5")


def test_parts_that_another_robot_lacks_are_told_without_an_empty_list():
    with pytest.raises(PresetError) as caught:
        load("go2_flat", ["env.robot=cartpole"])
    said = str(caught.value)
    assert "no contact sensor matches 'base' (robot cartpole, which has none)\n" in said
    assert "near are" not in said


def test_samples_that_do_not_divide_are_refused_with_the_nearest_counts():
    settings = ["env.num_envs=7", "trainer.num_steps_per_env=5"]
    (said,) = refused("tiny", *settings)
    assert said == (
        "presets/tiny.toml: trainer.num_mini_batches = 4: 35 samples (env.num_envs 7 x "
        "trainer.num_steps_per_env 5) do not divide by 4; nearest: 5 or 7"
    )
    assert load("tiny", [*settings, "trainer.num_mini_batches=5"]).preset.batch_size == 35


def test_a_misspelt_term_is_told_the_nearest_of_its_table_and_of_all_terms():
    (said,) = refused("tiny", "env.rewards.pole_psos.weight=1.0")
    assert said == (
        "--set env.rewards.pole_psos: 'pole_psos' is not a reward term; did you mean pole_pos?"
    )
    (said,) = refused("tiny", "env.rewards.dof_vel_l3.weight=1.0")
    assert "did you mean dof_vel_l" in said


def test_one_sample_cannot_be_normalised():
    one = ["env.num_envs=1", "trainer.num_steps_per_env=1", "trainer.num_mini_batches=1"]
    (said,) = refused("tiny", *one)
    assert "over 1 sample, which has no spread; give the rollout 2 or more" in said
    single = ["trainer.num_mini_batches=128", "trainer.normalize_advantage_per_mini_batch=true"]
    (said,) = refused("tiny", *single)
    assert "give the mini-batch 2 or more" in said
    assert load("tiny", single[:1]).preset.batch_size == 128


def test_many_mistakes_are_listed_up_to_eight():
    settings = [f"trainer.wrong_{i}={i}" for i in range(12)]
    messages = refused("tiny", *settings)
    assert len(messages) == 9
    assert messages[-1] == "... and 4 more"


def test_a_name_that_is_no_folders_name_is_refused():
    (said,) = refused("tiny", "name=../up")
    assert said.startswith('--set name="../up": ')


def test_a_cpu_entry_that_is_no_table_is_refused():
    write(Path(), wrong="cpu = 5\n" + TINY)
    assert refused("wrong") == ["presets/wrong.toml: cpu = 5: must be a table"]


# Writing.


def test_what_is_written_loads_to_the_same_preset_on_any_device():
    write(Path(), child='extends = "tiny"\ndescription = "über \\"x\\""\n[cpu.env]\nnum_envs = 4')
    resolved = load("child", ["trainer.clip_actions=3", "trainer.learning_rate=1e-5"])
    Path("config.toml").write_text(to_toml(resolved.preset), encoding="utf-8")
    for device in ("cpu", "cuda"):
        again = load("config.toml", device=device)
        assert again.preset == resolved.preset
        assert list(again.preset.env.rewards) == list(resolved.preset.env.rewards)


def test_every_key_is_written_with_its_origin():
    resolved = load("tiny", ["trainer.gamma=.98"], flags={"--num-envs": 8})
    text = to_toml(resolved.preset, resolved.origins)
    lines = {" ".join(line.split()) for line in text.splitlines()}
    assert "gamma = 0.98 # --set" in lines
    assert "num_envs = 8 # --num-envs" in lines
    assert "lam = 0.95 # default" in lines
    assert "# seed is unset # default" in lines
    assert 'robot = "cartpole" # presets/tiny.toml' in lines
    empty = {"env.commands", "env.events", "env.curriculum"}
    assert text.count("  # ") == len(resolved.origins.keys() - empty)
    assert tomllib.loads(text)["trainer"]["gamma"] == 0.98


# The presets that come with the program.


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("path", sorted(files.OURS.glob("*.toml")), ids=lambda path: path.stem)
def test_our_presets_are_right_described_and_survive_being_written(path, device):
    resolved = load(str(path), device=device)
    assert resolved.preset.description
    Path("config.toml").write_text(to_toml(resolved.preset), encoding="utf-8")
    assert load("config.toml").preset == resolved.preset
