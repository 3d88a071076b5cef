"""A policy that acts in real time, in a thread of its own; the screen gives it cues.

The thread alone touches the worlds. It replaces a frame after each step and never waits for who
looks at it.
"""

from __future__ import annotations

import math
import queue
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from presets.problems import PresetError
from trainer.pose import RobotPose

if TYPE_CHECKING:
    from trainer.playing import Episode, Player

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, math.inf)
"""Simulated seconds in a second; infinite: as fast as it goes."""

FRAMES_PER_SECOND = 30.0
"""Poses published at most."""

PACE_SPAN = 1.0
"""Seconds over which the true pace is measured."""

STEER_STEPS = 20
"""Presses of a key from the least to the most that a robot was told in training."""

NAP = 0.2
"""Seconds of waiting for a cue at most."""


class Last(NamedTuple):
    """The world's last whole episode."""

    total: float
    seconds: float
    fell: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """What there is to see."""

    seq: int = 0
    """Grows by one with every frame."""
    is_ready: bool = False
    """Whether the worlds are built."""
    pose: RobotPose | None = None
    """None until the worlds are built, and from worlds that have no picture."""
    world: int = 0
    num_worlds: int = 0
    steps: int = 0
    """Steps made in all."""
    seconds: float = 0.0
    """Simulated time, s."""
    reward: float = math.nan
    """Of the last step."""
    total: float = 0.0
    """Sum of the rewards of the running episode."""
    last: Last | None = None
    episodes: int = 0
    """Episodes that ended, in all worlds."""
    falls: int = 0
    """How many of them did not last until the time limit."""
    is_paused: bool = False
    is_steered: bool = False
    """Whether a person tells this world's robot what to do."""
    speed: float = 1.0
    """Simulated seconds in a second, as asked for."""
    pace: float = math.nan
    """The same in truth."""
    failure: str = ""
    """Why it ended, in a sentence; empty while it goes on."""
    traceback: str = ""
    """Where; empty where a person can put it right."""


class Performance:
    """Plays until it is told to stop.

    Args:
        build: makes the player; called in the thread.
    """

    def __init__(self, build: Callable[[], Player]) -> None:
        self._build = build
        self._cues: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="player", daemon=True)
        self._stopped = False
        self._frame = Frame()
        self._player: Player | None = None
        self._world = 0
        self._told: dict[int, list[float]] = {}
        self._last: dict[int, Last] = {}
        self._is_paused = False
        self._speed = SPEEDS.index(1.0)
        self._due = 0.0
        self._times: deque[tuple[float, float]] = deque()
        self._published = 0.0

    # What the screen calls.

    @property
    def frame(self) -> Frame:
        """The newest frame."""
        return self._frame

    def start(self) -> None:
        """Build the worlds and begin."""
        self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """End the thread; returns whether it has ended."""
        self._cues.put(self._stop)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def toggle_pause(self) -> None:
        """Pause, or go on."""
        self._cues.put(self._toggle_pause)

    def step_once(self) -> None:
        """While paused: make one step."""
        self._cues.put(self._step_if_paused)

    def change_speed(self, by: int) -> None:
        """Play faster or slower, by so many of `SPEEDS`."""
        self._cues.put(lambda: self._change_speed(by))

    def turn_to(self, by: int) -> None:
        """Look at another world."""
        self._cues.put(lambda: self._turn_to(by))

    def steer(self, axis: int, by: int) -> None:
        """Change a number that the robot is told, by so many of `STEER_STEPS`."""
        self._cues.put(lambda: self._steer(axis, by))

    def stand(self) -> None:
        """Tell the robot 0, or what is nearest to it."""
        self._cues.put(self._stand)

    def redraw_command(self) -> None:
        """Have the env draw what the robot is told."""
        self._cues.put(self._redraw_command)

    def restart(self) -> None:
        """Begin the world's next episode."""
        self._cues.put(self._restart)

    # The thread.

    def _run(self) -> None:
        try:
            self._player = self._build()
            self._player.hold_commands()
            self._publish()
            self._due = time.monotonic()
            while not self._stopped:
                self._take_cues()
                if not self._is_paused and not self._stopped and time.monotonic() >= self._due:
                    self._step()
        except PresetError as error:
            self._fail("\n".join(error.messages))
        except Exception as error:  # the thread's last chance to say what happened
            trace = "".join(traceback.format_exception(error))
            self._fail(f"{type(error).__name__}: {error}", trace)
        finally:
            if self._player is not None:
                self._player.env.close()

    def _fail(self, why: str, trace: str = "") -> None:
        self._frame = replace(self._frame, seq=self._frame.seq + 1, failure=why, traceback=trace)

    def _take_cues(self) -> None:
        """Do what was asked for, and wait for the next step's time."""
        wait = NAP if self._is_paused else min(max(self._due - time.monotonic(), 0.0), NAP)
        try:
            cue = self._cues.get(timeout=wait) if wait else self._cues.get_nowait()
            while True:
                cue()
                cue = self._cues.get_nowait()
        except queue.Empty:
            return

    def _step(self) -> None:
        player = self._player
        assert player is not None
        for episode in player.step():
            self._count(episode)
        now, dt = time.monotonic(), player.env.step_dt
        self._frame = replace(
            self._frame, steps=self._frame.steps + 1, seconds=self._frame.seconds + dt
        )
        self._measure_pace(now)
        self._due = max(self._due + dt / SPEEDS[self._speed], now - NAP)
        if now - self._published >= 1 / FRAMES_PER_SECOND or self._is_paused:
            self._publish()

    def _count(self, episode: Episode) -> None:
        assert self._player is not None
        seconds = episode.length * self._player.env.step_dt
        self._last[episode.world] = Last(episode.total, seconds, episode.fell)
        self._frame = replace(
            self._frame,
            episodes=self._frame.episodes + 1,
            falls=self._frame.falls + episode.fell,
        )

    def _measure_pace(self, now: float) -> None:
        self._times.append((now, self._frame.seconds))
        while self._times[-1][0] - self._times[0][0] > PACE_SPAN:
            self._times.popleft()

    def _publish(self) -> None:
        player = self._player
        assert player is not None
        self._published = time.monotonic()
        (began, simulated), (ended, reached) = (
            (self._times[0], self._times[-1]) if self._times else ((0.0, 0.0), (0.0, 0.0))
        )
        self._frame = replace(
            self._frame,
            seq=self._frame.seq + 1,
            is_ready=True,
            pose=player.pose(self._world),
            world=self._world,
            num_worlds=player.env.num_envs,
            reward=float(player.rewards[self._world]),
            total=float(player.totals[self._world]),
            last=self._last.get(self._world),
            is_paused=self._is_paused,
            is_steered=self._world in self._told,
            speed=SPEEDS[self._speed],
            pace=(reached - simulated) / (ended - began) if ended > began else math.nan,
        )

    # Cues.

    def _stop(self) -> None:
        self._stopped = True

    def _toggle_pause(self) -> None:
        self._is_paused = not self._is_paused
        self._begin_anew()

    def _step_if_paused(self) -> None:
        if self._is_paused:
            self._step()

    def _change_speed(self, by: int) -> None:
        self._speed = min(max(self._speed + by, 0), len(SPEEDS) - 1)
        self._begin_anew()

    def _turn_to(self, by: int) -> None:
        assert self._player is not None
        self._world = (self._world + by) % self._player.env.num_envs
        self._publish()

    def _steer(self, axis: int, by: int) -> None:
        pose = self._frame.pose
        if self._player is None or pose is None or axis >= len(pose.quantities):
            return
        told = self._told.setdefault(self._world, [entry.told for entry in pose.quantities])
        entry = pose.quantities[axis]
        step = (entry.high - entry.low) / STEER_STEPS
        wanted = (round(told[axis] / step) + by) * step if step else told[axis]
        told[axis] = min(max(wanted, entry.low), entry.high)
        self._tell(told)

    def _stand(self) -> None:
        pose = self._frame.pose
        if self._player is not None and pose is not None and pose.quantities:
            told = [min(max(0.0, entry.low), entry.high) for entry in pose.quantities]
            self._told[self._world] = told
            self._tell(told)

    def _tell(self, told: list[float]) -> None:
        assert self._player is not None
        self._player.steer(self._world, told)
        self._publish()

    def _redraw_command(self) -> None:
        if self._player is not None:
            self._told.pop(self._world, None)
            self._player.redraw_commands(self._world)
            self._publish()

    def _restart(self) -> None:
        if self._player is not None:
            self._player.restart(self._world)
            if self._is_paused:
                self._step()

    def _begin_anew(self) -> None:
        """Forget how late it is."""
        self._due = time.monotonic()
        self._times.clear()
        if self._player is not None:
            self._publish()
