"""The documentation that is generated from the code: reference pages and JSON Schemas."""
