"""Decoders, one file each: what ``generate`` runs, for those who write their own loops."""

from __future__ import annotations

from constrain.decoders.local import LocalDecoder, LocalOptions, Row, Stats

__all__ = ["LocalDecoder", "LocalOptions", "Row", "Stats"]
