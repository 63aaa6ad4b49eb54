"""Great Expectations: validate tables in one context, and render the results as Data Docs.

Importing this module takes several seconds. Checks run on pandas: the samples of a pipeline run are 100 000 to a few
million rows, and fit on one machine.
"""

import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import great_expectations as gx
from great_expectations.core.batch_definition import BatchDefinition
from great_expectations.core.expectation_validation_result import ExpectationValidationResult
from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
from great_expectations.data_context.types.base import ProgressBarsConfig

from models.errors import SluiceError
from pipelines.checks.outcome import EXAMPLES, CheckedTable, CheckOutcome, Violation
from pipelines.checks.pages import offline_site

_SITE: Final = "docs"


def validate(tables: Sequence[CheckedTable], run_name: str) -> CheckOutcome:
    """Check every table by its rules.

    Args:
        run_name: name of the pipeline run, for the Data Docs.
    """
    context = _context()
    evaluated, violations = 0, []
    with tempfile.TemporaryDirectory() as folder:
        _add_site(context, folder)
        for table in tables:
            results = _run(context, table, run_name)
            evaluated += len(results)
            violations += [_violation(table, result, context) for result in results if not result.success]
        context.build_data_docs(site_names=[_SITE])
        return CheckOutcome(evaluated, tuple(violations), offline_site(Path(folder)))


def _context() -> EphemeralDataContext:
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False, metric_calculations=False)
    return context


def _add_site(context: EphemeralDataContext, folder: str) -> None:
    for name in context.get_site_names():
        context.delete_data_docs_site(name)
    context.add_data_docs_site(
        _SITE,
        {
            "class_name": "SiteBuilder",
            "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": folder},
            "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
        },
    )


def _run(context: EphemeralDataContext, table: CheckedTable, run_name: str) -> list[ExpectationValidationResult]:
    suite = context.suites.add(gx.ExpectationSuite(table.name, expectations=list(table.rules)))
    definition = context.validation_definitions.add(
        gx.ValidationDefinition(name=table.name, data=_batches(context, table), suite=suite)
    )
    result = definition.run(
        batch_parameters={"dataframe": table.frame},
        result_format={"result_format": "SUMMARY", "partial_unexpected_count": EXAMPLES},
        # Without a time, it takes the name for one: names such as 8a4378942874 overflow its parser.
        run_id=gx.RunIdentifier(run_name=run_name, run_time=datetime.now(UTC)),
    )
    return list(result.results)


def _batches(context: EphemeralDataContext, table: CheckedTable) -> BatchDefinition[Any]:
    source = context.data_sources.add_pandas(table.name)
    return source.add_dataframe_asset(table.name).add_batch_definition_whole_dataframe("whole")


def _violation(table: CheckedTable, result: ExpectationValidationResult, context: EphemeralDataContext) -> Violation:
    config, found = result.expectation_config, result.result
    if config is None:
        raise SluiceError(f"Great Expectations does not say which rule failed on {table.name}: {result}")
    count = int(found.get("unexpected_count", 0))
    return Violation(
        table=table.name,
        expectation=config.type,
        rule=config.description or config.type,
        columns=_columns(config.kwargs) if count else (),
        found="" if count else _whole_table(config.kwargs, found, result.exception_info),
        count=count,
        rows=_rows(table, str(config.id), context) if count else (),
    )


def _rows(table: CheckedTable, rule_id: str, context: EphemeralDataContext) -> tuple[int, ...]:
    """Positions of all rows that break a rule; only computed for a broken rule, since listing is slow."""
    definition = context.validation_definitions.get(table.name)
    batch = definition.batch_definition.get_batch(batch_parameters={"dataframe": table.frame})
    (rule,) = [e for e in definition.suite.expectations if e.id == rule_id]
    full = batch.validate(rule, result_format={"result_format": "COMPLETE", "include_unexpected_rows": False})
    return tuple(sorted(full.result["unexpected_index_list"]))


def _columns(kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    named = [kwargs[name] for name in ("column", "column_A", "column_B") if name in kwargs]
    return (*named, *kwargs.get("column_list", ()))


def _whole_table(kwargs: Mapping[str, Any], found: Mapping[str, Any], failure: Mapping[str, Any]) -> str:
    observed = found.get("observed_value")
    if isinstance(observed, list):
        missing = [name for name in kwargs["column_list"] if name not in observed]
        unknown = [name for name in observed if name not in kwargs["column_list"]]
        parts = [f"{word}: {', '.join(names)}" for word, names in (("missing", missing), ("unknown", unknown)) if names]
        return "; ".join(parts) or f"the order is {', '.join(observed)}"
    if observed is not None:
        return f"is {observed}"
    messages = [each["exception_message"] for each in failure.values() if isinstance(each, Mapping)]
    return messages[0] if messages else str(failure.get("exception_message") or "not met")
