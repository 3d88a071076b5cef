"""Panels: widgets that draw one part of a session each, from its snapshots."""

from tui.panels.base import Panel, ScrollingPanel
from tui.panels.curriculum import CurriculumPanel
from tui.panels.curves import AllMetricsPanel, CurvePanel, EpisodeLengthPanel
from tui.panels.episodes import LengthHistogramPanel, ReturnHistogramPanel
from tui.panels.events import EventsPanel
from tui.panels.header import Header
from tui.panels.health import HealthPanel
from tui.panels.learning_rate import LearningRatePanel
from tui.panels.metrics import MetricsPanel, TerminationsPanel
from tui.panels.notes import NotesPanel
from tui.panels.ratio import RatioPanel
from tui.panels.reward_terms import RewardTermsPanel
from tui.panels.robot import RobotPanel
from tui.panels.rollout import RolloutPanel
from tui.panels.stage_strip import StageStrip
from tui.panels.system import SystemPanel
from tui.panels.tag_table import TagTable
from tui.panels.tensor_large import TensorLarge
from tui.panels.tensors import TensorTable
from tui.panels.timing import TimingPanel
from tui.panels.trace import NumbersPanel, StageCard

__all__ = [
    "AllMetricsPanel",
    "CurriculumPanel",
    "CurvePanel",
    "EpisodeLengthPanel",
    "EventsPanel",
    "Header",
    "HealthPanel",
    "LearningRatePanel",
    "LengthHistogramPanel",
    "MetricsPanel",
    "NotesPanel",
    "NumbersPanel",
    "Panel",
    "RatioPanel",
    "ReturnHistogramPanel",
    "RewardTermsPanel",
    "RobotPanel",
    "RolloutPanel",
    "ScrollingPanel",
    "StageCard",
    "StageStrip",
    "SystemPanel",
    "TagTable",
    "TensorLarge",
    "TensorTable",
    "TerminationsPanel",
    "TimingPanel",
]
