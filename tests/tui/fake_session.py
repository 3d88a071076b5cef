"""A session without threads, torch or physics: plausible numbers, the same at every run.

It fits `trainer.telemetry.SessionView`, so every panel and screen can be shown and tested with it.
Nothing happens by itself: `tick` passes one stage boundary, `finish_iteration` all that are left;
with `live=True` every call of `snapshot` ticks once.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from trainer.breakpoints import Breakpoint
from trainer.control import (
    Adjustable,
    AppliedEdit,
    Arm,
    Change,
    Control,
    Disarm,
    Edit,
    PauseBehind,
    RunIterations,
    SlowMotion,
    Undo,
)
from trainer.stages import Stage
from trainer.telemetry import (
    Command,
    EpisodesView,
    Event,
    EventLog,
    Failure,
    History,
    Position,
    RolloutView,
    RunInfo,
    RunState,
    Snapshot,
    TensorSummary,
    UpdateView,
)

REWARD_TERMS = {
    "track_lin_vel_xy_exp": (1.5, 0.15, 1.21),
    "track_ang_vel_z_exp": (0.75, 0.12, 0.58),
    "lin_vel_z_l2": (-2.0, -0.21, -0.031),
    "ang_vel_xy_l2": (-0.05, -0.16, -0.022),
    "dof_torques_l2": (-2e-4, -0.19, -0.094),
    "dof_acc_l2": (-2.5e-7, -0.22, -0.078),
    "action_rate_l2": (-0.01, -0.14, -0.051),
    "feet_air_time": (0.25, -0.09, 0.012),
    "undesired_contacts": (-1.0, -0.08, -0.004),
    "flat_orientation_l2": (-2.5, -0.06, -0.007),
    "dof_pos_limits": (0.0, 0.0, 0.0),
}
"""Weight, value at the first iteration and value after training of each term."""

STAGE_SECONDS = (0.019, 0.573, 0.010, 0.019, 0.008, 0.282, 0.001)
START_TIME = 1_790_000_000.0


ADJUSTABLES = (
    Adjustable(
        "trainer.learning_rate",
        6e-4,
        "Learning rate at the start; the adaptive schedule moves it.",
        "The schedule becomes fixed, or the next KL would overwrite the rate.",
    ),
    Adjustable("trainer.schedule", "adaptive", "adaptive: the KL moves the learning rate."),
    Adjustable("trainer.desired_kl", 0.01, "KL divergence that the adaptive schedule aims at."),
    Adjustable("trainer.entropy_coef", 0.01, "Weight of the entropy bonus in the total loss."),
    Adjustable("trainer.clip_param", 0.2, "Epsilon."),
    Adjustable("trainer.value_loss_coef", 1.0, "Weight of the value loss in the total loss."),
    Adjustable("trainer.max_grad_norm", 1.0, "Largest gradient norm."),
    Adjustable("trainer.rnd.weight", 0.0, refusal="trainer.rnd.weight_schedule moves it"),
    *(
        Adjustable(f"env.rewards.{name}.weight", term[0], "Weight of the reward term.")
        for name, term in REWARD_TERMS.items()
    ),
    Adjustable("env.commands.base_velocity.lin_vel_x", (-1.0, 1.0), "Low and high."),
)


def run_info(num_iterations: int = 1500, **changes: object) -> RunInfo:
    """What a Go2 run on a CPU would say of itself."""
    info = RunInfo(
        preset="go2_flat",
        run_dir="runs/go2_flat/2026-09-21_14-13-20_fake",
        seed=42,
        device="cpu",
        num_envs=512,
        num_steps_per_env=24,
        num_iterations=num_iterations,
        num_mini_batches=4,
        num_learning_epochs=5,
        num_actions=12,
        observation_groups=MappingProxyType({"policy": 48}),
        observation_terms=MappingProxyType(
            {
                "policy": (
                    ("base_lin_vel", 3),
                    ("base_ang_vel", 3),
                    ("projected_gravity", 3),
                    ("velocity_commands", 3),
                    ("joint_pos_rel", 12),
                    ("joint_vel_rel", 12),
                    ("last_action", 12),
                )
            }
        ),
        reward_terms=MappingProxyType({name: term[0] for name, term in REWARD_TERMS.items()}),
        decimation=4,
        step_dt=0.02,
        max_episode_length=1000,
        clip_param=0.2,
        desired_kl=0.01,
        notes=(
            "no GPU (no NVIDIA driver): 512 worlds; go2_flat runs its CPU table",
            "seed 42 was drawn; give it again to repeat this run",
        ),
    )
    return replace(info, **changes)


def _rate_steps(iteration: int) -> int:
    """How many factors of 1.5 the rate stands above its middle after an iteration."""
    return round(2.4 * float(np.sin(max(iteration, 0) / 9.0)))


def learning_rate(iteration: int) -> float:
    """The rate after an iteration."""
    return 6e-4 * 1.5 ** _rate_steps(iteration)


def metrics_at(iteration: int) -> dict[str, float]:
    """The metrics of one iteration, a function of its index alone."""
    noise = np.random.default_rng(1000 + iteration)
    learnt = 1.0 - float(np.exp(-iteration / 110.0))

    def between(start: float, end: float, jitter: float = 0.0) -> float:
        spread = jitter * float(noise.normal())
        return start + (end - start) * learnt + spread

    fallen = max(0.0, between(0.93, 0.12, 0.015))
    metrics = {
        "Loss/value": abs(between(0.31, 0.018, 0.004)),
        "Loss/surrogate": between(-0.004, -0.012, 0.002),
        "Loss/entropy": between(17.0, 8.1, 0.05),
        "Loss/learning_rate": learning_rate(iteration),
        "Loss/kl_mean": abs(between(0.012, 0.0107, 0.0012)),
        "Loss/kl_max": abs(between(0.021, 0.0188, 0.002)),
        "Loss/clip_fraction": abs(between(0.21, 0.143, 0.01)),
        "Loss/explained_variance": between(-0.05, 0.93, 0.01),
        "Loss/actor_grad_norm": abs(between(0.4, 0.71, 0.05)),
        "Loss/critic_grad_norm": abs(between(2.4, 0.55, 0.08)),
        "Policy/mean_std": between(1.0, 0.52, 0.004),
        "Policy/min_std": between(0.98, 0.31, 0.004),
        "Perf/total_fps": 13_400.0 + 300.0 * float(noise.normal()),
        "Perf/collection_time": sum(STAGE_SECONDS[:3]) + 0.01 * float(noise.normal()),
        "Perf/learning_time": sum(STAGE_SECONDS[3:]) + 0.006 * float(noise.normal()),
        "Train/mean_reward": between(-1.2, 24.5, 0.5),
        "Train/mean_episode_length": float(np.clip(between(38.0, 962.0, 9.0), 10.0, 1000.0)),
        "Metrics/base_velocity/error_vel_xy": abs(between(1.12, 0.21, 0.02)),
        "Metrics/base_velocity/error_vel_yaw": abs(between(1.31, 0.35, 0.03)),
        "Episode_Termination/time_out": 1.0 - fallen,
        "Episode_Termination/base_contact": fallen,
    }
    for name, (_, start, end) in REWARD_TERMS.items():
        metrics[f"Episode_Reward/{name}"] = between(start, end, 0.02 * abs(end))
    return metrics


def rollout_view(iteration: int, filled: int, info: RunInfo, bins: int = 64) -> RolloutView:
    """A rollout whose first `filled` rows hold rewards."""
    noise = np.random.default_rng(2000 + iteration)
    steps, num_bins = info.num_steps_per_env, min(bins, info.num_envs)
    wave = np.sin(np.arange(num_bins) / 7.0) + 0.6 * np.cos(np.arange(steps)[:, None] / 4.0)
    reward = (0.018 + 0.009 * wave + 0.004 * noise.normal(size=(steps, num_bins))).astype(
        np.float32
    )
    done = noise.random((steps, num_bins)) < 0.012
    over = done & (noise.random((steps, num_bins)) < 0.6)
    reward[done] -= 0.03
    value = (0.9 + 0.3 * np.roll(wave, 5, axis=1)).astype(np.float32)
    error = (0.08 * np.roll(wave, 9, axis=1) - 0.02).astype(np.float32)
    norm = (2.1 + 0.4 * np.roll(wave, 2, axis=1)).astype(np.float32)
    share = 1 / (info.num_envs // num_bins)
    fell, late = (share * np.asarray(part, np.float32) for part in (done & ~over, over))
    known = [reward, value, error, norm, fell, late]
    for numbers in known:
        numbers[filled:] = np.nan
    if filled < steps:
        error[max(filled - 1, 0) :] = np.nan
    done[filled:] = False
    advantage = (wave - wave.mean()).astype(np.float32) if filled == steps else None
    return RolloutView(
        reward,
        done,
        info.num_envs,
        filled,
        value,
        advantage,
        terminated=fell,
        time_out=late,
        td_error=error,
        action_norm=norm,
        log_prob=-8.0 - norm,
    )


def episodes_view(iteration: int, info: RunInfo) -> EpisodesView:
    """Robots that walk to the end of their time, and some that fall on the way."""
    noise = np.random.default_rng(4000 + iteration)
    fell = noise.random(100) < 0.3
    lengths = np.where(fell, noise.integers(20, 700, 100), info.max_episode_length)
    returns = 0.024 * lengths + noise.normal(0.0, 0.8, 100)
    return EpisodesView(returns.astype(np.float32), lengths.astype(np.float32))


def update_view(iteration: int, info: RunInfo) -> UpdateView:
    """An update with the adaptive schedule hunting around the desired KL."""
    noise = np.random.default_rng(3000 + iteration)
    updates = info.updates_per_iteration
    # As many small KLs as it takes to get from the last update's rate to this one's.
    rises = 2 + _rate_steps(iteration) - _rate_steps(iteration - 1)
    kl = np.linspace(0.0062, 0.0185, updates) + 0.0011 * noise.normal(size=updates)
    kl = np.clip(kl, 0.0055, 0.0195)
    kl[0], kl[1 : 1 + rises] = 0.0, np.linspace(0.0031, 0.0046, rises)
    kl[-4::3] = (0.0213, 0.0226)
    rate, rates = learning_rate(iteration - 1), []
    for value in kl:
        if value > 0.02:
            rate /= 1.5
        elif 0 < value < 0.005:
            rate *= 1.5
        rates.append(rate)
    edges = np.linspace(0.5, 1.5, 42)
    samples = np.exp(noise.normal(0.0, 0.13, size=4000))
    last, _ = np.histogram(np.clip(samples, 0.5, 1.5), edges)
    first, _ = np.histogram(np.ones(4000), edges)
    return UpdateView(
        kl=kl.astype(np.float32),
        learning_rate=np.asarray(rates, np.float32),
        clip_fraction=np.linspace(0.0, 0.21, updates, dtype=np.float32),
        ratio_edges=edges.astype(np.float32),
        ratio_first=first.astype(np.int64),
        ratio_last=last.astype(np.int64),
        action_std=np.linspace(0.31, 0.74, info.num_actions, dtype=np.float32),
    )


def tensor_summaries(
    stage: Stage, info: RunInfo, *, broken: bool = False
) -> tuple[TensorSummary, ...]:
    """The tensors that a session paused behind `stage` would list.

    Args:
        stage: the stage paused behind.
        info: gives the shapes.
        broken: one tensor holds NaN and Inf.
    """
    sizes = {
        "T": info.num_steps_per_env,
        "N": info.num_envs,
        "B": info.batch_size,
        "M": info.mini_batch_size,
        "A": info.num_actions,
        "O_policy": info.observation_groups["policy"],
    }
    per_stage = {
        Stage.OBSERVE: (("obs/policy", "[N,O_policy]"),),
        Stage.ACT_STEP: (
            ("actions", "[N,A]"),
            ("values", "[N,1]"),
            ("actions_log_prob", "[N]"),
            ("action_mean", "[N,A]"),
            ("action_std", "[N,A]"),
            ("rewards", "[N]"),
            ("terminated", "[N]"),
            ("time_outs", "[N]"),
        ),
        Stage.SAMPLE: (("permutation", "[B]"), ("obs/policy", "[M,O_policy]")),
        Stage.OPTIMIZE: (("ratio", "[M]"), ("kl", "[M]"), ("advantages", "[M,1]")),
    }
    rollout = (
        ("observations/policy", "[T,N,O_policy]"),
        ("actions", "[T,N,A]"),
        ("rewards", "[T,N,1]"),
        ("dones", "[T,N,1]"),
        ("values", "[T,N,1]"),
        ("actions_log_prob", "[T,N,1]"),
        ("advantages", "[T,N,1]"),
        ("returns", "[T,N,1]"),
    )
    summaries = []
    for index, (name, symbols) in enumerate(per_stage.get(stage, rollout)):
        shape = tuple(int(sizes.get(part, part)) for part in symbols.strip("[]").split(","))
        flag = name in ("terminated", "time_outs", "dones")
        bad = broken and index == 1
        summaries.append(
            TensorSummary(
                name=name,
                symbols=symbols,
                shape=shape,
                dtype="bool" if flag else "float32",
                device=info.device,
                num_bytes=int(np.prod(shape)) * (1 if flag else 4),
                min=0.0 if flag else -3.25 - index,
                max=1.0 if flag else 4.125 * (index + 1),
                mean=0.0117 if flag else 0.0131 * index,
                std=0.107 if flag else 0.94,
                nan=3 if bad else 0,
                inf=1 if bad else 0,
            )
        )
    return tuple(summaries)


class FakeSession:
    """A `SessionView` that does what its test tells it.

    Args:
        num_iterations: iterations of the whole run.
        completed: iterations that are done at the start; the curves hold them all.
        paused: start paused behind `stage`, with that stage's tensors.
        stage: the stage at the start.
        step: t, the filled rows of the rollout.
        epoch: index of the learning epoch.
        mini_batch: index of the mini-batch.
        live: every call of `snapshot` passes one stage boundary while running.
        info: replaces the run's description.
    """

    def __init__(
        self,
        num_iterations: int = 1500,
        *,
        completed: int = 312,
        paused: bool = False,
        stage: Stage = Stage.ACT_STEP,
        step: int = 17,
        epoch: int = 0,
        mini_batch: int = 0,
        live: bool = False,
        info: RunInfo | None = None,
    ) -> None:
        self.info = info or run_info(num_iterations)
        self.history = History()
        self.events = EventLog()
        self.commands: list[Command] = []
        """Everything asked for, in order."""
        self.requests: list[object] = []
        """Everything that was looked at, in order."""
        self.control_requests: list[object] = []
        """The same of what takes an argument."""
        self.robot_requests: list[object] = []
        """The same of robots."""
        self.live = live
        for iteration in range(completed):
            self.history.append(iteration, metrics_at(iteration))
        self._record(0, "start", f"{self.info.preset} seed {self.info.seed} on {self.info.device}")
        if completed > 50:
            saved = 50 * ((completed - 1) // 50)
            for iteration in range(50, saved, 50):
                self._record(
                    iteration * 0.9, "checkpoint", f"model_{iteration}.pt saved, 2.1 MB", iteration
                )
            edit = "trainer.entropy_coef 0.01 to 0.005 (it wanders)"
            self._record(saved * 0.91, "edit", edit, saved * 2 // 5)
            why = "paused: Loss/kl_mean 0.06 above 0.05 (breakpoint kl > 0.05)"
            self._record(saved * 0.92, "break", why, saved * 3 // 5)
            late = "explained variance below 0 for 10 iterations"
            self._record(saved * 0.93, "alert", late, saved * 9 // 10)
            rate = "learning rate 6.6e-04 to 4.4e-04: KL 0.0231 above 0.02"
            self._record(288, "rate", rate)
            self._record(290, "checkpoint", f"model_{saved}.pt saved, 2.1 MB", saved)
        self._paused_when: str | None = None  # what the next boundary must do
        self._snapshot = Snapshot(info=self.info, control=Control(adjustables=ADJUSTABLES))
        self._publish(
            state=RunState.PAUSED if paused else RunState.RUNNING,
            position=Position(completed, stage, step, epoch, mini_batch),
            completed_iterations=completed,
            tensors=tensor_summaries(stage, self.info) if paused else (),
        )

    # --- what a screen uses -------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return the newest snapshot."""
        if self.live:
            self.tick()
        return self._snapshot

    def command(self, command: Command) -> None:
        """Note the command and do it: pauses at the next `tick`, steps and stops at once."""
        self.commands.append(command)
        if self._snapshot.state.is_over:
            return
        match command:
            case Command.PAUSE if self._snapshot.state is RunState.RUNNING:
                self._publish(pending="pauses at the next boundary")
            case Command.RUN:
                self._publish(state=RunState.RUNNING, tensors=(), pending="")
            case Command.STEP_STAGE:
                self._advance()
                self._pause()
            case Command.STEP_PHASE:
                while not self._phase_ends(self._advance()):
                    pass
                self._pause()
            case Command.STEP_ITERATION:
                self.finish_iteration()
                self._pause()
            case Command.CHECKPOINT:
                name = f"model_{self._snapshot.completed_iterations}.pt"
                self._record(300, "checkpoint", f"{name} saved, 2.1 MB")
            case Command.FINISH:
                self.finish_iteration()
                self._end(RunState.FINISHED)
            case Command.STOP_NOW:
                self._end(RunState.FINISHED)
            case _:
                pass

    def control(self, request: object) -> None:
        """Note the request and do it at once."""
        self.control_requests.append(request)
        held = self._snapshot.control
        match request:
            case SlowMotion(seconds):
                self._publish(control=replace(held, dwell=seconds))
            case PauseBehind(stages):
                self._publish(control=replace(held, mask=stages))
            case Arm(one):
                self._publish(control=replace(held, breakpoints=(*held.breakpoints, one)))
            case Disarm(one):
                left: tuple[Breakpoint, ...] = tuple(b for b in held.breakpoints if b != one)
                self._publish(control=replace(held, breakpoints=left))
            case Edit(key, value, reason):
                old = next(one.value for one in held.adjustables if one.key == key)
                done = AppliedEdit(
                    self._snapshot.completed_iterations, reason, (Change(key, old, value),)
                )
                self._publish(control=replace(held, edits=(*held.edits, done)))
            case Undo():
                self._publish(control=replace(held, edits=held.edits[:-1]))
            case RunIterations(count):
                for _ in range(count):
                    self.finish_iteration()
                self._pause()

    def look(self, request: object) -> None:
        """Note the request; while paused answer it at once, else with the next iteration."""
        self.requests.append(request)
        if self._snapshot.state is RunState.PAUSED:
            self._answer()

    def watch_robot(self, request: object) -> None:
        """Note the request, and answer it with the same pose every time."""
        self.robot_requests.append(request)
        if request is not None:
            from tests.tui.poses import walker

            self._publish(robot=walker(world=request.world))

    # --- what a test uses ---------------------------------------------------------------------

    def tick(self) -> None:
        """Pass one stage boundary, unless paused or over."""
        if self._snapshot.state is not RunState.RUNNING:
            return
        if self._snapshot.pending:
            self._pause()
        else:
            self._advance()

    def finish_iteration(self) -> None:
        """Run to the end of the present iteration."""
        while self._advance() is not Stage.FRESH:
            pass

    def publish(self, **changes: object) -> Snapshot:
        """Replace any field of the snapshot, as the session thread would."""
        return self._publish(**changes)

    def fail(self, message: str = "FloatingPointError: non-finite value loss") -> None:
        """End the session as a fault would."""
        position = self._snapshot.position
        trace = f"Traceback (most recent call last):\n  ...\n{message}"
        self._publish(
            state=RunState.FAILED,
            failure=Failure(message, trace, position.stage, position.iteration),
        )
        self._record(301, "error", message)

    # --- inside -------------------------------------------------------------------------------

    def _answer(self) -> None:
        """Tell of what is looked at, from a small trainer that is real."""
        if self.requests and self.requests[-1] is not None:
            from tests.tui.traced import answer  # imports torch

            paused = self._snapshot.state is RunState.PAUSED
            behind = self._snapshot.position.stage if paused else Stage.FRESH
            self._publish(trace=answer(self.requests[-1], behind, in_full=paused))

    def _record(self, seconds: float, kind: str, text: str, iteration: int = 0) -> None:
        """Add an event at a fixed time, so that pictures do not change with the clock."""
        self.events.put(Event(START_TIME + seconds, kind, text, iteration))

    def _pause(self) -> None:
        stage = self._snapshot.position.stage
        self._publish(state=RunState.PAUSED, pending="", tensors=tensor_summaries(stage, self.info))
        self._answer()

    def _end(self, state: RunState) -> None:
        self._publish(state=state, pending="", tensors=())
        self._record(302, "end", f"{self._snapshot.completed_iterations} iterations done")

    def _phase_ends(self, stage: Stage) -> bool:
        """Whether the next stage belongs to the other phase."""
        full = self._snapshot.position.step == self.info.num_steps_per_env
        return stage is Stage.FRESH or (stage is Stage.STORE and full)

    def _advance(self) -> Stage:
        """Go to the next stage and return it."""
        at, steps = self._snapshot.position, self.info.num_steps_per_env
        completed = self._snapshot.completed_iterations
        if at.stage is Stage.FRESH:
            following = Position(at.iteration + 1, Stage.OBSERVE, 0)
        elif at.stage is Stage.STORE:
            nearer = Stage.OBSERVE if at.step < steps else Stage.TARGETS
            following = at._replace(stage=nearer)
        else:
            following = at._replace(stage=Stage(at.stage + 1))
        if following.stage is Stage.STORE:
            following = following._replace(step=at.step + 1)
        elif following.stage is Stage.OPTIMIZE:
            following = following._replace(
                epoch=self.info.num_learning_epochs - 1, mini_batch=self.info.num_mini_batches - 1
            )
        elif following.stage is Stage.FRESH:
            following = following._replace(step=0)
            self.history.append(following.iteration, metrics_at(following.iteration))
            completed += 1
        self._publish(position=following, completed_iterations=completed)
        if following.stage is Stage.FRESH:
            episodes = episodes_view(following.iteration, self.info)
            self._publish(boundary=replace(self._snapshot, boundary=None, episodes=episodes))
            self._answer()
        if completed >= self.info.num_iterations:
            self._publish(state=RunState.FINISHED)
        return following.stage

    def _publish(self, **changes: object) -> Snapshot:
        """Swap in a new snapshot with `changes` and all that follows from them."""
        before = self._snapshot
        after = replace(before, seq=before.seq + 1, **changes)
        completed, position = after.completed_iterations, after.position
        seconds = sum(STAGE_SECONDS)
        derived: dict[str, object] = {
            "env_steps": self.info.batch_size * completed
            + self.info.num_envs * (position.step if position.stage <= Stage.STORE else 0),
            "elapsed": completed * seconds,
            "rollout": rollout_view(position.iteration, position.step, self.info),
        }
        if completed:
            derived |= {
                "eta": (self.info.num_iterations - completed) * seconds,
                "steps_per_second": self.info.batch_size / seconds,
                "stage_seconds": STAGE_SECONDS,
                "metrics": MappingProxyType(metrics_at(completed - 1)),
                "update": update_view(completed - 1, self.info),
            }
        self._snapshot = replace(after, **{k: v for k, v in derived.items() if k not in changes})
        return self._snapshot
