"""The command `import`, from a checkpoint to a run that goes on."""

import json

import pytest
import torch
from typer.testing import CliRunner

import presets.build
from presets.loader import load
from tests.presets.tiny import TINY, write
from trainer import checkpoint, rsl_rl
from trainer.policy import Actor, Critic
from trainer.update import Learner
from tui import cli


@pytest.fixture(autouse=True)
def _a_folder_with_a_tiny_preset_and_a_checkpoint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(presets.build, "_has_driver", lambda: False)
    write(tmp_path, tiny=TINY)
    config = load("tiny").preset.trainer
    torch.manual_seed(0)
    actor, critic = Actor(config.actor, 4, 1), Critic(config.critic, 4)
    learner = Learner(config, actor, critic)
    for parameter in (*actor.parameters(), *critic.parameters()):
        parameter.grad = torch.ones_like(parameter)
    learner.optimizer.step()
    state = {"actor": actor.state_dict(), "critic": critic.state_dict()}
    state |= {"optimizer": learner.state_dict(), "completed_iterations": 3}
    rsl_rl.write(tmp_path / "model_2.pt", state)


def call(*args):
    return CliRunner().invoke(cli.app, list(args), prog_name="ppo-tui")


def test_an_imported_run_goes_on(tmp_path):
    made = call("import", "model_2.pt", "--preset", "tiny", "--run-dir", "run", "--device", "cpu")
    assert made.exit_code == 0, made.output
    assert made.stdout.startswith("run: a run of tiny after 3 iterations\nnote: ")
    assert "go on with it: ppo-tui run tiny --resume run\n" in made.stdout

    gone_on = call("run", "tiny", "--headless", "--resume", "run", "--device", "cpu")
    assert gone_on.exit_code == 0, gone_on.output
    rows = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").open()]
    assert [row["iteration"] for row in rows] == [4]
    state = checkpoint.load(tmp_path / "run/checkpoints/model_4.pt")
    assert state["completed_iterations"] == 4
    moved = state["optimizer"]["state"][0]["step"]
    assert moved.item() == 1 + 5 * 4  # the step that was imported, and an iteration's


def test_a_run_that_is_done_says_how_to_go_on(tmp_path):
    made = call("import", "model_2.pt", "--preset", "tiny", "--set", "trainer.num_iterations=3")
    assert made.exit_code == 0, made.output
    (folder,) = (tmp_path / "runs/tiny").iterdir()
    assert f"--resume {folder.relative_to(tmp_path)} --iterations 6\n" in made.stdout


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["model_3.pt", "--preset", "tiny"], "model_3.pt: no such checkpoint"),
        (["model_2.pt", "--preset", "tini"], 'no preset "tini"; did you mean tiny?'),
        (
            ["model_2.pt", "--preset", "tiny", "--set", "trainer.actor.hidden_dims=[9]"],
            "import with --set trainer.actor.hidden_dims=[8]",
        ),
        (["presets/tiny.toml", "--preset", "tiny"], "not readable as a checkpoint"),
        (["presets", "--preset", "tiny"], "presets: "),
        (["model_2.pt", "--preset", "tiny", "--run-dir", "presets"], "holds 'tiny.toml' already"),
        (["model_2.pt", "--preset", "tiny", "--name", "a/b"], "--name a/b: must be"),
        (["model_2.pt"], "--preset"),
    ],
)
def test_bad_input_is_a_sentence_and_leaves_nothing(args, told, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    refused = call("import", *args)
    assert refused.exit_code == 2
    assert told in refused.output
    assert "Traceback" not in refused.output
    assert sorted(tmp_path.rglob("*")) == before
