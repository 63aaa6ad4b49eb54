"""What a plan does for its objectives, and which of them decides its size."""

from typing import Literal, Self

from pydantic import Field, model_validator

from models.objectives.objectives import ObjectiveKind, Objectives, SizingKind
from models.schema import Format, NonNegative, PositiveInt


class ObjectiveOutcome(Format):
    """One objective as the plan meets it."""

    kind: ObjectiveKind = Field(description="rate, lag, recovery or price.")
    stated: str = Field(min_length=1, description="The objective, as it may be written.")
    task_slots: PositiveInt | None = Field(
        description="Task slots that it needs, with the plan's memory; null where the slots that the others need meet it, and "
        "for a price."
    )
    predicted: NonNegative | None = Field(
        description="What the plan is predicted to reach, in `unit`; null where that is not predicted."
    )
    unit: Literal["records/s", "s", "USD/h"] = Field(description="Of `predicted`.")
    predicted_by: Literal["capacity model", "twin", "price list"] = Field(description="What the prediction is from.")
    sentence: str = Field(min_length=1, description="The same in words.")


class PlanObjectives(Format):
    """The objectives of a plan."""

    asked: Objectives = Field(description="As they were stated.")
    binding: SizingKind = Field(
        description="The objective that decides the number of task slots, the target rate among them: the others need no more "
        "than it does. A price limit decides which workers run them."
    )
    outcomes: tuple[ObjectiveOutcome, ...] = Field(
        min_length=1, description="The rate first, then those that were stated."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        kinds = [one.kind for one in self.outcomes]
        if len(set(kinds)) != len(kinds) or self.binding not in kinds:
            raise ValueError(f"one outcome for each kind, {self.binding!r} among them, must be given, but got {kinds}")
        return self

    def outcome(self, kind: ObjectiveKind) -> ObjectiveOutcome | None:
        """Of one kind; None where none was stated."""
        return next((one for one in self.outcomes if one.kind == kind), None)

    @property
    def title(self) -> str:
        """Which objective binds, as the start of a paragraph."""
        bound = self.outcome(self.binding)
        return f"sized by the {self.binding}: {'' if bound is None else bound.stated}"
