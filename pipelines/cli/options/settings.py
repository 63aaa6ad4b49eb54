"""Settings of policies on the command line."""

import json
from collections.abc import Sequence

from pydantic import JsonValue

from models.errors import InvalidInput

Settings = dict[str, JsonValue]


def policy_settings(texts: Sequence[str], option: str = "--set") -> Settings:
    """`policy_interval_s=60` as a setting by name; values are JSON, or else text.

    Raises:
        InvalidInput: a part is missing, or a setting is given twice.
    """
    found: Settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and name):
            form = "SETTING=VALUE, for example policy_interval_s=60" if option == "--set" else "LIMIT=VALUE"
            raise InvalidInput(f"{option} must be {form}, but got {text!r}")
        if name in found:
            raise InvalidInput(f"{option} must name a setting once, but {name!r} appears twice")
        found[name] = _value(value)
    return found


def settings_by_policy(texts: Sequence[str]) -> dict[str, Settings]:
    """`ds2.policy_interval_s=60` as settings of each policy; raises as `policy_settings`."""
    by_policy: dict[str, list[str]] = {}
    for text in texts:
        policy, dot, setting = text.partition(".")
        if not (dot and policy) or "=" in policy:
            raise InvalidInput(
                f"--set must be POLICY.SETTING=VALUE, for example ds2.policy_interval_s=60, but got {text!r}"
            )
        by_policy.setdefault(policy, []).append(setting)
    return {policy: policy_settings(own) for policy, own in by_policy.items()}


def _value(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text
    return value
