"""What all groups of settings share: how strict they are, and types of numbers."""

from typing import Annotated

from pydantic import ConfigDict, Field

STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
"""Nothing unknown, no infinity and no NaN."""

PositiveInt = Annotated[int, Field(strict=True, ge=1)]
Share = Annotated[float, Field(gt=0, lt=1)]
