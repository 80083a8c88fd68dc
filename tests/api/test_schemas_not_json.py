"""Schemas that hold what JSON can't."""

from __future__ import annotations

import pytest

import constrain

_CYCLE: dict[str, object] = {"type": "object"}
_CYCLE["properties"] = {"x": _CYCLE}


@pytest.mark.parametrize("schema", [{"type": "string", "default": {1}}, {"x-note": object()}, _CYCLE])
def test_they_are_refused(schema: dict[str, object]) -> None:
    """Also where the value stands in a keyword that asserts nothing."""
    with pytest.raises(constrain.SpecError, match="not JSON"):
        constrain.json_schema(schema)
