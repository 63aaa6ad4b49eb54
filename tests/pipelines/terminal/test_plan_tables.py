"""Tables that people read."""

import io

from rich.console import Console

from models.plan import PlacementChange
from pipelines.terminal.plan_tables import _moves_by_operator


def test_many_moves_are_summed_by_operator() -> None:
    moves = [
        PlacementChange(worker="tm-1", operator="window", before=4, after=1),
        PlacementChange(worker="tm-2", operator="window", before=0, after=2),
        PlacementChange(worker="tm-3", operator="window", before=1, after=2),
        PlacementChange(worker="tm-3", operator="sink", before=1, after=0),
    ]
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(_moves_by_operator(moves))
    rows = [line.split() for line in console.export_text().splitlines()]
    assert ["window", "3", "2", "3", "1"] in rows
    assert ["sink", "0", "0", "1", "1"] in rows
