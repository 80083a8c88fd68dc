"""Decoders: loops that choose tokens under a constraint, step by step.

Each is what a ``method`` of ``constrain.generate`` runs, for people who write loops.
"""

from __future__ import annotations

from constrain.decoders.local import LocalDecoder, LocalOptions
from constrain.decoders.proposals import MaskProposal, Proposal, RejectionProposal, WeightedStep
from constrain.decoders.rejection import RejectionDecoder, RejectionInfo, RejectionOptions, RejectionState
from constrain.decoders.rows import Row, Stats

__all__ = [
    "LocalDecoder",
    "LocalOptions",
    "MaskProposal",
    "Proposal",
    "RejectionDecoder",
    "RejectionInfo",
    "RejectionOptions",
    "RejectionProposal",
    "RejectionState",
    "Row",
    "Stats",
    "WeightedStep",
]
