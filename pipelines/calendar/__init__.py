"""Calendars of jobs: the season of their rates, schedules by week, and a replan ahead of each scheduled change."""
