"""What all settings are made of: a base class, and numbers within limits."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
FiniteFloat = Annotated[float, Field(allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]
UnitInterval = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
PositiveInt = Annotated[int, Field(ge=1)]
Range = tuple[FiniteFloat, FiniteFloat]


def _in_order(limits: tuple[float, float]) -> tuple[float, float]:
    if limits[0] > limits[1]:
        raise ValueError(f"{list(limits)} is not in order: low, high")
    return limits


RisingRange = Annotated[tuple[NonNegativeFloat, NonNegativeFloat], AfterValidator(_in_order)]
"""Two numbers of at least 0, low and high."""


class Settings(BaseModel):
    """Base of all settings: frozen, no unknown key, docstrings under the fields feed the help."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
