"""Options: those that several commands have, those made from the fields of a request, and how their values are read."""
