"""Poses for the tests of drawings, from no world at all."""

from dataclasses import replace

import numpy as np

from trainer.pose import Quantity, RobotPose

NOTHING = np.zeros((0, 2, 3), np.float32)


def array(*values):
    return np.array(values, np.float32)


def walker(**changes):
    """A box of 0.4 m on one leg at (2, 1), its foot on flat ground; it looks along x."""
    pose = RobotPose(
        world=3,
        seconds=5.2,
        limit=20.0,
        place="",
        position=array(2.0, 1.0, 0.3),
        heading=0.0,
        tilt=0.05,
        is_fixed=False,
        view=array((-0.5, -0.4, -0.1), (0.5, 0.4, 0.5)),
        lines=array(((1.8, 0.9, 0.3), (2.2, 0.9, 0.3)), ((2.0, 0.9, 0.3), (2.0, 0.9, 0.02))),
        balls=array((2.0, 0.9, 0.02, 0.02)),
        scenery=NOTHING,
        contact_names=("FL_foot",),
        contact_points=array((2.0, 0.9, 0.02)),
        contacts=np.array([True]),
        touching=(),
        floor=0.0,
        ground=None,
        ground_step=0.1,
        quantities=(
            Quantity("forward", "m/s", 0.8, 0.75, -1.0, 1.0),
            Quantity("left", "m/s", 0.0, -0.001, -1.0, 1.0),
            Quantity("turn", "rad/s", -0.5, -0.4, -1.0, 1.0),
        ),
        velocity=array(0.75, -0.001, -0.4),
        told_velocity=array(0.8, 0.0, -0.5),
        target=None,
    )
    return replace(pose, **changes)


def arm(**changes):
    """A rod that stands at the origin and is told to go to (0.3, 0, 0.2)."""
    target = array((0.3, 0.0, 0.2), (0.4, 0.0, 0.2), (0.3, 0.1, 0.2), (0.3, 0.0, 0.1))
    fixed = {
        "is_fixed": True,
        "position": array(0.0, 0.0, 0.0),
        "lines": array(((0.0, 0.0, 0.0), (0.0, 0.0, 0.4))),
        "balls": np.zeros((0, 4), np.float32),
        "contact_names": (),
        "contact_points": np.zeros((0, 3), np.float32),
        "contacts": np.zeros(0, bool),
        "floor": None,
        "quantities": (Quantity("ahead", "m", 0.3, 0.0, 0.2, 0.4),),
        "told_velocity": None,
        "target": target,
    }
    return walker(**{**fixed, **changes})


def beam(**changes):
    """A rod without any goal."""
    return arm(quantities=(), target=None, **changes)
