"""The report of a plan: one HTML file that needs no network, with the pictures people would rather look at."""

from pipelines.report.page import figures, render
from pipelines.report.subject import ReportSubject

__all__ = ["ReportSubject", "figures", "render"]
