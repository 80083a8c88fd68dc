"""Public API; names load on first use so that `import constrain` stays light."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from constrain.annotations import InGrammar as InGrammar
    from constrain.compiled import CompiledSpec as CompiledSpec
    from constrain.compiled import Matcher as Matcher
    from constrain.compiled import MinTokens as MinTokens
    from constrain.compiled import compile as compile
    from constrain.compiled import fill_next_token_bitmasks as fill_next_token_bitmasks
    from constrain.errors import ArtefactError as ArtefactError
    from constrain.errors import BackendError as BackendError
    from constrain.errors import CheckError as CheckError
    from constrain.errors import ConstrainError as ConstrainError
    from constrain.errors import DeadEndError as DeadEndError
    from constrain.errors import EmptyLanguageError as EmptyLanguageError
    from constrain.errors import LimitExceededError as LimitExceededError
    from constrain.errors import OptionError as OptionError
    from constrain.errors import SpecError as SpecError
    from constrain.errors import UnsupportedFeatureError as UnsupportedFeatureError
    from constrain.errors import VocabularyError as VocabularyError
    from constrain.generation import Generation as Generation
    from constrain.generation import PartialGeneration as PartialGeneration
    from constrain.generation import agenerate as agenerate
    from constrain.generation import generate as generate
    from constrain.generation import stream as stream
    from constrain.grammar_spec import grammar as grammar
    from constrain.grammars.limits import Limits as Limits
    from constrain.library import grammar_library as grammar_library
    from constrain.models import from_transformers as from_transformers
    from constrain.models import load_model as load_model
    from constrain.nearest_member import Repair as Repair
    from constrain.nearest_member import repair as repair
    from constrain.output_function import output as output
    from constrain.posterior import Posterior as Posterior
    from constrain.spec import Explanation as Explanation
    from constrain.spec import Spec as Spec
    from constrain.spec import choice as choice
    from constrain.spec import json_schema as json_schema
    from constrain.spec import python_type as python_type
    from constrain.spec import regex as regex
    from constrain.tags import ToolCall as ToolCall
    from constrain.tags import ToolOutput as ToolOutput
    from constrain.tags import ToolTemplate as ToolTemplate
    from constrain.tags import structural_tag as structural_tag
    from constrain.tags import tool_calls as tool_calls
    from constrain.tokenizer_index.mask import allocate_token_bitmask as allocate_token_bitmask
    from constrain.tokenizer_index.mask import apply_token_bitmask_inplace as apply_token_bitmask_inplace
    from constrain.tokenizer_index.vocabulary import Vocabulary as Vocabulary

_HOME = {
    "ArtefactError": "constrain.errors",
    "BackendError": "constrain.errors",
    "CheckError": "constrain.errors",
    "CompiledSpec": "constrain.compiled",
    "ConstrainError": "constrain.errors",
    "DeadEndError": "constrain.errors",
    "EmptyLanguageError": "constrain.errors",
    "Explanation": "constrain.spec",
    "Generation": "constrain.generation",
    "InGrammar": "constrain.annotations",
    "LimitExceededError": "constrain.errors",
    "Limits": "constrain.grammars.limits",
    "Matcher": "constrain.compiled",
    "MinTokens": "constrain.compiled",
    "OptionError": "constrain.errors",
    "Repair": "constrain.nearest_member",
    "Spec": "constrain.spec",
    "PartialGeneration": "constrain.generation",
    "Posterior": "constrain.posterior",
    "SpecError": "constrain.errors",
    "ToolCall": "constrain.tags",
    "ToolOutput": "constrain.tags",
    "ToolTemplate": "constrain.tags",
    "UnsupportedFeatureError": "constrain.errors",
    "Vocabulary": "constrain.tokenizer_index.vocabulary",
    "VocabularyError": "constrain.errors",
    "agenerate": "constrain.generation",
    "allocate_token_bitmask": "constrain.tokenizer_index.mask",
    "apply_token_bitmask_inplace": "constrain.tokenizer_index.mask",
    "choice": "constrain.spec",
    "compile": "constrain.compiled",
    "fill_next_token_bitmasks": "constrain.compiled",
    "from_transformers": "constrain.models",
    "generate": "constrain.generation",
    "grammar": "constrain.grammar_spec",
    "grammar_library": "constrain.library",
    "json_schema": "constrain.spec",
    "load_model": "constrain.models",
    "output": "constrain.output_function",
    "python_type": "constrain.spec",
    "regex": "constrain.spec",
    "repair": "constrain.nearest_member",
    "stream": "constrain.generation",
    "structural_tag": "constrain.tags",
    "tool_calls": "constrain.tags",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
