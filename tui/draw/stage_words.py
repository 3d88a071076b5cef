"""The seven stages in words and formulas, and the tick of what has been checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from trainer.stages import Stage
from trainer.trace import Verdict
from tui.draw.spans import Charset, Role, Span


class StageWords(NamedTuple):
    """What a stage takes, does and gives."""

    input: str
    transform: str
    output: str
    formula: str


IN_SHORT: Mapping[Stage, str] = {
    Stage.OBSERVE: "state becomes obs [N, O]",
    Stage.ACT_STEP: "actions [N, A], then physics",
    Stage.STORE: "row t of the rollout [T, N]",
    Stage.TARGETS: "advantages and returns (GAE)",
    Stage.SAMPLE: "B = T N shuffled, cut into M",
    Stage.OPTIMIZE: "losses; a step for every M",
    Stage.FRESH: "t = 0; weights stay",
}
"""What each stage does, in a few words."""

WORDS: Mapping[Stage, StageWords] = {
    Stage.OBSERVE: StageWords(
        "the worlds' state and their commands",
        "every term for all worlds at once: compute, noise, clip, scale; terms are joined",
        "observation groups [N, O_g]; row n belongs to world n",
        "obs_t[n] = (term 1, ..., term k)[n]",
    ),
    Stage.ACT_STEP: StageWords(
        "obs_t [N, O_g]",
        "actor and critic once for all rows, kept aside; then the worlds move, finished ones reset",
        "action, μ, σ [N, A], log π, V [N, 1]; reward, terminated, time_out [N]",
        "a = μ + σ z, z ~ N(0, 1)     log π(a) = Σ -z²/2 - ln σ - ln(2π)/2",
    ),
    Stage.STORE: StageWords(
        "the record kept aside, and the worlds' answer",
        "a time-out adds γ V_t to its reward; all fields are copied into row t",
        "row t of [T, N, ...]; cursor t → t + 1. No next observation is kept",
        "r_t ← r_t + γ V_t [time_out]     done_t = terminated or time_out",
    ),
    Stage.TARGETS: StageWords(
        "the full rollout, and V(obs_T) [N, 1]",
        "one scan backward from T - 1 to 0; a done cuts what flows back",
        "advantages A and returns R [T, N, 1]; A is normalised, R never",
        "δ_t = r_t + γ(1-d_t)V_t+1 - V_t     A_t = δ_t + γλ(1-d_t)A_t+1     R_t = A_t + V_t",
    ),
    Stage.SAMPLE: StageWords(
        "fields [T, N, ...]",
        "flattened to B = T N rows; one permutation, cut into equal mini-batches",
        "the rows of each mini-batch [M], the same ones in every epoch",
        "row = t N + n     mini-batch k reads perm[k M : (k + 1) M]",
    ),
    Stage.OPTIMIZE: StageWords(
        "one mini-batch: stored actions, old log π, V, μ, σ, and targets",
        "both networks score it anew; loss, backward, norms clipped, one optimizer step",
        "θ → θ', φ → φ'; the KL moves the rate and ends no epoch",
        "r = exp(log π - log π_old)     L = -min(r A, clip(r) A) + c_v L_v - c_e H",
    ),
    Stage.FRESH: StageWords(
        "the updated networks and the used rollout",
        "normalisers take the rollout in; the cursor goes back to 0",
        "an empty rollout; weights, obs_T, running episodes and memory stay",
        "t ← 0",
    ),
}
"""In the program's own terms; letters are those of the symbolic shapes."""


def tick(verdict: Verdict, charset: Charset) -> Span:
    """One cell that says what is known of an invariant, by its shape and its colour."""
    shapes = {
        Charset.BRAILLE: "✓✗·",
        Charset.BLOCK: "√x·",
        Charset.ASCII: "+!.",
    }[charset]
    order = (Verdict.HOLDS, Verdict.BROKEN, Verdict.UNCHECKED)
    roles = (Role.SUCCESS, Role.ERROR, Role.MUTED)
    at = order.index(verdict)
    return Span(shapes[at], roles[at])
