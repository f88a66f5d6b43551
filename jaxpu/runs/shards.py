"""An experiment in several processes that share nothing but a folder, and their results as one process leaves them.

    DIR/shards/0-of-4/  1-of-4/ ...   each the results folder of its share of the seeds, made by ``--shard i/n``
    DIR/                              what one process would have left there, made by ``jaxpu gather``

Seeds are dealt out in turn: with more seeds later every shard keeps those that it has. Runs that others need, teachers
say, are in every shard that needs them. Programs are those of the whole experiment, whatever share of it a process has.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxpu.config import ConfigError
from jaxpu.errors import shown
from jaxpu.runs.job import Job, Kind, Run


@dataclasses.dataclass(frozen=True, order=True)
class Shard:
    """Share ``index``, from 0, of ``of`` equal ones.

    Raises:
        ConfigError: there is no such share.
    """

    index: int
    of: int

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.of:
            last = f", so the last of {self.of} is {self.of - 1}/{self.of}" if self.of else ""
            raise ConfigError(f"shard {self}: expected 0 <= i < n{last}")

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"

    @classmethod
    def parse(cls, text: "str | Shard", what: str = "shard") -> "Shard":
        """From "i/n"; ``what`` is said where it is none.

        Raises:
            ConfigError: it is not of this form, or there is no such share.

        >>> Shard.parse("3/10")
        Shard(index=3, of=10)
        """
        if isinstance(text, Shard):
            return text
        index, _, of = text.partition("/")
        if not (index.isdecimal() and of.isdecimal() and text.isascii()):
            raise ConfigError(f"expected a {what} as i/n, for example 0/10 to 9/10, got {shown(text)}")
        return cls(int(index), int(of))

    def below(self, home: Path) -> Path:
        """Where this shard writes.

        >>> Shard(0, 4).below(Path("results/quick")).as_posix()
        'results/quick/shards/0-of-4'
        """
        return home / "shards" / f"{self.index}-of-{self.of}"

    def share(self, runs: Sequence[Run]) -> list[Run]:
        """The runs of this shard, in their order: whole seeds, and all runs that those need.

        Raises:
            ConfigError: there are fewer seeds than shards.

        >>> [run.seed for run in Shard(1, 2).share([Run(str(seed), {"seed": seed}, seed) for seed in range(5)])]
        [1, 3]
        """
        needed = {run_id for run in runs for run_id in run.needs}
        seeds = sorted({run.seed for run in runs if run.run_id not in needed})
        if len(seeds) < self.of:
            raise ConfigError(f"shard {self}: there are {len(seeds)} seeds to deal out; give no more shards than seeds")
        mine = set(seeds[self.index :: self.of])
        by_id = {run.run_id: run for run in runs}
        open_ = [run.run_id for run in runs if run.seed in mine and run.run_id not in needed]
        taken = set(open_)
        while open_:
            more = [run_id for run_id in by_id[open_.pop()].needs if run_id not in taken]
            taken.update(more)
            open_ += more
        return [run for run in runs if run.run_id in taken]


class Part:
    """A kind of which a shard runs its share: jobs are made of all runs, so that programs are those of one process."""

    def __init__(self, kind: Kind, shard: Shard):
        self._kind, self._shard = kind, shard
        self._whole: Sequence[Run] = ()

    def runs(self, experiment: Any) -> list[Run]:
        """The runs of the shard."""
        self._whole = self._kind.runs(experiment)
        return self._shard.share(self._whole)

    def jobs(self, experiment: Any, runs: Sequence[Run]) -> list[Job]:
        """The jobs of the whole experiment with the runs that are the shard's."""
        mine = {run.run_id for run in runs}
        found = [
            dataclasses.replace(job, runs=tuple(run for run in job.runs if run.run_id in mine))
            for job in self._kind.jobs(experiment, self._whole)
        ]
        return [job for job in found if job.runs]
