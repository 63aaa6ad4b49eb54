from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from models.errors import InvalidInput
from models.job import Job, Keys, Kind, Window, WindowKind, records_in_per_source_record


def operator(name: str, kind: str = "operator", **fields: Any) -> dict[str, Any]:
    return {"name": name, "kind": kind, "cost": {"cpu_s": 1e-6}, "figures_from": "assumed: test", **fields}


def job(operators: list[dict[str, Any]], edges: list[tuple[str, str] | tuple[str, str, float]]) -> Job:
    return Job.model_validate(
        {
            "name": "j",
            "description": "A job.",
            "figures_from": "assumed: test",
            "operators": operators,
            "edges": [
                {"from": e[0], "to": e[1], "partitioning": "hash", "share": e[2] if len(e) > 2 else 1.0} for e in edges
            ],
        }
    )


@pytest.fixture
def diamond() -> Job:
    """Two sources (3/4 and 1/4) into a filter (1/2), which feeds a window (share 0.8) and a map, joined; then a sink."""
    return job(
        [
            operator("sink", "sink", selectivity=0),
            operator("a", "source", rate_share=0.75),
            operator("b", "source", rate_share=0.25, selectivity=2),
            operator("filter", selectivity=0.5),
            operator("window", selectivity=0.1),
            operator("map", selectivity=3),
            operator("join", selectivity=0.25),
        ],
        [
            ("a", "filter"),
            ("b", "filter"),
            ("filter", "window", 0.8),
            ("filter", "map"),
            ("window", "join"),
            ("map", "join"),
            ("join", "sink"),
        ],
    )


def test_records_per_source_record_follow_selectivities_and_shares(diamond: Job) -> None:
    ratio = records_in_per_source_record(diamond)
    assert ratio["filter"] == pytest.approx(0.75 + 0.25 * 2)
    assert ratio["window"] == pytest.approx(1.25 * 0.5 * 0.8)
    assert ratio["map"] == pytest.approx(1.25 * 0.5)
    assert ratio["join"] == pytest.approx(0.5 * 0.1 + 0.625 * 3)
    assert ratio["sink"] == pytest.approx(1.925 * 0.25)
    assert (ratio["a"], ratio["b"]) == (0.75, 0.25)


def test_an_operator_has_no_more_tasks_than_its_own_limit_or_the_key_groups() -> None:
    made = job(
        [operator("a", "source", max_parallelism=3), operator("b", max_parallelism=200), operator("c", "sink")],
        [("a", "b"), ("b", "c")],
    )
    assert [made.most_tasks(name) for name in made.order] == [3, 200, None]
    grouped = made.model_copy(update={"key_groups": 128})
    assert [grouped.most_tasks(name) for name in made.order] == [3, 128, 128]
    assert grouped.max_parallelism == {"b": 128, "c": 128}, "sources aside"


def test_measured_selectivities_take_the_place_of_the_jobs_own(diamond: Job) -> None:
    ratio = records_in_per_source_record(diamond, {"filter": 1.0, "map": 0.0})
    assert ratio["window"] == pytest.approx(1.0)
    assert ratio["join"] == pytest.approx(0.1)


@given(st.floats(0, 100), st.floats(0, 100), st.floats(0.01, 1))
def test_ratios_are_linear_along_a_path(first: float, second: float, share: float) -> None:
    line = job(
        [
            operator("s", "source"),
            operator("x", selectivity=first),
            operator("y", selectivity=second),
            operator("z", "sink"),
        ],
        [("s", "x"), ("x", "y", share), ("y", "z")],
    )
    assert records_in_per_source_record(line)["z"] == pytest.approx(first * share * second)


def test_scaled_operators_are_all_but_the_sources_in_topological_order(diamond: Job) -> None:
    assert diamond.order == ("a", "b", "filter", "window", "map", "join", "sink")
    assert [o.name for o in diamond.scaled_operators] == ["filter", "window", "map", "join", "sink"]
    assert [o.name for o in diamond.sources] == ["a", "b"]


def test_edges_are_found_from_both_ends(diamond: Job) -> None:
    assert [e.upstream for e in diamond.upstream_edges("join")] == ["window", "map"]
    assert [e.downstream for e in diamond.downstream_edges("filter")] == ["window", "map"]
    assert diamond.upstream_edges("a") == () and diamond.downstream_edges("sink") == ()


def test_an_unknown_operator_is_reported_with_the_known_ones(diamond: Job) -> None:
    with pytest.raises(InvalidInput, match=r"job 'j' has no operator 'unknown'; known operators: sink, a, b, filter"):
        diamond.operator("unknown")


def test_an_operator_is_neither_source_nor_sink_by_default(diamond: Job) -> None:
    assert diamond.operator("filter").kind is Kind.OPERATOR


@pytest.mark.parametrize(
    ("kind", "slide_s", "interval"),
    [(WindowKind.TUMBLING, None, 10.0), (WindowKind.SLIDING, 2.0, 2.0), (WindowKind.SESSION, None, None)],
)
def test_windows_fire_by_their_kind(kind: WindowKind, slide_s: float | None, interval: float | None) -> None:
    assert Window(kind=kind, length_s=10, slide_s=slide_s).firing_interval_s == interval


@pytest.mark.parametrize(
    ("kind", "slide_s", "message"),
    [
        ("sliding", None, "must be given for a sliding window"),
        ("tumbling", 2.0, "must be given for a sliding window, and only there"),
        ("sliding", 11.0, r"slide_s <= length_s must hold, but got \(slide_s=11.0, length_s=10.0\)"),
        ("hopping", None, "'tumbling', 'sliding' or 'session'"),
    ],
)
def test_a_slide_belongs_to_a_sliding_window(kind: str, slide_s: float | None, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Window.model_validate({"kind": kind, "length_s": 10, "slide_s": slide_s})


@pytest.mark.parametrize(
    "fields",
    [
        {"hot_share": 0.5},
        {"hot_period_records": 100},
        {"hot_share": 0.5, "hot_period_records": 100, "hot_period_s": 2},
    ],
)
def test_a_hot_key_has_exactly_one_period(fields: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match="exactly one of 'hot_period_records' and 'hot_period_s'"):
        Keys.model_validate({"distinct": 10, **fields})


def test_two_sources_share_the_rate() -> None:
    with pytest.raises(ValidationError, match="rate_share of the sources must sum to 1, but they sum to 2"):
        job([operator("a", "source"), operator("b", "source"), operator("z", "sink")], [("a", "z"), ("b", "z")])


def test_jobs_are_frozen(diamond: Job) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        diamond.name = "other"  # type: ignore[misc]


def test_a_job_survives_json(diamond: Job) -> None:
    assert Job.model_validate_json(diamond.model_dump_json(by_alias=True)) == diamond
