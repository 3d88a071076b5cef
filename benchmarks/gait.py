"""Does a trained Go2 step, or does it slide or vibrate? Plays a checkpoint and measures the gait.

    python benchmarks/gait.py RUN_DIR [--vx 0.8 --vy 0 --seconds 10]

The policy acts without noise, in worlds without pushes, and is told one velocity all the time, at
headings of its own. The first two seconds are left out. What a walk looks like: every foot leaves
the ground 1 to 5 times a second for 0.1 to 0.5 s, feet on the ground move slowly beside the body,
and little of the joints' speed lies above 10 Hz.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from presets import loader
from presets.build import Device, build_env
from sim.env import ManagerBasedEnv
from trainer import checkpoint
from trainer.policy import Actor

WORLDS = 32
WARM_UP_SECONDS = 2.0
FAST_HERTZ = 10.0
STILL = {
    "env.num_envs": WORLDS,
    "env.events.push_robot": "false",
    "env.events.reset_base.velocity_range": "{}",
    "env.commands.base_velocity.rel_standing_envs": 0.0,
}


def quiet_env(run: Path) -> tuple[ManagerBasedEnv, loader.Resolved]:
    """The run's worlds without noise and pushes."""
    config = str(run / "config.toml")
    trained = loader.load(config, device="cpu")
    settings = [f"{key}={value}" for key, value in STILL.items()]
    settings += [
        f"env.observations.policy.{name}.noise=[0.0, 0.0]"
        for name, term in trained.preset.env.observations["policy"].items()
        if term.noise is not None
    ]
    resolved = loader.load(config, settings, device="cpu")
    env = build_env(resolved.preset, Device("cpu"))
    assert isinstance(env, ManagerBasedEnv)
    return env, resolved


def newest_policy(run: Path, env: ManagerBasedEnv, resolved: loader.Resolved) -> Actor:
    """The actor of the run's last checkpoint."""
    path = checkpoint.saved(run / "checkpoints")[-1]
    num_obs = sum(width for _, width in env.observation_terms["policy"])
    actor = Actor(resolved.preset.trainer.actor, num_obs, env.num_actions)
    actor.load_state_dict(checkpoint.load(path)["actor"])
    print(f"{path.parent.parent.name}/{path.name}")
    return actor


@torch.no_grad()
def play(
    env: ManagerBasedEnv, actor: Actor, vx: float, vy: float, seconds: float
) -> dict[str, float]:
    """Walk at one commanded velocity; measures over all worlds that did not fall."""
    robot, contacts = env.scene.robot, env.scene.contacts
    feet = contacts.body_ids(".*_foot")
    foot_bodies = robot.body_ids(".*_foot")
    command = env.commands.terms["base_velocity"]
    records: dict[str, list[torch.Tensor]] = {
        key: [] for key in ("v", "contact", "foot", "qd", "z", "g")
    }
    fallen = torch.zeros(env.num_envs, dtype=torch.bool)
    for step in range(round(seconds / env.step_dt)):
        command.value[:, 0], command.value[:, 1] = vx, vy
        command.heading_target.copy_(robot.heading_w)
        command.value[:, 2] = 0.0
        fallen |= env.step(actor.mean(env.observe()["policy"])).terminated
        if step * env.step_dt >= WARM_UP_SECONDS:
            records["v"].append(robot.root_lin_vel_b[:, :2].clone())
            records["contact"].append(contacts.contact_ticks[:, feet] > 0)
            records["foot"].append(robot.body_pos_w[:, foot_bodies, :2].clone())
            records["qd"].append(robot.joint_vel.clone())
            records["z"].append(robot.root_pos_w[:, 2].clone())
            records["g"].append(robot.projected_gravity_b[:, :2].norm(dim=1))
    stacked = {key: torch.stack(values)[:, ~fallen] for key, values in records.items()}
    dt = env.step_dt
    contact = stacked["contact"]
    touch_downs = (contact[1:] & ~contact[:-1]).float().sum(0) / (len(contact) * dt)
    speed = stacked["foot"].diff(dim=0).norm(dim=-1) / dt
    on_ground = contact[1:] & contact[:-1]
    power = torch.fft.rfft(stacked["qd"] - stacked["qd"].mean(0), dim=0).abs().square().sum((1, 2))
    fast = torch.fft.rfftfreq(len(stacked["qd"]), dt) > FAST_HERTZ
    error = (stacked["v"] - torch.tensor([vx, vy])).norm(dim=-1)
    return {
        "falls": float(fallen.float().mean()),
        "velocity error m/s": float(error.mean()),
        "speed m/s": float(stacked["v"].norm(dim=-1).mean()),
        "steps/s a foot": float(touch_downs.mean()),
        "least steps/s of a foot": float(touch_downs.mean(0).min()),
        "air share": float((~contact).float().mean()),
        "slip m/s on ground": float((speed * on_ground).sum() / on_ground.sum()),
        "height m": float(stacked["z"].mean()),
        "tilt": float(stacked["g"].mean()),
        "joint speed above 10 Hz": float(power[fast].sum() / power.sum()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--vx", type=float, nargs="+", default=[0.8, -0.6, 0.0, 0.4])
    parser.add_argument("--vy", type=float, nargs="+", default=[0.0, 0.0, 0.6, 0.0])
    parser.add_argument("--seconds", type=float, default=10.0)
    args = parser.parse_args()
    env, resolved = quiet_env(args.run)
    actor = newest_policy(args.run, env, resolved)
    results = {
        (vx, vy): play(env, actor, vx, vy, args.seconds)
        for vx, vy in zip(args.vx, args.vy, strict=True)
    }
    print(f"{'vx, vy':26}" + "".join(f"{vx:+.1f}, {vy:+.1f}".rjust(14) for vx, vy in results))
    for key in next(iter(results.values())):
        print(f"{key:26}" + "".join(f"{result[key]:14.3f}" for result in results.values()))
    env.close()


if __name__ == "__main__":
    main()
