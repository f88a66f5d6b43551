"""How students differ from their teachers, and how they are guided. No jax is imported here."""

from typing import Literal, get_args

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from jaxpu.settings import STRICT, AlphaSchedule, Count, PositiveInt

Mixing = Literal["mixup", "regmixup", "cutmix"]
StudentFilter = Literal["whole", "low", "high", "random"]

FILTERS = get_args(StudentFilter)
"""Which pairs enter the loss: all, those with r̂ ≤ 0, those with r̂ > 0, and as many as ``low`` keeps, whichever."""


@dataclass(frozen=True, config=STRICT)
class StudentConfig:
    """What students do otherwise than their teachers.

    Attributes:
        mixing: ``mixup``, ``cutmix`` (of images), or ``regmixup``: mixup's loss beside that of the rows as they are.
        alpha: of λ ~ Beta(α, α); None = as in ``training``. alpha_schedule: over the epochs; None = as in ``training``.
    """

    mixing: Mixing = "mixup"
    alpha: float | None = Field(default=None, ge=0)
    alpha_schedule: AlphaSchedule | None = None


@dataclass(frozen=True, config=STRICT)
class GuideConfig:
    """How a teacher guides.

    Attributes:
        draws: every row of a batch is paired so many times, and of the pairs that the filter keeps the first
            ``training.batch_size`` enter. With 1 a filter that keeps half of the pairs makes updates of half as many;
            with enough of them each update has a full batch, as many updates and as many pairs for every filter.
        mean: what the sum over the pairs that enter is divided by: their number (``kept``), so that every update is a
            full step, or the size of the batch (``batch``), so that few pairs move the network little.
        warmup: share of the epochs before the filter is put in. until: share of the epochs after which it is taken out.
        refresh: the teacher is replaced by the student, as it then is, every so many epochs; 0 = never.
    """

    draws: PositiveInt = 1
    mean: Literal["kept", "batch"] = "kept"
    warmup: float = Field(default=0.0, ge=0, lt=1)
    until: float = Field(default=1.0, gt=0, le=1)
    refresh: Count = 0

    @model_validator(mode="after")
    def _guides_at_some_time(self) -> "GuideConfig":
        if self.draws > 1 and self.mean == "batch":
            raise ValueError("mean: batch has little effect where draws fill the batch; leave one of them out")
        if not self.warmup < self.until:
            raise ValueError(f"warmup is {self.warmup} and until {self.until}: expected warmup below until")
        return self
