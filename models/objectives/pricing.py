"""The price of a plan against its price limit."""

from models.objectives.outcome import ObjectiveOutcome, PlanObjectives
from models.resources.planned import PlanResources
from models.resources.price import in_words


def with_price(objectives: PlanObjectives, resources: PlanResources) -> PlanObjectives:
    """The objectives with what the plan's TaskManagers cost, where a price limit is one of them."""
    asked, price = objectives.asked.price, resources.price_per_hour
    if asked is None or price is None:
        return objectives
    kind = "" if resources.kind is None else f" of kind {resources.kind}"
    number = f"{resources.task_managers} TaskManager{'s' * (resources.task_managers > 1)}{kind}"
    outcome = ObjectiveOutcome(
        kind="price",
        stated=asked.text,
        task_slots=None,
        predicted=float(price),
        unit="USD/h",
        predicted_by="price list",
        sentence=f"{asked.text}: {number} for {in_words(price)} USD per hour",
    )
    others = tuple(one for one in objectives.outcomes if one.kind != "price")
    return objectives.model_copy(update={"outcomes": (*others, outcome)})
