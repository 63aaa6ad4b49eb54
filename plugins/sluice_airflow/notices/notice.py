"""The one event that notifiers get, and the file that says which of them hear it."""

from typing import Any, Final, Literal

from pydantic import Field

from models.schema import SCHEMA_VERSION, Format, Label, Name

Kind = Literal["drift-found", "apply-failed", "budget-spent", "model-waiting"]
KINDS: Final[tuple[Kind, ...]] = ("drift-found", "apply-failed", "budget-spent", "model-waiting")


class Notice(Format):
    """One thing that a person should hear of."""

    kind: Kind
    job: Name
    subject: Label = Field(description="One line.")
    text: str = Field(description="Why, in words; no markup.")


class Listener(Format):
    """A notifier, and what it hears."""

    notifier: str = Field(
        pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$", description="Class of a notifier of Airflow, with its module."
    )
    arguments: dict[str, Any] = Field(
        default_factory=dict, description="Of its constructor; templates may use 'notice' (kind, job, subject, text)."
    )
    kinds: tuple[Kind, ...] = Field(KINDS, min_length=1, description="What it hears; default: all.")
    jobs: tuple[Name, ...] | None = Field(None, min_length=1, description="Jobs that it hears of; default: all.")

    def hears(self, notice: Notice) -> bool:
        return notice.kind in self.kinds and (self.jobs is None or notice.job in self.jobs)


class Listeners(Format):
    """Who hears what."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    listeners: tuple[Listener, ...]
