# SPDX-License-Identifier: Apache-2.0
"""contrib/grafana/penstock.json has the form that Grafana's schema gives dashboards, panels and queries.

grafana-foundation-sdk has that schema as classes with types, which Grafana Labs generate from it. The classes decode a
dashboard without a look at types, and drop what they do not know: this compares both. That Grafana draws it is not shown.
"""
import copy
import enum
import json
import pathlib
import typing
import unittest

from data_fixture import optional

optional("grafana_foundation_sdk")
from grafana_foundation_sdk.cog import encoder, plugins  # noqa: E402
from grafana_foundation_sdk.models import dashboard as models  # noqa: E402

DASHBOARD = pathlib.Path(__file__).resolve().parents[2] / "contrib/grafana/penstock.json"
plugins.register_default_plugins()  # the options of panels and the queries of Prometheus


def is_schema(kind):
    return isinstance(kind, type) and hasattr(kind, "to_json")


def wrong_scalars(value, kind, at):
    """Yield the places whose values are no `kind`: an enumeration, a type of JSON's, or a class of the schema."""
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        is_right = value in [one.value for one in kind]
    elif isinstance(value, bool):
        is_right = kind is bool
    else:
        is_right = isinstance(value, (int, float) if kind is float else kind)
    if not is_right:
        yield f"{at}: {value!r} is no {kind.__name__}"


def wrong(value, kind, at):
    """Yield the places at and below `at` whose values are not of the type `kind` of the schema."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Union:  # among several classes it is the one that decoded the value
        kinds = [one for one in arguments if type(value) is one] or arguments
        found = [list(wrong(value, one, at)) for one in kinds]
        yield from min(found, key=len)
    elif origin is typing.Literal:
        if value not in arguments:
            yield f"{at}: {value!r} is none of {arguments}"
    elif origin in (list, dict):
        yield from wrong_scalars(value, origin, at)
        for key, one in enumerate(value) if origin is list else value.items():
            yield from wrong(one, arguments[-1], f"{at}.{key}")
    elif is_schema(type(value)) and (kind in (object, typing.Any) or isinstance(value, kind)):
        for name, hint in typing.get_type_hints(type(value)).items():
            yield from wrong(getattr(value, name), hint, f"{at}.{name}")
    elif kind not in (object, typing.Any):
        yield from wrong_scalars(value, kind, at)


def lost(given, kept, at):
    """Yield the places at and below `at` that the schema does not know."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, one in given.items():
            yield from lost(one, kept[key], f"{at}.{key}") if key in kept else [f"{at}.{key} is unknown"]
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for i, (one, other) in enumerate(zip(given, kept)):
            yield from lost(one, other, f"{at}.{i}")
    elif given != kept:
        yield f"{at}: {given!r} became {kept!r}"


def faults(board):
    """Return the faults of a dashboard by Grafana's schema, as a list of sentences."""
    try:
        found = models.Dashboard.from_json(board)
        kept = json.loads(json.dumps(found, cls=encoder.JSONEncoder))
        return [*wrong(found, models.Dashboard, "dashboard"), *lost(board, kept, "dashboard")]
    except (KeyError, TypeError, AttributeError) as error:
        return [f"it cannot be decoded: {error!r}"]


class Grafana(unittest.TestCase):
    def setUp(self):
        self.board = json.loads(DASHBOARD.read_text())

    def test_the_dashboard_has_no_fault(self):
        self.assertEqual(faults(self.board), [])

    def test_a_damaged_dashboard_fails(self):
        for path, value in (
                ("panels", 5), ("panels", [{}]), ("graphTooltip", 7), ("refresh", 30), ("tilte", "penstock"), ("tags", "penstock"),
                ("time.from", 5), ("annotations.list", {"a": 1}), ("templating.list.1.type", "qurey"),
                ("templating.list.1.multi", "yes"), ("templating.list.1.refresh", 9), ("panels.0.type", 5),
                ("panels.0.tpye", "stat"), ("panels.0.gridPos.w", "6"), ("panels.0.gridPos.x", 0.5), ("panels.0.targets", {}),
                ("panels.0.targets.0.exp", "up"), ("panels.0.targets.0.expr", 5), ("panels.0.datasource.uid", 5),
                ("panels.0.options.colorMode", "loud"), ("panels.0.options.coloMode", "value"),
                ("panels.0.options.reduceOptions.calcs", "last"), ("panels.0.fieldConfig.defaults.unit", 5),
                ("panels.6.fieldConfig.defaults.custom.lineWidth", "thin"), ("panels.6.fieldConfig.defaults.custom.lineWidht", 1),
                ("panels.6.options.tooltip.mode", "mult")):
            board = copy.deepcopy(self.board)
            *parents, last = path.split(".")
            at = board
            for one in parents:
                at = at[int(one) if isinstance(at, list) else one]
            at[last] = value
            with self.subTest(path=path):
                self.assertNotEqual(faults(board), [], f"{path} = {value!r}")


if __name__ == "__main__":
    unittest.main()
