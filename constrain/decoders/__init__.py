"""Decoders: loops that choose tokens under a constraint, step by step.

Each is what a ``method`` of ``constrain.generate`` runs, for people who write loops.
"""

from __future__ import annotations

from constrain.decoders.local import LocalDecoder, LocalOptions
from constrain.decoders.potentials import BatchPotential, Potential
from constrain.decoders.proposals import MaskProposal, Proposal, RejectionProposal, WeightedStep
from constrain.decoders.rejection import RejectionDecoder, RejectionInfo, RejectionOptions, RejectionState
from constrain.decoders.rows import Row, Stats
from constrain.decoders.smc import Particle, Population, SmcDecoder, SmcInfo, SmcOptions

__all__ = [
    "BatchPotential",
    "LocalDecoder",
    "LocalOptions",
    "MaskProposal",
    "Particle",
    "Population",
    "Potential",
    "Proposal",
    "RejectionDecoder",
    "RejectionInfo",
    "RejectionOptions",
    "RejectionProposal",
    "RejectionState",
    "Row",
    "SmcDecoder",
    "SmcInfo",
    "SmcOptions",
    "Stats",
    "WeightedStep",
]
