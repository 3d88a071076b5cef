"""Contact forces and the counting of air time."""

import mujoco
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.contacts import Contacts
from sim.physics.cpu import CpuPhysics

BALL = """
<mujoco>
  <option timestep="{dt}"/>
  <worldbody>
    <geom type="plane" size="0 0 1"/>
    <body name="ball" pos="0 0 {height}"><freejoint/><geom size="0.1" mass="2"/></body>
  </worldbody>
  <sensor><contact name="ball" body1="ball" data="force" reduce="netforce" num="1"/></sensor>
</mujoco>
"""


def contacts(dt=0.02, height=1.0, num_worlds=1, history=3):
    model = mujoco.MjModel.from_xml_string(BALL.format(dt=dt, height=height))
    physics = CpuPhysics(model, num_worlds, num_threads=1)
    return Contacts(physics, history), physics


def count(sensor, *pattern):
    for held in pattern:
        sensor.count(torch.full((1, 1), bool(held)))


def test_a_body_at_rest_receives_its_weight_upwards():
    sensor, physics = contacts(dt=0.002, height=0.1)
    for _ in range(500):
        physics.tick(last=False)
    sensor.record()
    sensor.update()
    force = sensor.net_forces_history[0, 0, 0]
    torch.testing.assert_close(force, torch.tensor([0.0, 0.0, 2 * 9.81]), atol=0.02, rtol=0)


def test_history_is_newest_first_and_the_threshold_tells_contact():
    sensor, physics = contacts()
    for newton in (-5.0, -0.9, -1.1):  # exerted; received is the opposite
        physics.sensordata[0, 2] = newton
        sensor.record()
        sensor.update()
    assert sensor.net_forces_history.shape == (1, 3, 1, 3)
    assert sensor.net_forces_history[0, :, 0, 2].tolist() == pytest.approx([1.1, 0.9, 5.0])
    assert sensor.contact_ticks.item() == 1


def test_one_landing_pays_once_and_for_exactly_the_ticks_in_the_air():
    # 2 ticks of contact, 30 in the air, 3 of contact, at 0.02 s
    sensor, _ = contacts(dt=0.02)
    paid = []
    for held in [1] * 2 + [0] * 30 + [1] * 3:
        count(sensor, held)
        paid.append(((sensor.last_air_time - 0.5) * sensor.first_contact(1)).item())
    assert [i for i, value in enumerate(paid) if value] == [32]
    assert paid[32] == pytest.approx(0.1)


def test_no_touch_down_is_missed_however_long_the_simulation_runs():
    sensor, _ = contacts(dt=0.005)
    for start in (0.0, 16.0, 100.0, 1000.0):
        sensor.air_ticks[:] = 0
        sensor.contact_ticks[:] = round(start / 0.005)
        seen = 0
        for _ in range(2000):
            count(sensor, 0, 0, 0, 0)  # a step in the air
            count(sensor, 1, 1, 1, 1)  # touch-down on the first tick of the next
            seen += int(sensor.first_contact(4).item())
        assert seen == 2000


@pytest.mark.parametrize(
    ("ticks", "expected"),
    [([1, 1, 1, 1], True), ([0, 0, 0, 1], True), ([1, 1, 1, 0], False), ([0, 0, 0, 0], False)],
)
def test_first_contact_must_begin_in_the_step_and_still_hold(ticks, expected):
    sensor, _ = contacts()
    count(sensor, 1, 0, 0, *ticks)
    assert sensor.first_contact(4).item() is expected


def test_a_contact_older_than_the_step_is_not_first():
    sensor, _ = contacts()
    count(sensor, 0, 1, 1, 1, 1, 1)
    assert not sensor.first_contact(4).item()


def test_a_body_that_starts_on_the_ground_did_not_touch_down():
    sensor, _ = contacts()
    count(sensor, 1)
    assert not sensor.first_contact(4).item()
    count(sensor, 0, 0, 1)
    assert sensor.first_contact(4).item()
    assert sensor.last_air_ticks.item() == 2


def test_a_contact_within_one_tick_of_a_step_is_in_the_history_at_its_end():
    for tick in range(4):
        sensor, physics = contacts(history=4)
        for k in range(4):
            physics.sensordata[0, 2] = -50.0 if k == tick else 0.0
            sensor.record()
        assert sensor.net_forces_history.norm(dim=-1).amax() == 50


@settings(deadline=None)
@given(
    pattern=st.lists(st.booleans(), min_size=1, max_size=30),
    updates=st.sets(st.integers(0, 29)),
)
def test_times_do_not_depend_on_how_many_ticks_an_update_takes_in(pattern, updates):
    (every_tick, one), (now_and_then, two) = contacts(), contacts()
    for tick, held in enumerate(pattern):
        for sensor, physics in ((every_tick, one), (now_and_then, two)):
            physics.sensordata[0, 2] = -5.0 * held
            sensor.record()
            if sensor is every_tick or tick in updates:
                sensor.update()
    now_and_then.update()
    for name, value in every_tick.state_dict().items():
        assert torch.equal(value, now_and_then.state_dict()[name]), name


def test_reset_zeroes_its_worlds_alone():
    sensor, physics = contacts(num_worlds=3)
    for newton in (-5.0, 0.0, -5.0, 0.0):
        physics.sensordata[:, 2] = newton
        sensor.record()
        sensor.update()
    before = {name: value.clone() for name, value in sensor.state_dict().items()}
    sensor.reset(torch.tensor([1]))
    for name, value in sensor.state_dict().items():
        world = 1 if name == "history" else 0
        others = torch.tensor([0, 2])
        assert not value.select(world, 1).any()
        assert torch.equal(
            value.index_select(world, others), before[name].index_select(world, others)
        )
    assert sensor.current_air_time.tolist() == [[pytest.approx(0.02)], [0], [pytest.approx(0.02)]]
    assert sensor.last_air_time[0].item() == pytest.approx(0.02)
    assert sensor.current_contact_time.sum() == 0
