import torch

from tests.trainer.toy_env import ToyEnv
from trainer.env import Feedback
from trainer.playing import Player, play_episodes


class Still:
    """A policy that does nothing, and keeps a record of resets."""

    def __init__(self):
        self.resets = []

    def __call__(self, observations):
        return torch.zeros(len(observations["policy"]), 1)

    def reset(self, done):
        self.resets.append(done.tolist())


class Clockwork(ToyEnv):
    """World k falls after k + 2 steps, the last one never; each step pays its world's number."""

    def step(self, actions):
        self.episode_length += 1
        worlds = torch.arange(self.num_envs)
        fell = (self.episode_length == worlds + 2) & (worlds < self.num_envs - 1)
        late = (self.episode_length >= self.max_episode_length) & ~fell
        self.episode_length[fell | late] = 0
        return Feedback(worlds.float(), fell, late, {})

    def episode_metrics(self):
        return {"age": self.episode_length.float()}


def test_an_episode_is_its_rewards_and_steps_up_to_its_end():
    policy = Still()
    player = Player(Clockwork(3, max_episode_length=5), policy)
    assert player.step() == []
    (first,) = player.step()
    assert (first.world, first.total, first.length, first.fell) == (0, 0.0, 2, True)
    (second,) = player.step()
    assert (second.world, second.total, second.length) == (1, 3.0, 3)
    player.step()
    (last,) = [episode for episode in player.step() if episode.world == 2]
    assert (last.total, last.length, last.fell) == (10.0, 5, False)
    assert policy.resets[0] == [True, False, False]


def test_metrics_are_those_before_the_world_was_reset():
    player = Player(Clockwork(2, max_episode_length=5), Still())
    player.step()
    (first,) = player.step()
    assert first.metrics == {"age": 1.0}


def test_short_episodes_are_not_counted_more_often_than_long_ones():
    env = Clockwork(4, max_episode_length=40)
    episodes = play_episodes(Player(env, Still()), 6)
    assert [episode.world for episode in episodes] == [0, 0, 1, 1, 2, 3]
    assert [episode.length for episode in episodes] == [2, 2, 3, 3, 4, 40]


def test_an_env_without_pictures_and_steering_can_be_played_all_the_same():
    player = Player(ToyEnv(2), Still())
    assert player.pose(0) is None
    player.hold_commands()
    player.steer(0, (1.0,))
    player.redraw_commands(0)
    player.step()


def test_a_restarted_world_begins_anew_with_the_next_step():
    env = ToyEnv(2, max_episode_length=50)
    player = Player(env, Still())
    player.step()
    player.restart(1)
    (ended,) = player.step()
    assert (ended.world, ended.length, ended.fell) == (1, 2, False)
    assert env.episode_length.tolist() == [2, 0]


def test_what_a_person_tells_a_robot_outlasts_its_episode():
    class Told(ToyEnv):
        def __init__(self):
            super().__init__(2, max_episode_length=3)
            self.told = {}

        def hold_commands(self):
            self.told["held"] = True

        def steer(self, world, values):
            self.told[world] = values

        def redraw_commands(self, world):
            self.told[world] = "redrawn"

    env = Told()
    player = Player(env, Still())
    player.hold_commands()
    player.steer(1, [0.5])
    env.told[1] = "lost in a reset"
    player.step()
    assert env.told == {"held": True, 1: (0.5,)}
    player.redraw_commands(1)
    player.step()
    assert env.told[1] == "redrawn"
