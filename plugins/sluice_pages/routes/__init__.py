"""The routes of the pages, and what they are given: fields of forms and of the workspace."""
