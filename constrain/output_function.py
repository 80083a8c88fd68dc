"""The ``@output`` decorator: a function whose annotation is the schema and whose docstring is the prompt.

::

    @constrain.output
    def extract(text: str) -> Invoice:
        \"\"\"Extract the invoice from: {text}\"\"\"

    extract("Invoice no. 7, 12.50 EUR", model=model)     # -> Invoice(number=7, total=12.5)

The docstring is a format string over the parameters; a brace of the prompt itself is doubled. The
body is never run.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import string
import threading
import typing
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from constrain.errors import DeadEndError, OptionError, SpecError

if TYPE_CHECKING:
    from constrain.generation import Generation, PartialGeneration
    from constrain.protocols import LogitsBackend
    from constrain.requests import Prompt
    from constrain.spec import Spec

__all__ = ["OutputFunction", "output"]

T = TypeVar("T")

_default: list[LogitsBackend] = []
_default_lock = threading.Lock()


def default_model() -> LogitsBackend:
    """The embedded model, loaded once for the process."""
    from constrain.models import load_model

    with _default_lock:
        if not _default:
            _default.append(load_model())
        return _default[0]


class OutputFunction(Generic[T]):
    """A function that a language model carries out; made by ``output``.

    Called with the function's arguments it returns the parsed value, for an ``async def`` a
    coroutine of it. ``model=`` (default: the embedded model, loaded once) and the keyword arguments
    of ``constrain.generate`` go along with them; a parameter of the function comes before an option
    of the same name.
    """

    def __init__(self, function: Callable[..., T], options: Mapping[str, Any]) -> None:
        self._name: str = getattr(function, "__qualname__", repr(function))
        self._function = function
        self._options = dict(options)
        self._signature = inspect.signature(function)
        self._is_async = inspect.iscoroutinefunction(function)
        self._instance: tuple[Any, ...] = ()
        self._spec: Spec | None = None
        self._template = _template(function, self._name, self._signature)
        functools.update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"<output function {self._name}>"

    def __get__(self, instance: object, owner: type | None = None) -> OutputFunction[T]:
        if instance is None:
            return self
        bound = copy.copy(self)
        bound._instance = (instance,)
        return bound

    @property
    def spec(self) -> Spec:
        """The spec of the return annotation.

        Made at first use, so that the annotation may name types that are defined further down.

        Raises
        ------
        SpecError
            The annotation cannot be resolved, or its type cannot be written as JSON.
        """
        if self._spec is None:
            from constrain.requests import as_spec

            try:
                annotation = typing.get_type_hints(self._function, include_extras=True)["return"]
            except NameError as error:
                raise SpecError(
                    f"The annotations of {self._name}() cannot be resolved: {error}.",
                    hint="Define the types at the top level of the module.",
                ) from error
            self._spec = as_spec(annotation)
        return self._spec

    def prompt(self, *args: Any, **kwargs: Any) -> str:
        """The docstring with the arguments filled in."""
        bound = self._signature.bind(*self._instance, *args, **kwargs)
        bound.apply_defaults()
        return self._template.format_map(bound.arguments)

    def __call__(self, *args: Any, **kwargs: Any) -> T:
        """Fill in the prompt, generate, and return the value."""
        arguments, options = self._split(kwargs)
        text = self.prompt(*args, **arguments)
        value: T = self._run(lambda: _complete(self._generate(text, options)))
        return value

    def batch(self, items: Iterable[Any], **options: Any) -> Any:
        """Carry the function out on many arguments at once.

        Parameters
        ----------
        items : iterable
            For each call a mapping of parameters, a tuple of positional arguments, or the only one.
        **options
            ``model=`` and keyword arguments of ``constrain.generate``.

        Returns
        -------
        list of values, or a coroutine of it
        """
        texts = [self._item_prompt(item) for item in items]
        return self._run(lambda: [_complete(result) for result in self._generate(texts, options)])

    def stream(self, *args: Any, **kwargs: Any) -> Any:
        """Carry the function out and show the value as it grows.

        Returns
        -------
        iterator of PartialGeneration, at last Generation; for an ``async def`` an async iterator
        """
        from constrain.generation import stream

        arguments, given = self._split(kwargs)
        text = self.prompt(*args, **arguments)

        def start() -> Iterator[PartialGeneration | Generation]:
            model, options = self._model(given)
            return stream(model, _chat(model, text), self.spec, **options)

        return _stream_async(start) if self._is_async else start()

    def _split(self, kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Keyword arguments of the function, and options of generation."""
        own = self._signature.parameters
        arguments = {name: value for name, value in kwargs.items() if name in own}
        return arguments, {name: value for name, value in kwargs.items() if name not in own}

    def _item_prompt(self, item: Any) -> str:
        if isinstance(item, Mapping):
            return self.prompt(**item)
        return self.prompt(*item) if isinstance(item, tuple) else self.prompt(item)

    def _model(self, options: Mapping[str, Any]) -> tuple[LogitsBackend, dict[str, Any]]:
        merged = {**self._options, **options}
        model = merged.pop("model", None)
        return (default_model() if model is None else model), merged

    def _generate(self, text: str | list[str], options: Mapping[str, Any]) -> Any:
        from constrain.generation import generate

        model, options = self._model(options)
        if options.get("n", 1) != 1:
            raise OptionError(
                "An output function returns one value a call; use constrain.generate() for n > 1."
            )
        if options.get("method") == "smc":
            raise OptionError(
                "An output function returns one value a call, and method='smc' a posterior; use "
                "constrain.generate()."
            )
        prompt = _chat(model, text) if isinstance(text, str) else [_chat(model, one) for one in text]
        return generate(model, prompt, self.spec, **options)

    def _run(self, work: Callable[[], Any]) -> Any:
        return asyncio.to_thread(work) if self._is_async else work()


def _complete(result: Generation) -> Any:
    """The value of an output.

    Raises
    ------
    DeadEndError
        A weighted method gave up on it.
    """
    if not result.is_complete:
        raise DeadEndError(
            f"The output was cut at step {len(result.token_ids)}, with weight 0, after {result.text[-60:]!r}. "
            "Give more max_tokens, or use method='local', whose outputs are always complete."
        )
    return result.value


@overload
def output(function: Callable[..., T], /) -> OutputFunction[T]: ...
@overload
def output(**options: Any) -> Callable[[Callable[..., T]], OutputFunction[T]]: ...
def output(function: Callable[..., T] | None = None, /, **options: Any) -> Any:
    """Turn a function into one that a language model carries out.

    Parameters
    ----------
    function : callable
        Its return annotation is the type of the output, its docstring the prompt, a format string
        over its parameters. ``def`` or ``async def``, methods too; the body is never run.
    **options
        ``model=`` and keyword arguments of ``constrain.generate`` for every call.

    Returns
    -------
    OutputFunction, or a decorator where only options are given

    Raises
    ------
    SpecError
        The docstring or the annotation is missing, or they don't fit the parameters.
    """
    if function is None:
        return lambda decorated: OutputFunction(decorated, options)
    if not callable(function):
        raise OptionError(f"@output decorates functions, not {type(function).__name__}.")
    return OutputFunction(function, options)


def _template(function: Callable[..., Any], name: str, signature: inspect.Signature) -> str:
    """The docstring, checked against the parameters."""
    template = inspect.getdoc(function)
    if not template:
        raise SpecError(
            f"{name}() has no docstring, which is its prompt.",
            hint='Write one that names the parameters: """Extract the date from: {text}""".',
        )
    if signature.return_annotation is inspect.Signature.empty:
        raise SpecError(
            f"{name}() has no return annotation, which is the type of its output.",
            hint="Write one: def extract(text: str) -> Invoice.",
        )
    parameters = signature.parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        raise SpecError(f"{name}() takes **keywords, which can't be told from options. Name the parameters.")
    used = set()
    pending = [template]
    while pending:
        for field, format_spec in _fields(pending.pop(), name, template):
            base = field.partition(".")[0].partition("[")[0]
            if base not in parameters:
                raise SpecError(
                    f"The docstring of {name}() has the placeholder {{{field}}}, but the function has no "
                    f"parameter {base!r} (it has {', '.join(map(repr, parameters)) or 'none'}).",
                    source=template,
                    offset=max(template.find("{" + field), 0),
                    hint="A brace that belongs to the prompt is doubled: {{ }}.",
                )
            used.add(base)
            pending.append(format_spec)
    unused = [
        parameter for parameter in parameters if parameter not in used and parameter not in ("self", "cls")
    ]
    if unused:
        raise SpecError(
            f"The docstring of {name}() doesn't use the parameter {unused[0]!r}, so it would have no effect.",
            hint=f"Write {{{unused[0]}}} where its value belongs.",
        )
    return template


def _fields(text: str, name: str, template: str) -> list[tuple[str, str]]:
    """Placeholders of a format string with their format specifications."""
    try:
        parsed = list(string.Formatter().parse(text))
    except ValueError as error:
        raise SpecError(
            f"The docstring of {name}() is no format string: {error}.",
            source=template,
            offset=max(template.rfind("{"), template.rfind("}"), 0),
            hint="A brace that belongs to the prompt is doubled: {{ }}.",
        ) from error
    return [(field, format_spec or "") for _, field, format_spec, _ in parsed if field is not None]


def _chat(model: LogitsBackend, text: str) -> Prompt:
    """One message to a chat model, plain text to any other."""
    return [{"role": "user", "content": text}] if model.has_chat_template else text


async def _stream_async(
    start: Callable[[], Iterator[PartialGeneration | Generation]],
) -> AsyncIterator[PartialGeneration | Generation]:
    """The items of an iterator that is made and advanced in threads."""
    iterator = await asyncio.to_thread(start)
    while (item := await asyncio.to_thread(next, iterator, None)) is not None:
        yield item
