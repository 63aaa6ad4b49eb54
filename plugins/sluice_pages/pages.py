"""Templates, and their formats of numbers and times."""

import functools
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from plotly import __version__ as plotly_version

from models.plan.equal_workers import spans
from models.resources.price import in_words
from models.wording import amount
from pipelines.store.code_version import code_version
from sluice_pages.sparkline import sparkline

_HERE: Final = Path(__file__).parent


def page(request: Request, template: str, status: int = 200, **shown: Any) -> HTMLResponse:
    """A template as an answer. Its addresses are valid under any path that Airflow is served on."""
    mounted: str = request.scope.get("root_path", "")
    airflow = mounted.rpartition("/")[0]

    def address(name: str, **parameters: Any) -> str:
        return mounted + str(request.app.url_path_for(name, **parameters))

    def static(file: str) -> str:
        return f"{address('static', file=file)}?v={_fingerprint()}"

    text = _templates().get_template(template).render(address=address, static=static, airflow=airflow, **shown)
    return HTMLResponse(text, status)


@functools.cache
def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "share": _share,
        "time": _time,
        "time_s": _time_s,
        "spans": spans,
        "sparkline": sparkline,
        "usd": in_words,
        "age": _age,
        "dollars": _dollars,
        "wall": _wall,
        "amount": amount,
    }
    return made


@functools.cache
def _fingerprint() -> str:
    """Changes when a static file changes, so that browsers can cache them."""
    return f"{code_version()}-{plotly_version}"


def _share(ratio: float) -> str:
    return f"{ratio:.0%}"


def _time(moment: str | datetime) -> str:
    """In UTC, to the minute; text that is not a time stays as it is."""
    try:
        parsed = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    except ValueError:
        return str(moment)
    return parsed.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _time_s(moment: datetime) -> str:
    """In UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _wall(moment: datetime, time_zone: str, year: bool = False) -> str:
    """On the clock of a time zone, to the minute: `Fri 27 Nov 07:45`, or with its year."""
    return moment.astimezone(ZoneInfo(time_zone)).strftime("%a %d %b %Y %H:%M" if year else "%a %d %b %H:%M")


def _age(seconds: float) -> str:
    """A time gone by, in its largest unit: `40 s`, `3 min`, `5 h`, `2 d`."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _dollars(price: float) -> str:
    """To the cent; prices below a cent to two digits."""
    return f"{price:,.2f}" if price >= 0.01 or price == 0 else f"{price:.2g}"
