"""The base of every file format: frozen, and closed to fields it does not know."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION: Final = 1

NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
Name = Annotated[str, Field(pattern=NAME, max_length=120)]
"""An identifier that is also safe as a file name and as a URL segment."""
Label = Annotated[str, Field(min_length=1)]
"""A name for people, as it is elsewhere: of an operator in a job's file, or of a vertex in Flink."""
Ratio = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
PositiveInt = Annotated[int, Field(ge=1)]


class Format(BaseModel):
    """A frozen pydantic model that refuses unknown fields, and fields given by neither name nor alias."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
    OUTSIDE_DIGEST: ClassVar[Mapping[str, Any] | None] = None
    """Fields that digests leave out, as pydantic's `exclude`: nothing that is measured or planned depends on them."""
