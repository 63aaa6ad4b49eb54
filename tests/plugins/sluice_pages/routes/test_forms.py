"""Fields of forms: what is a version, and what is a rate."""

import pytest
from fastapi import HTTPException

from sluice_pages.routes.forms import rate_in, version_in


@pytest.mark.parametrize(("given", "version"), [("1", 1), ("42", 42), ("007", 7)])
def test_a_version_is_a_number_from_1(given: str, version: int) -> None:
    assert version_in({"current": given}, "current") == version


@pytest.mark.parametrize("given", ["", "0", "-1", "1.5", "x", "1e3", "\u0661", "9" * 400])
def test_anything_else_is_no_version(given: str) -> None:
    with pytest.raises(HTTPException, match="Nothing was changed") as error:
        version_in({"current": given}, "current")
    assert error.value.status_code == 400 and len(str(error.value.detail)) < 200
    with pytest.raises(HTTPException):
        version_in({}, "current")


@pytest.mark.parametrize(("given", "rate"), [("2500000", 2.5e6), ("2,500,000", 2.5e6), ("2.5e6", 2.5e6), ("0.5", 0.5)])
def test_a_rate_is_above_0(given: str, rate: float) -> None:
    assert rate_in({"rate": given}, "rate") == rate


@pytest.mark.parametrize("given", ["", "0", "-1", "nan", "inf", "1e99", "much", "1;2"])
def test_anything_else_is_no_rate(given: str) -> None:
    with pytest.raises(HTTPException, match="Nothing was changed"):
        rate_in({"rate": given}, "rate")
