"""Compiled specs as files: what a spec was made from, and the vocabulary it was compiled for.

Compiling takes milliseconds, so a file holds no tables that a kernel would have to trust, but the source of
the spec, checked and compiled again when the file is loaded: JSON with a version and a checksum.
"""

from __future__ import annotations

import json
import operator
import os
import tempfile
import zlib
from dataclasses import asdict
from functools import reduce
from pathlib import Path
from typing import Any

from constrain.errors import ArtefactError, ConstrainError
from constrain.grammars.limits import Limits
from constrain.spec import Spec, choice, json_schema, regex

FORMAT = "constrain compiled spec"
VERSION = 1


def save(path: str | Path, spec: Spec, fingerprint: str, limits: Limits) -> None:
    """Write a compiled spec to ``path``, whole or not at all.

    Raises
    ------
    ArtefactError
        The spec was not made from text, such as one made of a grammar object.
    OSError
        The file cannot be written.
    """
    content = {"vocabulary": fingerprint, "limits": asdict(limits), "spec": _described(spec)}
    text = json.dumps(content, ensure_ascii=False)
    document = {"format": FORMAT, "version": VERSION, "crc32": zlib.crc32(text.encode()), "content": text}
    target = Path(path)
    handle, work = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(document, file)
        os.replace(work, target)
    except BaseException:
        os.unlink(work)
        raise


def load(path: str | Path, fingerprint: str) -> tuple[Spec, Limits]:
    """Read the spec and limits of a file written by `save`.

    Raises
    ------
    ArtefactError
        The file is damaged, of another version, or belongs to another vocabulary.
    OSError
        The file cannot be read.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        kind, version = document["format"], document["version"]
        text, checksum = document["content"], document["crc32"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ArtefactError(f"{path} is not a compiled spec, or is damaged.") from error
    if kind != FORMAT or version != VERSION:
        raise ArtefactError(
            f"{path} is a {kind!r} of version {version!r}; this version reads {FORMAT!r}, version {VERSION}."
        )
    if not isinstance(text, str) or zlib.crc32(text.encode()) != checksum:
        raise ArtefactError(f"{path} is damaged: its checksum is wrong.")
    content = json.loads(text)
    if content["vocabulary"] != fingerprint:
        raise ArtefactError(f"{path} was compiled for another vocabulary. Compile the spec for this one.")
    try:
        limits = Limits(**content["limits"])
        return _rebuilt(content["spec"], limits), limits
    except (ConstrainError, TypeError, KeyError) as error:
        raise ArtefactError(f"{path} holds a spec that this version cannot read: {error}") from error


def _described(spec: Spec) -> dict[str, Any]:
    """Return JSON data from which `_rebuilt` makes the spec again."""
    source = spec.source()
    if source is None:
        raise ArtefactError(f"{spec!r} was not made from text, so it cannot be saved.")
    if spec.kind in ("union", "concatenation"):
        return {"kind": spec.kind, "parts": [_described(part) for part in source["parts"]]}
    if spec.kind == "grammar" and source.get("embed"):
        source["embed"] = {name: _described(part) for name, part in source["embed"].items()}
    return {"kind": spec.kind, **source}


def _rebuilt(data: dict[str, Any], limits: Limits) -> Spec:
    match data["kind"]:
        case "union":
            return reduce(operator.or_, [_rebuilt(part, limits) for part in data["parts"]])
        case "concatenation":
            return reduce(operator.add, [_rebuilt(part, limits) for part in data["parts"]])
        case "regex":
            return regex(data["pattern"], flags=data["flags"], limits=limits)
        case "choice":
            return choice(data["options"], limits=limits)
        case "grammar":
            from constrain.grammar_spec import grammar_from_source

            embedded = {name: _rebuilt(part, limits) for name, part in data.get("embed", {}).items()}
            return grammar_from_source(data, embedded, limits)
        case "structural_tag":
            from constrain.tags import structural_tag

            return structural_tag(data["tag"], **data["options"], limits=limits)
        case "tool_calls":
            from constrain.tool_spec import tools_from_source

            return tools_from_source(data, limits)
        case "json_schema" | "python_type":
            return json_schema(data["schema"], **data["options"], limits=limits)
    raise KeyError(f"kind {data['kind']!r}")
