"""The definitions of a grammar and of all that it imports, under one set of names: `load`.

An imported name keeps its name or gets the one after ``->``. What it needs of its own grammar gets the path
in front, as in Lark: ``common__DIGIT``, ``_my__grammar__inner``; these names may be overridden and extended.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path

from constrain.grammars.errors import SpecError
from constrain.grammars.lark_syntax.reader import read
from constrain.grammars.lark_syntax.tree import (
    Choice,
    Conjunction,
    Declare,
    Definition,
    Ignore,
    Import,
    Module,
    Negation,
    Node,
    Options,
    Override,
    Repeat,
    Sequence,
    Symbol,
    Usage,
    is_terminal_name,
)
from constrain.grammars.limits import Watch
from constrain.grammars.recursion import Task, run

_SUFFIX = ".lark"
_MOST_IMPORTED_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Rename:
    """The names that a file's definitions have in the grammar that imports it.

    Parameters
    ----------
    steps : tuple of (str, mapping of str to str)
        For each import on the way there, innermost first, a prefix, and the names that the importer chose.
    """

    steps: tuple[tuple[str, Mapping[str, str]], ...] = ()

    def __call__(self, name: str) -> str:
        for prefix, aliases in self.steps:
            alias = aliases.get(name)
            if alias is None:
                alias = f"_{prefix}__{name[1:]}" if name.startswith("_") else f"{prefix}__{name}"
            name = alias
        return name


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """One body of a definition, and how its text's names are to be read."""

    node: Node
    module: Module
    rename: Rename


@dataclass(slots=True, eq=False)
class Entry:
    """A rule or terminal under its name in the whole.

    Parameters
    ----------
    name : str
        Names of imported grammars have their path in front, in lower case: they don't tell what is a terminal.
    is_terminal : bool
    module : Module
    offset : int
        Where it is defined.
    bodies : list of Body
        Any one of these; none for what is only declared.
    parameters : tuple of str
        Of a template, as its own text calls them.
    priority : int
    """

    name: str
    is_terminal: bool
    module: Module
    offset: int
    bodies: list[Body]
    parameters: tuple[str, ...] = ()
    priority: int = 0

    @property
    def label(self) -> str:
        """How messages call it."""
        return self.name if self.name.startswith("%") else f"{self.kind} {self.name!r}"

    @property
    def kind(self) -> str:
        """What it is, for messages."""
        return "terminal" if self.is_terminal else "rule"


@dataclass(slots=True, eq=False)
class Definitions:
    """All definitions, and what is ignored."""

    module: Module
    entries: dict[str, Entry] = field(default_factory=dict)
    ignored: list[tuple[Body, int]] = field(default_factory=list)


def kind(name: str) -> str:
    """Return "rule" or "terminal"."""
    return "terminal" if is_terminal_name(name) else "rule"


def load(
    text: str,
    import_paths: Iterable[Path],
    given: Iterable[str],
    files: MutableMapping[str, str],
    watch: Watch,
) -> Definitions:
    """Return the definitions of a grammar text.

    Parameters
    ----------
    text : str
    import_paths : iterable of Path
        Folders in which ``%import`` looks before the grammars that come with Lark.
    given : iterable of str
        Names that are defined from outside.
    files : mapping of str to str
        Texts of files, by path, that need not be read; those that were read from ``import_paths`` are added.
    watch : Watch

    Raises
    ------
    SpecError
        A malformed or inconsistent grammar, or one that cannot be found.
    """
    loader = _Loader([Path(path) for path in import_paths], frozenset(given), files, watch)
    return run(loader.load(read(text, None, watch), Rename(), None))


class _Loader:
    def __init__(
        self, folders: list[Path], given: frozenset[str], files: MutableMapping[str, str], watch: Watch
    ) -> None:
        self.folders = folders
        self.files = files
        self.given = given
        self.watch = watch
        self.modules: dict[Path, Module] = {}
        self.open: list[Path] = []
        self.imported = 0

    def load(self, module: Module, rename: Rename, folder: Path | None) -> Task[Definitions]:
        """Return the definitions of ``module``, whose file is in ``folder``, and of its imports."""
        found = Definitions(module)
        is_main = not rename.steps
        if is_main:
            for statement in module.statements:
                if isinstance(statement, Definition) and statement.name in self.given:
                    raise module.error(
                        f"{statement.name!r} is given from outside and defined here as well.",
                        statement.offset,
                    )
        yield self.imports(module, rename, folder, found)
        for statement in module.statements:
            match statement:
                case Definition():
                    self.define(found, module, rename, statement)
                case Override(definition, extends):
                    self.override(found, module, rename, definition, extends)
                case Declare(names):
                    for symbol in names:
                        name = rename(symbol.name)
                        self.refuse_known(found, module, name, symbol)
                        if not symbol.is_terminal and name not in self.given:
                            raise module.error(
                                f"The rule {symbol.name!r} is declared, but nothing says what it is.",
                                symbol.offset,
                                "Pass it with embed=, or declare a terminal (upper case).",
                            )
                        found.entries[name] = Entry(name, symbol.is_terminal, module, symbol.offset, [])
                case Ignore(body, offset) if is_main:
                    found.ignored.append((Body(body, module, rename), offset))
                case Options(value, offset) if value:
                    raise module.unsupported(
                        "%llguidance",
                        offset,
                        f"has options ({', '.join(map(repr, value))}) that are not supported",
                        "Write '%llguidance {}', and pass options as arguments.",
                    )
        if is_main:
            self.check(found, found.entries.values())
            ignored = [Entry("%ignore", True, module, offset, [body]) for body, offset in found.ignored]
            self.check(found, ignored)
        return found

    # -------------------------------------------------------------------------------- definitions

    def refuse_known(
        self, found: Definitions, module: Module, name: str, defined: Symbol | Definition
    ) -> None:
        """Refuse a name that can't be defined here."""
        if name in found.entries:
            raise module.error(
                f"The {kind(defined.name)} {defined.name!r} is defined twice.",
                defined.offset,
                "%override replaces a definition.",
            )
        if defined.name.startswith("__"):
            raise module.error(
                f"The name {defined.name!r} begins with '__', which is reserved.", defined.offset
            )

    def define(self, found: Definitions, module: Module, rename: Rename, definition: Definition) -> None:
        """Add a definition."""
        name = rename(definition.name)
        self.refuse_known(found, module, name, definition)
        found.entries[name] = self.entry(name, module, rename, definition)

    def entry(self, name: str, module: Module, rename: Rename, definition: Definition) -> Entry:
        """Return the entry of a definition."""
        refuse_attributes(module, definition)
        seen: set[str] = set()
        for parameter in definition.parameters:
            if parameter.name in seen:
                raise module.error(f"The parameter {parameter.name!r} stands there twice.", parameter.offset)
            seen.add(parameter.name)
        return Entry(
            name,
            definition.is_terminal,
            module,
            definition.offset,
            [Body(definition.body, module, rename)],
            tuple(parameter.name for parameter in definition.parameters),
            definition.priority,
        )

    def override(
        self, found: Definitions, module: Module, rename: Rename, definition: Definition, extends: bool
    ) -> None:
        """Replace or extend a definition."""
        name = rename(definition.name)
        known = found.entries.get(name)
        if known is None:
            raise module.error(
                f"The {kind(definition.name)} {name!r} is not defined before, so there is nothing to "
                f"{'extend' if extends else 'override'}.",
                definition.offset,
            )
        new = self.entry(name, module, rename, definition)
        if extends and known.is_terminal != new.is_terminal:
            raise module.error(f"{name!r} is a {known.kind} where it is defined.", definition.offset)
        if not extends:
            found.entries[name] = new
            return
        if not known.bodies:
            raise module.error(f"{name!r} is only declared, so it cannot be extended.", definition.offset)
        if known.parameters != new.parameters:
            raise module.error(f"{name!r} has other parameters where it is defined.", definition.offset)
        known.bodies += new.bodies

    # -------------------------------------------------------------------------------- imports

    def imports(self, module: Module, rename: Rename, folder: Path | None, found: Definitions) -> Task[None]:
        """Add what ``module`` imports."""
        # Imports from one grammar share what it defines.
        grouped: dict[tuple[str, ...], tuple[Import, dict[str, tuple[str, Symbol]]]] = {}
        for statement in module.statements:
            if isinstance(statement, Import):
                _, aliases = grouped.setdefault(statement.path, (statement, {}))
                for symbol, alias in statement.names:
                    if is_terminal_name(symbol.name) != is_terminal_name(alias):
                        raise module.error(
                            f"{symbol.name!r} is a {kind(symbol.name)} and {alias!r} would be a {kind(alias)}.",
                            symbol.offset,
                        )
                    aliases[symbol.name] = alias, symbol
        for path, (statement, aliases) in grouped.items():
            file = self.find(module, statement, folder)
            names = {name: alias for name, (alias, _) in aliases.items()}
            inner_rename = Rename((("__".join(path), names), *rename.steps))
            inner = yield self.import_module(module, statement, file, inner_rename)
            for name, (alias, symbol) in aliases.items():
                if rename(alias) not in inner.entries:
                    raise module.error(f"{file.name} has no {kind(name)} {name!r}.", symbol.offset)
            used = self.reachable(inner, [rename(alias) for alias, _ in aliases.values()])
            for name in used:
                if name in found.entries:
                    raise module.error(
                        f"The {inner.entries[name].kind} {name!r} is imported twice.",
                        statement.offset,
                        "Use '->'.",
                    )
                found.entries[name] = inner.entries[name]

    def find(self, module: Module, statement: Import, folder: Path | None) -> Path:
        """Return the file that an import names."""
        relative = Path(*statement.path).with_suffix(_SUFFIX)
        folders = list(self.folders)
        if statement.relative and folder is not None:
            folders.append(folder)
        folders.append(_bundled())
        for place in folders:
            file = place / relative
            if file.as_posix() in self.files or file.is_file():
                return file
        hint = "Pass the folders to look in as import_paths=[...]." if not self.folders else None
        raise module.error(f"The grammar {'.'.join(statement.path)!r} is not found.", statement.offset, hint)

    def import_module(
        self, module: Module, statement: Import, file: Path, rename: Rename
    ) -> Task[Definitions]:
        """Return the definitions of a file."""
        if file in self.open:
            names = " imports ".join(path.name for path in [*self.open[self.open.index(file) :], file])
            raise module.error(f"The imports form a circle: {names}.", statement.offset)
        self.watch.at_most("nesting", len(self.open), f"the imports of {file.name}")
        known = self.modules.get(file)
        if known is None:
            text = self.file_text(module, statement, file)
            known = self.modules[file] = read(text, file.name, self.watch)
        self.imported += len(known.text)
        self.watch.at_most("positions", self.imported, f"the imports of {file.name}")
        self.open.append(file)
        found: Definitions = yield self.load(known, rename, file.parent)
        self.open.pop()
        return found

    def file_text(self, module: Module, statement: Import, file: Path) -> str:
        """Return the text of a file."""
        text = self.files.get(file.as_posix())
        if text is None:
            try:
                if file.stat().st_size > _MOST_IMPORTED_BYTES:
                    raise module.error(f"{file.name} is larger than a grammar can be.", statement.offset)
                text = file.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise module.error(f"{file.name} cannot be read: {error}.", statement.offset) from error
            if file.parent != _bundled():
                self.files[file.as_posix()] = text
        return text

    # -------------------------------------------------------------------------------- checks

    def reachable(self, found: Definitions, names: Iterable[str]) -> dict[str, None]:
        """Return the names that ``names`` need, these included, after a check of their bodies."""
        order = dict.fromkeys(names)
        todo = list(order)
        while todo:
            entry = found.entries[todo.pop()]
            for name in self.check(found, [entry]):
                if name in found.entries and name not in order:
                    order[name] = None
                    todo.append(name)
        return order

    def check(self, found: Definitions, entries: Iterable[Entry]) -> list[str]:
        """Check the names in bodies and return them."""
        names: list[str] = []
        for entry in entries:
            for body in entry.bodies:
                for symbol in symbols(body.node):
                    self.watch.step(f"{entry.kind} {entry.name!r}")
                    if symbol.name in entry.parameters:
                        continue
                    name = body.rename(symbol.name)
                    names.append(name)
                    if name not in found.entries and name not in self.given:
                        raise body.module.error(
                            f"The {kind(symbol.name)} {symbol.name!r} is used in {entry.label}, but not defined.",
                            symbol.offset,
                            _alike(name, found.entries),
                        )
        return names


def _alike(name: str, entries: Mapping[str, Entry]) -> str | None:
    from difflib import get_close_matches

    close = get_close_matches(name, list(entries)[:1000], 1)
    return f"Did you mean {close[0]!r}?" if close else None


def _bundled() -> Path:
    """Return the folder of the grammars that come with Lark, without importing it."""
    spec = importlib.util.find_spec("lark")
    if spec is None or spec.origin is None:
        raise SpecError("The grammars that come with Lark are not installed.", hint="Install 'lark'.")
    return Path(spec.origin).parent / "grammars"


def symbols(node: Node) -> list[Symbol | Usage]:
    """Return the references in ``node``, in no particular order."""
    found: list[Symbol | Usage] = []
    todo = [node]
    while todo:
        match todo.pop():
            case Symbol() as symbol:
                found.append(symbol)
            case Usage(_, arguments) as usage:
                found.append(usage)
                todo += arguments
            case Choice(parts) | Sequence(parts) | Conjunction(parts):
                todo += parts
            case Repeat(body) | Negation(body):
                todo.append(body)
    return found


_HARMLESS = {"capture", "stop_capture"}
_REFUSED = {
    "lazy": "Write the terminal so that it ends where it must.",
    "stop": "Write what stops it after the rule.",
    "suffix": "Write the suffix after the rule.",
    "max_tokens": "Limit the length with a count, as in /.{0,80}/.",
    "temperature": "Pass the temperature to generate().",
}


def refuse_attributes(module: Module, definition: Definition) -> None:
    """Refuse attributes that change what is generated."""
    for attribute in definition.attributes:
        if attribute.name in _HARMLESS:
            continue
        if attribute.name not in _REFUSED:
            raise module.error(
                f"{attribute.name!r} is no attribute of a rule.",
                attribute.offset,
                "The attributes are capture and stop_capture.",
            )
        raise module.unsupported(
            attribute.name,
            attribute.offset,
            "is an attribute that is not supported",
            _REFUSED[attribute.name],
        )
