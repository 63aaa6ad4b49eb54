"""The review of capacity models: the rule, its run in MLflow, and what people decide."""

from pipelines.review.decision import Review, decide, list_reviews, review_page
from pipelines.review.record import REVIEW_FILE, ReviewRecord
from pipelines.review.stage import pending_review, review, reviewed_version

__all__ = [
    "REVIEW_FILE",
    "Review",
    "ReviewRecord",
    "decide",
    "list_reviews",
    "pending_review",
    "review",
    "review_page",
    "reviewed_version",
]
