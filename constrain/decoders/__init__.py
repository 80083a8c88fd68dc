"""Decoders: loops that choose tokens under a constraint, step by step.

Each is what a ``method`` of ``constrain.generate`` runs, for people who write loops.
"""

from __future__ import annotations

from constrain.decoders.aligned import AlignedDecoder, AlignedInfo, AlignedOptions, AlignedState
from constrain.decoders.beam import BeamDecoder, BeamInfo, BeamOptions, BeamState
from constrain.decoders.draft import (
    DraftDecoder,
    DraftInfo,
    DraftOptions,
    DraftState,
    DraftStats,
    DraftTemplate,
)
from constrain.decoders.local import LocalDecoder, LocalOptions
from constrain.decoders.mcmc import McmcDecoder, McmcInfo, McmcOptions, McmcState
from constrain.decoders.potentials import BatchPotential, Potential
from constrain.decoders.proposals import MaskProposal, Proposal, RejectionProposal, WeightedStep
from constrain.decoders.rejection import RejectionDecoder, RejectionInfo, RejectionOptions, RejectionState
from constrain.decoders.rows import Row, Stats
from constrain.decoders.sketch import SketchOptions, SketchStats, SketchTemplate
from constrain.decoders.smc import Particle, Population, SmcDecoder, SmcInfo, SmcOptions
from constrain.decoders.speculative import (
    SpeculativeDecoder,
    SpeculativeInfo,
    SpeculativeOptions,
    SpeculativeState,
)

__all__ = [
    "AlignedDecoder",
    "AlignedInfo",
    "AlignedOptions",
    "AlignedState",
    "BatchPotential",
    "BeamDecoder",
    "BeamInfo",
    "BeamOptions",
    "BeamState",
    "DraftDecoder",
    "DraftInfo",
    "DraftOptions",
    "DraftState",
    "DraftStats",
    "DraftTemplate",
    "LocalDecoder",
    "LocalOptions",
    "MaskProposal",
    "McmcDecoder",
    "McmcInfo",
    "McmcOptions",
    "McmcState",
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
    "SketchOptions",
    "SketchStats",
    "SketchTemplate",
    "SmcDecoder",
    "SmcInfo",
    "SmcOptions",
    "SpeculativeDecoder",
    "SpeculativeInfo",
    "SpeculativeOptions",
    "SpeculativeState",
    "Stats",
    "WeightedStep",
]
