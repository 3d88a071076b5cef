import torch

from trainer.episodes import WINDOW, EpisodeStatistics

CPU = torch.device("cpu")


def test_nothing_is_reported_before_an_episode_has_ended():
    episodes = EpisodeStatistics(2, CPU)
    episodes.add(torch.ones(2), torch.tensor([False, False]))
    assert episodes.metrics() == {}


def test_returns_and_lengths_are_those_of_finished_episodes():
    episodes = EpisodeStatistics(2, CPU)
    for step in range(4):
        episodes.add(torch.tensor([1.0, 2.0]), torch.tensor([step == 1, step == 3]))
    # World 0: an episode of 2 steps worth 2; world 1: one of 4 steps worth 8.
    assert episodes.metrics() == {"Train/mean_reward": 5.0, "Train/mean_episode_length": 3.0}


def test_only_the_last_hundred_episodes_count_even_if_more_end_at_once():
    episodes = EpisodeStatistics(250, CPU)
    episodes.add(torch.arange(250.0), torch.ones(250, dtype=torch.bool))
    assert episodes.metrics()["Train/mean_reward"] == sum(range(150, 250)) / WINDOW
    episodes.add(torch.zeros(250), torch.arange(250) < 50)
    assert episodes.metrics()["Train/mean_reward"] == sum(range(200, 250)) / WINDOW


def test_the_state_continues_exactly():
    first, second = EpisodeStatistics(3, CPU), EpisodeStatistics(3, CPU)
    first.add(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, False]))
    second.load_state_dict(first.state_dict())
    for episodes in (first, second):
        episodes.add(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, True, False]))
    assert first.metrics() == second.metrics()
