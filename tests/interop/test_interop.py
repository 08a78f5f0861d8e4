"""Each library, way, element type and layout: shared, copied, or refused as is expected."""

from __future__ import annotations

import pytest

from tests.interop import interop_checks, interop_libraries
from tests.interop.interop_matrix import DTYPES, LAYOUTS

pytestmark = pytest.mark.libraries


@pytest.mark.parametrize(("library", "way", "dtype", "layout"), interop_libraries.cells())
def test_a_cell(library, way, dtype, layout, loaded, record):
    outcome = "failed"
    rule = None
    try:
        rule = interop_checks.check_cell(library, way, dtype, layout)
        outcome = rule.outcome
    finally:
        record(library, way, dtype, layout, outcome, rule)


@pytest.mark.parametrize("library", interop_libraries.each())
def test_every_rule_is_for_some_cell(library, loaded):
    for way in library.ways:
        known = {way.rule(library, dtype, layout) for dtype in DTYPES for layout in LAYOUTS}
        for rule in way.rules:
            assert rule in known or (rule.when and not rule.when(library)), (way.call, rule.reason)
