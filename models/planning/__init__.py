"""From what is known of a job to the content of its plan: pure decisions, without reading or writing anything."""
