"""Users' files into values: strict, bounded, and with errors that name the line, the field and the fix."""
