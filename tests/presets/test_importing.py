"""A run made from a checkpoint of RSL-RL: what is carried over, how ordered; what is refused."""

import re

import pytest
import torch

from presets.build import Device
from presets.columns import action_columns, joint_order, observation_columns
from presets.importing import import_checkpoint
from presets.loader import load
from presets.problems import PresetError
from sim.robots import ROBOTS
from trainer import checkpoint, rsl_rl
from trainer.inference import Policy
from trainer.observation_sets import ObservationSet
from trainer.policy import Actor, Critic
from trainer.update import Learner

CPU = Device("cpu")
GO2 = ROBOTS["go2"].joint_names
LEG_BY_LEG = tuple(
    f"{leg}_{part}_joint" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "thigh", "calf")
)
SETTINGS = ["trainer.seed=1", "env.num_envs=4", "trainer.num_mini_batches=4"]


def write_foreign(path, preset="go2_flat", num_obs=48, settings=(), num_actions=12):
    """A checkpoint of RSL-RL's behind one optimizer step; returns its actor."""
    config = load(preset, [*SETTINGS, *settings]).preset.trainer
    torch.manual_seed(2)
    actor = Actor(config.actor, num_obs, num_actions)
    critic = Critic(config.critic, num_obs)
    learner = Learner(config, actor, critic)
    for network in (actor, critic):
        for parameter in network.parameters():
            parameter.grad = torch.randn_like(parameter)
        if config.actor.obs_normalization:
            network.obs_normalizer.update(torch.randn(40, num_obs) + 1)
    learner.optimizer.step()
    learner.learning_rate = 2.5e-4
    state = {
        "actor": actor.state_dict(),
        "critic": critic.state_dict(),
        "optimizer": learner.state_dict(),
        "completed_iterations": 7,
    }
    rsl_rl.write(path, state)
    return actor


def state_of(imported):
    (path,) = imported.folder.glob("checkpoints/model_*.pt")
    return checkpoint.load(path)


def actor_of(imported, preset="go2_flat", num_obs=48):
    actor = Actor(load(preset, SETTINGS).preset.trainer.actor, num_obs, 12)
    actor.load_state_dict(state_of(imported)["actor"])
    return actor


def test_an_import_is_a_run_with_the_networks_rate_and_count(tmp_path):
    theirs = write_foreign(tmp_path / "model_6.pt")
    imported = import_checkpoint(
        tmp_path / "model_6.pt", load("go2_flat", SETTINGS), CPU, tmp_path / "run"
    )
    assert imported.completed_iterations == 7
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["model_7.pt"]
    state = state_of(imported)
    assert state["optimizer"]["param_groups"][0]["lr"] == 2.5e-4
    assert state["optimizer"]["state"]
    for name, tensor in theirs.state_dict().items():
        assert torch.equal(state["actor"][name], tensor)
    again = load(str(tmp_path / "run" / "config.toml")).preset
    assert again == load("go2_flat", SETTINGS).preset
    assert "7 iterations of RSL-RL from model_6.pt" in (tmp_path / "run/events.jsonl").read_text()


@pytest.mark.parametrize("normalised", ["true", "false"])
def test_observations_are_normalised_if_they_were(normalised, tmp_path):
    sets = [f"trainer.{name}.obs_normalization={normalised}" for name in ("actor", "critic")]
    other = [
        text.replace(normalised, {"true": "false", "false": "true"}[normalised]) for text in sets
    ]
    write_foreign(tmp_path / "model.pt", settings=sets)
    preset = tmp_path / "other.toml"
    lines = "".join(f"{text}\n" for text in other)
    preset.write_text(f'extends = "go2_flat"\n[cpu]\n{lines}')
    resolved = load(str(preset), SETTINGS)
    imported = import_checkpoint(tmp_path / "model.pt", resolved, CPU, tmp_path / "run")
    assert imported.notes[0] == (
        f"trainer.actor.obs_normalization = {normalised}, as in the checkpoint; "
        f"{preset} [cpu] says otherwise"
    )
    again = load(str(tmp_path / "run" / "config.toml")).preset.trainer
    assert again.actor.obs_normalization is (normalised == "true")

    with pytest.raises(PresetError, match=f"import with --set {sets[0]}"):
        import_checkpoint(
            tmp_path / "model.pt", load("go2_flat", [*SETTINGS, *other]), CPU, tmp_path / "more"
        )


def test_a_seed_is_drawn_where_the_preset_has_none(tmp_path):
    write_foreign(tmp_path / "model.pt")
    import_checkpoint(tmp_path / "model.pt", load("go2_flat"), CPU, tmp_path / "run")
    assert load(str(tmp_path / "run" / "config.toml")).preset.trainer.seed is not None


def test_the_orders_by_name_are_those_of_the_trees():
    assert joint_order("go2", "isaac") == GO2
    assert joint_order("go2", "depth-first") == LEG_BY_LEG
    assert joint_order("franka", "isaac") == ROBOTS["franka"].joint_names
    assert joint_order("go2", ",".join(reversed(GO2))) == GO2[::-1]


def test_columns_of_the_terms_move_as_a_whole_and_joints_within():
    env = load("go2_flat").preset.env
    widths = {"policy": [("base_lin_vel", 3), ("joint_pos_rel", 12), ("last_action", 12)]}
    columns = observation_columns(
        env, ["policy"], widths, LEG_BY_LEG, ["last_action", "base_lin_vel", "joint_pos_rel"]
    )
    # ours: FL FR RL RR hips, ...; there: hip, thigh and calf of FL, ...
    joints = [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]
    assert list(columns) == [12, 13, 14, *(15 + j for j in joints), *joints]
    assert list(action_columns(env, LEG_BY_LEG)) == joints


def test_a_policy_that_counts_leg_by_leg_does_the_same(tmp_path):
    theirs = write_foreign(tmp_path / "model.pt")
    order = ["joint_pos_rel", "joint_vel_rel", "last_action", "velocity_commands"]
    order += ["base_lin_vel", "base_ang_vel", "projected_gravity"]
    imported = import_checkpoint(
        tmp_path / "model.pt",
        load("go2_flat", SETTINGS),
        CPU,
        tmp_path / "run",
        joints="depth-first",
        terms=order,
    )
    ours = actor_of(imported)
    base, command, *joints = torch.randn(5, 48).split([9, 3, 12, 12, 12], dim=1)
    there = [GO2.index(name) for name in LEG_BY_LEG]  # their column j is our column there[j]
    seen_there = torch.cat([*(part[:, there] for part in joints), command, base], dim=1)
    seen_here = torch.cat([base, command, *joints], dim=1)
    with torch.no_grad():
        torch.testing.assert_close(ours.mean(seen_here)[:, there], theirs.mean(seen_there))
        assert torch.equal(ours.std[there], theirs.std)

    # and what the optimizer has kept moves along
    kept = state_of(imported)["optimizer"]["state"]
    names = [name for name, _ in ours.named_parameters()]
    first = kept[names.index("mlp.0.weight")]["exp_avg"]
    foreign = rsl_rl.read(tmp_path / "model.pt")
    number = [n for n in foreign.actor if not n.startswith("obs_")].index("mlp.0.weight")
    other = foreign.optimizer["state"][sorted(foreign.optimizer["state"])[0] + number]["exp_avg"]
    assert other.shape == first.shape
    expected = other[:, 36 + 3 : 48]  # base_lin_vel and what follows stand last there
    torch.testing.assert_close(first[:, :9], expected)


def test_our_own_order_is_told(tmp_path):
    write_foreign(tmp_path / "model.pt")
    imported = import_checkpoint(
        tmp_path / "model.pt", load("go2_flat", SETTINGS), CPU, tmp_path / "run", joints="isaac"
    )
    assert "--joint-order isaac: is our own order, no column has moved" in imported.notes


@pytest.mark.parametrize(
    ("joints", "terms", "told"),
    [
        ("isac", [], "--joint-order isac: must be isaac or depth-first, or the names of all joi"),
        ("a,b", [], "--joint-order a,b: no joint of the go2 is called a"),
        (",".join(GO2[:-1]), [], f"{GO2[-1]} is missing"),
        (",".join((*GO2, GO2[0])), [], f"{GO2[0]} stands twice"),
        (None, ["base_lin_vle"], "no observation term is called base_lin_vle; did you mean"),
        (None, ["base_lin_vel"], "base_ang_vel is missing"),
    ],
)
def test_an_order_that_is_none_is_refused(joints, terms, told, tmp_path):
    write_foreign(tmp_path / "model.pt")
    with pytest.raises(PresetError) as refused:
        import_checkpoint(
            tmp_path / "model.pt",
            load("go2_flat", SETTINGS),
            CPU,
            tmp_path / "run",
            joints=joints,
            terms=terms,
        )
    assert told in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_a_checkpoint_of_another_task_is_told_by_layer_shapes_and_terms(tmp_path):
    write_foreign(tmp_path / "model.pt")
    with pytest.raises(PresetError) as refused:
        import_checkpoint(tmp_path / "model.pt", load("go2_rough", SETTINGS), CPU, tmp_path / "run")
    told = refused.value.messages
    assert told[0].startswith(f"{tmp_path / 'model.pt'} does not fit go2_rough: trainer.actor.hid")
    assert "trainer.actor.hidden_dims = [512,256,128] by the preset, [128,128,128] in" in told[0]
    assert "mlp.0.weight: [128, 48] there, [512, 235] here" in told[0]
    assert told[0].endswith("import with --set trainer.actor.hidden_dims=[128,128,128]")
    assert "actor: mlp.0.weight is [128, 48] in the checkpoint, [512, 235] by the preset" in told[1]
    assert "it reads 48 observations, the preset has 235: base_lin_vel 3, base_ang_vel 3" in told[1]
    assert "height_scan 187" in told[1]
    assert not (tmp_path / "run").exists()


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    write_foreign(tmp_path / "model.pt")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").touch()
    with pytest.raises(PresetError, match=re.escape("holds 'mine' already")):
        import_checkpoint(tmp_path / "model.pt", load("go2_flat"), CPU, tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["mine"]


@pytest.mark.parametrize("existed", [False, True])
def test_a_full_disk_leaves_nothing_half_made(existed, tmp_path, monkeypatch):
    write_foreign(tmp_path / "model.pt")
    if existed:
        (tmp_path / "run").mkdir()

    def full(path, state):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save", full)
    with pytest.raises(PresetError, match="No space left on device"):
        import_checkpoint(tmp_path / "model.pt", load("go2_flat"), CPU, tmp_path / "run")
    assert (tmp_path / "run").exists() == existed
    assert not existed or not list((tmp_path / "run").iterdir())


def test_an_imported_policy_can_be_played(tmp_path):
    theirs = write_foreign(tmp_path / "model.pt")
    imported = import_checkpoint(
        tmp_path / "model.pt", load("go2_flat", SETTINGS), CPU, tmp_path / "run"
    )
    policy = Policy(actor_of(imported), ObservationSet())
    seen = torch.randn(3, 48)
    with torch.no_grad():
        assert torch.equal(policy.actor.mean(seen), theirs.mean(seen))
