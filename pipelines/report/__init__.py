"""The report of a plan: one HTML file with figures that needs no network."""

from pipelines.report.page import figures, render
from pipelines.report.subject import ReportSubject

__all__ = ["ReportSubject", "figures", "render"]
