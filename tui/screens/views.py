"""Which panels stand in which view of the dashboard; the style sheet says where and how large."""

from __future__ import annotations

from textual.containers import Container
from textual.widget import Widget

from tui.draw.lens import Lens
from tui.panels import (
    AllMetricsPanel,
    CurriculumPanel,
    CurvePanel,
    EpisodeLengthPanel,
    EventsPanel,
    HealthPanel,
    LearningRatePanel,
    LengthHistogramPanel,
    MetricsPanel,
    RatioPanel,
    ReturnHistogramPanel,
    RewardTermsPanel,
    RolloutPanel,
    SystemPanel,
    TerminationsPanel,
    TimingPanel,
)


def panel_views(lens: Lens) -> list[Widget]:
    """Make the views that hold nothing but panels, named by their ids.

    Args:
        lens: how all of their charts are looked at.
    """
    return [
        Container(
            RolloutPanel(id="overview-rollout"),
            CurvePanel(lens=lens, id="overview-curve"),
            LearningRatePanel(lens=lens, id="overview-rate"),
            RatioPanel(id="overview-ratio"),
            HealthPanel(id="overview-health"),
            RewardTermsPanel(id="overview-rewards"),
            TerminationsPanel(id="overview-terminations"),
            EpisodeLengthPanel(lens=lens, id="overview-length"),
            TimingPanel(id="overview-timing"),
            MetricsPanel(id="overview-metrics"),
            EventsPanel(id="overview-events"),
            id="overview",
        ),
        Container(
            RolloutPanel(id="rollout-panel"),
            TerminationsPanel(id="rollout-terminations"),
            ReturnHistogramPanel(id="rollout-returns"),
            LengthHistogramPanel(id="rollout-lengths"),
            id="rollout",
        ),
        Container(
            LearningRatePanel(lens=lens, id="update-rate"),
            RatioPanel(id="update-ratio"),
            HealthPanel(id="update-health"),
            CurvePanel("Loss/explained_variance", lens=lens, id="update-variance"),
            CurvePanel("Loss/entropy", lens=lens, id="update-entropy"),
            id="update",
        ),
        Container(
            RewardTermsPanel(id="rewards-terms"),
            CurvePanel(lens=lens, id="rewards-curve"),
            EpisodeLengthPanel(lens=lens, id="rewards-length"),
            id="rewards",
        ),
        Container(
            CurriculumPanel(id="curriculum-levels"),
            MetricsPanel(id="curriculum-metrics"),
            TerminationsPanel(id="curriculum-terminations"),
            id="curriculum",
        ),
        Container(
            TimingPanel(id="timing-panel"),
            SystemPanel(id="timing-system"),
            CurvePanel("Perf/total_fps", lens=lens, id="timing-rate"),
            CurvePanel("Perf/collection_time", lens=lens, id="timing-collect"),
            CurvePanel("Perf/learning_time", lens=lens, id="timing-learn"),
            id="timing",
        ),
        Container(
            AllMetricsPanel(id="curve-metrics"),
            CurvePanel(lens=lens, id="curve-chart"),
            id="curve",
        ),
        Container(
            ReturnHistogramPanel(id="episodes-returns"),
            LengthHistogramPanel(id="episodes-lengths"),
            CurvePanel(lens=lens, id="episodes-curve"),
            EpisodeLengthPanel(lens=lens, id="episodes-length"),
            TerminationsPanel(id="episodes-terminations"),
            id="episodes",
        ),
    ]
