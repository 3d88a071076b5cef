"""Room for contacts and constraints, which MuJoCo Warp allocates once for all worlds."""

from __future__ import annotations

from typing import NamedTuple

import mujoco

CONTACTS_OF_PAIR = {
    ("PLANE", "SPHERE"): 1,
    ("PLANE", "CAPSULE"): 2,
    ("SPHERE", "SPHERE"): 1,
    ("SPHERE", "CAPSULE"): 1,
    ("SPHERE", "CYLINDER"): 1,
    ("SPHERE", "BOX"): 1,
    ("CAPSULE", "CAPSULE"): 2,
    ("CAPSULE", "BOX"): 2,
    ("BOX", "BOX"): 8,
}
"""Most contacts that a pair of shapes makes; other pairs make up to `CONTACTS_OF_OTHERS`."""
CONTACTS_OF_OTHERS = 4
MAX_CONTACTS = 64
"""Contacts a world that room is made for at first, however many the shapes could make."""
ROOM_STEP = 8
"""Room is handed out in steps of so many."""


class Capacity(NamedTuple):
    """Room a world."""

    contacts: int
    """Contacts, and pairs of shapes that may be touching. Worlds share theirs."""
    constraints: int
    """Rows of the constraint solver; each world has its own."""

    def grown_to(self, contacts: int, constraints: int) -> Capacity:
        """Room for at least so many: what is too small is at least doubled."""
        return Capacity(_grown(self.contacts, contacts), _grown(self.constraints, constraints))


def initial_capacity(model: mujoco.MjModel) -> Capacity:
    """Room for all that the model's shapes can do at once, but `MAX_CONTACTS` at most.

    Robots of primitive shapes on a plane can never exceed it. On a height field, where a shape can
    touch a dozen cells, they can, but only by lying on rough ground all together.
    """
    pairs = colliding_pairs(model)
    contacts = sum(_contacts_of(model, *pair) for pair in pairs)
    contacts = _rounded(max(min(contacts, MAX_CONTACTS), len(pairs), 1))
    return Capacity(contacts, _rounded(contacts * _rows_of_contact(model) + _other_rows(model)))


def colliding_pairs(model: mujoco.MjModel) -> list[tuple[int, int]]:
    """Pairs of geoms that may collide: by their bits, and neither fixed to one another nor kin."""
    exclude = {tuple(sorted((s >> 16, s & 0xFFFF))) for s in model.exclude_signature.tolist()}
    parents = not model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT
    weld, parent = model.body_weldid, model.body_parentid
    found = []
    for a in range(model.ngeom):
        for b in range(a + 1, model.ngeom):
            bodies = int(model.geom_bodyid[a]), int(model.geom_bodyid[b])
            welds = [int(weld[body]) for body in bodies]
            above = [int(weld[parent[w]]) for w in welds]
            kin = parents and all(welds) and (welds[0] == above[1] or welds[1] == above[0])
            bits = (
                model.geom_contype[a] & model.geom_conaffinity[b]
                or model.geom_contype[b] & model.geom_conaffinity[a]
            )
            if bits and welds[0] != welds[1] and not kin and tuple(sorted(bodies)) not in exclude:
                found.append((a, b))
    explicit = zip(model.pair_geom1.tolist(), model.pair_geom2.tolist(), strict=True)
    return found + list(explicit)


def _contacts_of(model: mujoco.MjModel, a: int, b: int) -> int:
    first, second = sorted((int(model.geom_type[a]), int(model.geom_type[b])))
    names = tuple(mujoco.mjtGeom(kind).name.removeprefix("mjGEOM_") for kind in (first, second))
    return CONTACTS_OF_PAIR.get((names[0], names[1]), CONTACTS_OF_OTHERS)


def _rows_of_contact(model: mujoco.MjModel) -> int:
    """Most rows of one contact: a pyramid has two an axis of friction, an elliptic cone one."""
    dims: int = max([1, *model.geom_condim.tolist(), *model.pair_dim.tolist()])
    pyramidal = model.opt.cone == mujoco.mjtCone.mjCONE_PYRAMIDAL
    return 2 * (dims - 1) if pyramidal and dims > 1 else dims


def _other_rows(model: mujoco.MjModel) -> int:
    """Rows of limits (both sides of a joint cannot be met), dry friction and equalities."""
    limits = int((model.jnt_limited > 0).sum() + (model.tendon_limited > 0).sum())
    friction = int((model.dof_frictionloss > 0).sum() + (model.tendon_frictionloss > 0).sum())
    return limits + friction + 6 * int(model.neq)


def _rounded(number: int) -> int:
    return -(-number // ROOM_STEP) * ROOM_STEP


def _grown(room: int, needed: int) -> int:
    return room if needed <= room else _rounded(max(needed, 2 * room))
