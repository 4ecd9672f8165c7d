"""A study: one finding, the arms that show it, and its metric. ``configs.load.load_study`` reads one."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from coevo.configs.base import MAX_FACTOR, Config

StudyName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$", max_length=40)]
"""Part of the name of a run."""
Words = Annotated[str, Field(min_length=1, max_length=400)]
"""One or two sentences."""
Override = Annotated[str, Field(pattern=r"^[^=\s]+=", max_length=400)]
"""Setting of a recipe, as ``KEY=VALUE``."""
ARMS = 64
"""Most arms of a study."""


MetricName = Annotated[str, Field(pattern=r"^(agent|bank|cost|policy)/\S+$", max_length=200)]
"""Name as in ``coevo log RUN --json``, for example ``agent/success/seen-houses``."""


class MetricConfig(Config):
    """Metric of a run that arms are compared by."""

    name: MetricName
    """Name as in ``coevo log RUN --json``, for example ``agent/success/seen-houses``."""
    minus: MetricName | None = None
    """Metric of the same run and iteration to subtract; null subtracts nothing."""
    below: float | None = Field(default=None, ge=-MAX_FACTOR, le=MAX_FACTOR)
    """Value below which the finding claims that the metric is in the reference arm; null claims none."""
    over: Literal["end", "gain", "area", "rise"] = "end"
    """``end``: last value of the run; ``gain``: that minus the value before training; ``area``: mean over its
    iterations, the area below the curve divided by them; ``rise``: mean over the last quarter of its iterations minus
    that over the first, with the value before training.
    """
    within: float | None = Field(default=None, gt=0, le=MAX_FACTOR)
    """Largest difference that still counts as none, for arms that are expected to be ``equal``."""
    absent: float | None = Field(default=None, ge=-MAX_FACTOR, le=MAX_FACTOR)
    """Value of an iteration without the metric, such as the share of nothing; null leaves such iterations out."""
    better: Literal["higher", "lower"] = "higher"
    """Direction that counts as better."""
    claimed: bool = True
    """The finding is about this metric; false shows it without a verdict."""

    @property
    def title(self) -> str:
        """Name of the metric, and of the one that it is reduced by."""
        return self.name if self.minus is None else f"{self.name} minus {self.minus}"

    @property
    def key(self) -> str:
        """Title of the metric, and what is taken of its values."""
        return f"{self.title}/{self.over}"


class MatchConfig(Config):
    """An arm that continues, unit by unit, until it has cost as much as another one."""

    arm: StudyName
    """The other arm, which stands before it."""
    by: Literal["episodes", "tokens", "seconds"] = "episodes"
    """Cost of learning that is equal: episodes and tokens with those of replay, or seconds."""


class ArmConfig(Config):
    """Settings that a study compares with those of its reference arm."""

    name: StudyName
    """Name of the arm, as its runs have it."""
    settings: tuple[Override, ...] = Field(default=(), max_length=100)
    """Settings of this arm, as ``KEY=VALUE``."""
    recipe: str | None = Field(default=None, min_length=1)
    """Recipe of this arm; null for that of the study."""
    pairing: tuple[Words, Words, Words] | None = None
    """Environment, method and model that this arm pairs, in place of a recipe."""
    matches: MatchConfig | None = None
    """Arm that this one costs as much as; its iterations are then the fewest. Null keeps to its iterations."""
    expected: Literal["better", "worse", "equal", "positive"] | None = None
    """Claim of the finding about the arm: its standing against the reference, or, ``positive``, that the metric itself
    is above 0; null where it claims nothing.
    """


class StudyConfig(Config):
    """A finding, as runs of several arms and seeds that can confirm or reverse it."""

    name: StudyName
    """Name of the study, with which the names of its runs begin; by default that of its file."""
    paper: Words
    """Source of the finding."""
    figure: Words | None = None
    """Figure, table or section of the paper."""
    finding: Words
    """The finding in one sentence."""
    recipe: str = Field(min_length=1)
    """Shipped recipe that every arm builds on, or a recipe file."""
    settings: tuple[Override, ...] = Field(default=(), max_length=100)
    """Settings of every arm, as ``KEY=VALUE``; those of an arm win."""
    arms: tuple[ArmConfig, ...] = Field(default=(), max_length=ARMS)
    """The arms: at least two, or one with a metric that claims ``below``; none if ``needs`` says what is missing."""
    reference: StudyName | None = None
    """Arm that the others are compared with; null is the first one."""
    seeds: int = Field(default=5, ge=1, le=1000)
    """Number of seeds: 1 to this number."""
    metrics: tuple[MetricConfig, ...] = Field(default=(), max_length=20)
    """Metrics of the comparison; the first that is claimed is the primary one, by which the finding stands or falls."""
    minutes: float | None = Field(default=None, gt=0, le=MAX_FACTOR)
    """Minutes that a run takes on two quiet cores, the mean of its arms; null where nobody knows."""
    needs: tuple[Words, ...] = Field(default=(), max_length=20)
    """Parts that the study needs and that do not exist here; it does not run as long as there are any."""

    @model_validator(mode="after")
    def _comparable(self) -> Self:
        names = [arm.name for arm in self.arms]
        if len({*names}) < len(names):
            raise ValueError(f"arms: two have the same name: name each of {', '.join(names)} once")
        self._check_seeds()
        for number, metric in enumerate(self.metrics):
            if metric.key in [other.key for other in self.metrics[:number]]:
                raise ValueError(f"metrics: {metric.title} over {metric.over} is there twice: leave one out")
        if self.needs:
            return self
        is_bounded = any(metric.below is not None for metric in self.metrics) or any(
            arm.expected == "positive" for arm in self.arms
        )
        if len(names) < 2 - is_bounded or not self.metrics:
            raise ValueError(
                "arms and metrics: a study compares at least two arms by at least one metric, or one arm by a metric "
                "with below or that is expected to be positive: add them"
            )
        if self.reference is not None and self.reference not in names:
            raise ValueError(f"reference={self.reference} is no arm: choose one of {', '.join(names)}")
        if self.base.expected not in (None, "positive"):
            raise ValueError(f"arm {self.base.name} is the reference: leave out its expected")
        self._check_claims(names)
        return self

    def _check_claims(self, names: list[str]) -> None:
        """Refuse a claim of equality without a bound, and an arm that matches one that has not been played."""
        for number, arm in enumerate(self.arms):
            if arm.expected == "equal" and any(metric.claimed and metric.within is None for metric in self.metrics):
                raise ValueError(f"arm {arm.name} is expected to be equal: set within for each claimed metric")
            if arm.matches is not None and arm.matches.arm not in names[:number]:
                raise ValueError(f"arm {arm.name} matches {arm.matches.arm}: name an arm that stands before it")

    def _check_seeds(self) -> None:
        """Refuse a seed among the settings: the seeds of the study would replace it, so that arms become equal."""
        named = {"settings": self.settings, **{f"arm {arm.name}": arm.settings for arm in self.arms}}
        for owner, text in ((owner, text) for owner, settings in named.items() for text in settings):
            if text.partition("=")[0] == "seed":
                raise ValueError(f"{owner}: {text}: leave it out: every arm plays the seeds 1 to seeds (--seeds)")

    @property
    def primary(self) -> MetricConfig | None:
        """The metric by which the finding stands or falls."""
        return next((metric for metric in self.metrics if metric.claimed), None)

    @property
    def base(self) -> ArmConfig:
        """The reference arm."""
        return next(arm for arm in self.arms if self.reference in (None, arm.name))
