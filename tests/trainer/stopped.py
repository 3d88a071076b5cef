"""A trainer on the toy env that is stopped behind any stage, as a pause would."""

from tests.trainer.toy_env import ToyEnv
from trainer.config import ActorConfig, CriticConfig, TrainerConfig
from trainer.loop import Trainer
from trainer.stages import StopRequested

SMALL = TrainerConfig(
    seed=7,
    num_iterations=100,
    num_steps_per_env=4,
    num_mini_batches=2,
    num_learning_epochs=2,
    actor=ActorConfig(hidden_dims=(8,)),
    critic=CriticConfig(hidden_dims=(8,)),
)


def different(**changes):
    """The small settings with some replaced."""
    return SMALL.model_copy(update=changes)


class Hooks:
    """A watcher that calls functions at every boundary, and may stop the loop there."""

    def __init__(self):
        self.entering_hooks = []
        self.leaving_hooks = []
        self.stop_at = None

    def entering(self, position):
        for hook in self.entering_hooks:
            hook(position)

    def leaving(self, position, *, phase_ends):
        for hook in self.leaving_hooks:
            hook(position)
        if self.stop_at == position:
            raise StopRequested


def small_trainer(config=SMALL, env=None):
    """A trainer with hooks as its watcher."""
    return Trainer(env or ToyEnv(num_envs=8, max_episode_length=3), config, Hooks())


def stopped_behind(position, config=SMALL, env=None):
    """Run a trainer until it is behind a stage."""
    trainer = small_trainer(config, env)
    trainer.watcher.stop_at = position
    try:
        while trainer.completed_iterations <= position.iteration:
            trainer.iterate()
    except StopRequested:
        return trainer
    raise AssertionError(f"never came to {position}")
