"""Documentation generated from the code: reference pages and JSON Schemas."""
