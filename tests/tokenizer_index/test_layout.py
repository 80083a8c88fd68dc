"""The numbers by which kernels and Python agree."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from constrain.tokenizer_index import layout


def test_no_name_is_given_twice() -> None:
    """Two numbers under one name would send kernels to another table."""
    tree = ast.parse(Path(layout.__file__).read_text(encoding="utf-8"))
    names = [
        name.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    ]
    assert len(names) > 200
    assert [name for name, n in Counter(names).items() if n > 1] == []
