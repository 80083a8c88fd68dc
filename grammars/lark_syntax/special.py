"""``<|name|>`` and ``<[ids]>``: special tokens of the vocabulary."""

from __future__ import annotations

import re

from constrain.grammars.ir import Alternation, Pattern, SpecialToken
from constrain.grammars.lark_syntax.tree import Module, Special

_IDS = re.compile(r"<\[([0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*)\]>")
_MOST = 4096
_LAST = 1 << 31


def special_tokens(node: Special, module: Module) -> Pattern:
    """Return the pattern of one special token, or of one of several ids.

    Raises
    ------
    SpecError
        The ids are malformed or too many.
    UnsupportedFeatureError
        All tokens but some, or any token, which would include text.
    """
    written = node.text
    if not written.startswith("<["):
        return SpecialToken(written)
    if written.startswith(("<[^", "<[*")):
        raise module.unsupported(
            written, node.offset, "stands for tokens of any text, which is not supported", "List the ids."
        )
    found = _IDS.fullmatch(written)
    if found is None:
        raise module.error(
            f"{written!r} is no list of token ids.",
            node.offset,
            "Write <[1000]>, <[1000,1002]> or <[1000-1002]>.",
        )
    ids: dict[int, None] = {}
    for part in found.group(1).split(","):
        low, _, high = part.partition("-")
        if max(len(low), len(high)) > len(str(_LAST)) or int(high or low) >= _LAST:
            raise module.error(f"{written!r}: a token id is too large.", node.offset)
        span = range(int(low), int(high or low) + 1)
        if not span:
            raise module.error(f"{written!r}: the first id of a range is greater than the last.", node.offset)
        if len(span) + len(ids) > _MOST:
            raise module.error(f"{written!r} has more than {_MOST:,} ids.", node.offset)
        ids.update(dict.fromkeys(span))
    tokens = tuple(SpecialToken(i) for i in ids)
    return tokens[0] if len(tokens) == 1 else Alternation(tokens)
