"""Runs of published studies, repeated in the arena: DS2 and Dhalion, Justin, Demeter."""
