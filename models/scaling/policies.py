"""The scaling policies by name.

A policy is added by one line in `POLICIES`, and by a module that holds its settings and its state machine.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pydantic import ValidationError

from models.errors import InvalidInput
from models.scaling.dhalion import Dhalion, DhalionSettings
from models.scaling.ds2.policy import Ds2, Ds2Settings
from models.scaling.flink.policy import FlinkAutoscaler
from models.scaling.flink.settings import FlinkSettings
from models.scaling.hpa import HpaCpu, HpaCpuSettings, HpaVarga, HpaVargaSettings
from models.scaling.justin.algorithm import JustinSettings
from models.scaling.justin.policy import Justin
from models.scaling.policy import Policy
from models.scaling.sluice import Sluice, SluiceSettings
from models.scaling.static import Static, StaticSettings
from models.schema import Format

Settings = TypeVar("Settings", bound=Format)


@dataclass(frozen=True)
class Knob:
    """The setting by which a policy trades tasks against late records, and the values that a sweep tries."""

    setting: str
    """As `PolicyKind.setting_names` has it."""
    values: tuple[float, ...]
    """From the fewest tasks to the most; three or more of them are spread evenly enough to draw a frontier."""


@dataclass(frozen=True)
class PolicyKind(Generic[Settings]):
    """A policy that can be made from settings."""

    name: str
    """The name on the command line, and `Policy.name`."""
    title: str
    """Its title in tables and legends."""
    settings: type[Settings]
    """Every setting has a default, so `settings()` holds the defaults of the paper or product."""
    make: Callable[[Settings], Policy]
    knob: Knob
    reads: frozenset[str] = frozenset()
    """Fields of `OperatorMetrics` that it decides by and that cost requests of their own on a running Flink."""

    @property
    def setting_names(self) -> list[str]:
        """The names of the settings; a product's own names where it has some."""
        return [field.alias or name for name, field in self.settings.model_fields.items()]

    def knob_value(self, settings: Mapping[str, object]) -> float:
        """What the knob is set to, by these settings or by default."""
        made = self.settings.model_validate(dict(settings))
        return float(getattr(made, self._field(self.knob.setting)))

    def with_knob(self, settings: Mapping[str, Any], value: float) -> dict[str, Any]:
        """The settings with another value of the knob."""
        others = {
            name: given
            for name, given in settings.items()
            if self.settings.model_validate({name: given}).model_fields_set != {self._field(self.knob.setting)}
        }
        return others | {self.knob.setting: value}

    def _field(self, setting: str) -> str:
        """The field of a setting, which may have the product's own name."""
        return next(name for name, field in self.settings.model_fields.items() if setting in (field.alias, name))

    def policy(self, settings: Mapping[str, object]) -> Policy:
        """A new policy, without history.

        Raises:
            InvalidInput: a setting is unknown or out of its range.
        """
        try:
            return self.make(self.settings.model_validate(dict(settings)))
        except ValidationError as error:
            unknown = [str(e["loc"][-1]) for e in error.errors() if e["type"] == "extra_forbidden"]
            if unknown:
                raise InvalidInput(
                    f"policy {self.name!r} has no setting {_quoted(unknown)}; it has {_quoted(self.setting_names)}"
                ) from error
            problems = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'settings'}: {e['msg']}" for e in error.errors())
            raise InvalidInput(f"unusable settings of policy {self.name!r}: {problems}") from error


def _by_name(*kinds: PolicyKind[Any]) -> dict[str, PolicyKind[Any]]:
    return {kind.name: kind for kind in kinds}


def make_policy(name: str, settings: Mapping[str, object] | None = None) -> Policy:
    """A new policy, without history.

    Args:
        name: one of `POLICIES`.
        settings: what differs from the defaults.

    Raises:
        InvalidInput: no policy has this name, or a setting is unknown or out of its range.
    """
    kind = POLICIES.get(name)
    if kind is None:
        raise InvalidInput(f"there is no policy {name!r}; there are {_quoted(POLICIES)}")
    return kind.policy(settings or {})


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in sorted(names))


_SPARE: Final = Knob("over_provisioning_factor", (0.0, 0.1, 0.2, 0.5, 1.0, 2.0))
POLICIES: Final[dict[str, PolicyKind[Any]]] = _by_name(
    PolicyKind("ds2", "DS2", Ds2Settings, Ds2, _SPARE),
    PolicyKind(
        "flink",
        "Flink autoscaler",
        FlinkSettings,
        FlinkAutoscaler,
        Knob("utilization.target", (1.0, 0.8, 0.6, 0.45, 0.3)),
    ),
    PolicyKind("justin", "Justin", JustinSettings, Justin, _SPARE),
    PolicyKind(
        "dhalion",
        "Dhalion",
        DhalionSettings,
        Dhalion,
        Knob("scale_down_factor", (0.4, 0.3, 0.2, 0.1, 0.05)),
        reads=frozenset({"input_queue_share"}),
    ),
    PolicyKind(
        "hpa-cpu",
        "HPA-CPU",
        HpaCpuSettings,
        HpaCpu,
        Knob("target_cpu_utilization", (1.0, 0.85, 0.7, 0.55, 0.4)),
        reads=frozenset({"cpu_cores"}),
    ),
    PolicyKind(
        "hpa-varga", "HPA-Varga", HpaVargaSettings, HpaVarga, Knob("target_utilization", (1.0, 0.85, 0.7, 0.55, 0.4))
    ),
    PolicyKind("sluice", "Sluice", SluiceSettings, Sluice, Knob("attainment", (0.75, 0.9, 0.97, 0.99, 0.995, 0.999))),
    PolicyKind("static", "Static", StaticSettings, Static, Knob("factor", (0.6, 0.8, 1.0, 1.2, 1.6))),
)
"""The knob of a policy is the target that its own documentation names, up to its limit (`sluice`: to far less than
anybody asks for); Dhalion has none, and what it gives up at once decides how close to the need it stays."""
