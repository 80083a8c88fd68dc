"""The ``@output`` decorator on a tiny random model: any value is right as long as it is of the type."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

import constrain
from constrain.errors import LimitExceededError, OptionError, SpecError
from tests.backends.tiny_models import byte_tokenizer, tiny_llama

EAGER = {"max_tokens": 80, "seed": 0}


@dataclass
class Point:
    x: Annotated[int, Field(ge=0, le=99)]
    colour: Literal["red", "green"]


class Box(BaseModel):
    corner: Point
    size: Annotated[int, Field(ge=1, le=9)]


@pytest.fixture(scope="module")
def model() -> Any:
    return constrain.from_transformers(tiny_llama(258, seed=2), byte_tokenizer())


@constrain.output
def locate(text: str, unit: str = "cm") -> Point:
    """Find the point in {text}, in {unit}. Answer like {{"x": 1}}."""


@constrain.output(max_tokens=90, temperature=0.7)
async def locate_later(text: str) -> Box:
    """Find the box in {text}."""


def test_call_returns_the_annotated_type(model: Any) -> None:
    """A call returns a value of the return annotation."""
    point = locate("here", model=model, **EAGER)
    assert isinstance(point, Point) and 0 <= point.x <= 99 and point.colour in ("red", "green")


def test_prompt_is_the_docstring_with_arguments() -> None:
    """Arguments and defaults fill the docstring; doubled braces are single ones."""
    assert locate.prompt("a map", unit="m") == 'Find the point in a map, in m. Answer like {"x": 1}.'
    assert locate.prompt(text="a map").startswith("Find the point in a map, in cm.")
    with pytest.raises(TypeError, match="text"):
        locate.prompt()


def test_looks_like_the_function() -> None:
    """Name, docstring, module and signature are those of the function; the spec is that of the type."""
    assert locate.__name__ == "locate" and locate.__module__ == __name__
    assert locate.__doc__ is not None and locate.__doc__.startswith("Find")
    assert list(inspect.signature(locate).parameters) == ["text", "unit"]
    assert isinstance(locate.spec, constrain.Spec)
    assert locate.spec.matches('{"x": 5, "colour": "red"}') and not locate.spec.matches('{"x": 500}')


def test_seed_fixes_the_value(model: Any) -> None:
    """The options of ``generate`` go along: equal seeds give equal values."""
    assert locate("here", model=model, **EAGER) == locate("here", model=model, **EAGER)


def test_batch(model: Any) -> None:
    """A batch takes single arguments, tuples and mappings, and returns one value each."""
    points = locate.batch(["a", ("b", "m"), {"text": "c", "unit": "km"}], model=model, **EAGER)
    assert len(points) == 3 and all(isinstance(point, Point) for point in points)
    assert locate.batch([], model=model) == []


def test_stream_ends_with_the_value(model: Any) -> None:
    """A stream shows finished parts, and ends with the value that a call returns."""
    *parts, last = locate.stream("here", model=model, **EAGER)
    assert last.is_complete and last.value == locate("here", model=model, **EAGER)
    assert parts and all(not part.is_complete for part in parts)
    for part in parts:
        for name, value in (part.value or {}).items():
            assert getattr(last.value, name) == value


def test_async_functions(model: Any) -> None:
    """An ``async def`` is awaited: call, batch and stream."""

    async def main() -> None:
        box = await locate_later("there", model=model, seed=1)
        assert isinstance(box, Box) and isinstance(box.corner, Point)
        both = await asyncio.gather(*(locate_later("there", model=model, seed=1) for _ in range(2)))
        assert both == [box, box]
        boxes = await locate_later.batch(["a", "b"], model=model, seed=1)
        assert all(isinstance(one, Box) for one in boxes)
        items = [item async for item in locate_later.stream("there", model=model, seed=1)]
        assert items[-1].value == box

    asyncio.run(main())


def test_options_of_the_decorator_are_defaults(model: Any) -> None:
    """Options given to the decorator hold for every call, and a call can override them."""

    @constrain.output(model=model, max_tokens=3)
    def locate_shortly(text: str) -> Point:
        """Find {text}."""

    with pytest.raises(LimitExceededError, match="max_tokens=3"):
        locate_shortly("it")
    assert isinstance(locate_shortly("it", max_tokens=80), Point)


def test_methods(model: Any) -> None:
    """A method is bound to its instance, whose attributes the docstring may use."""

    class Mapper:
        def __init__(self, place: str) -> None:
            self.place = place

        @constrain.output
        def find(self, text: str) -> Point:
            """Find {text} in {self.place}."""

    assert Mapper("Rome").find.prompt("it") == "Find it in Rome."
    assert isinstance(Mapper("Rome").find("it", model=model, **EAGER), Point)


def test_default_model_is_loaded_once(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ``model=`` the embedded model is loaded, at the first call only."""
    loads = []
    monkeypatch.setattr("constrain.models.load_model", lambda: loads.append(1) or model)
    monkeypatch.setattr("constrain.output_function._default", [])
    for _ in range(2):
        assert isinstance(locate("here", **EAGER), Point)
    assert loads == [1]


def no_docstring(text: str) -> Point: ...


def no_annotation(text: str):  # type: ignore[no-untyped-def]
    """Find {text}."""


def unknown_placeholder(text: str) -> Point:
    """Find {text} in {place}."""


def single_brace(text: str) -> Point:
    """Find {text} as {"x": 1}."""


def open_brace(text: str) -> Point:
    """Find {text} as {x"""


def unused(text: str, unit: str) -> Point:
    """Find {text}."""


def nested_placeholder(text: str) -> Point:
    """Find {text:>{width}}."""


def keywords(text: str, **more: str) -> Point:
    """Find {text}."""


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (no_docstring, "no_docstring\\(\\) has no docstring"),
        (no_annotation, "no_annotation\\(\\) has no return annotation"),
        (unknown_placeholder, "placeholder {place}, but .* no parameter 'place' \\(it has 'text'\\)"),
        (single_brace, "doubled"),
        (open_brace, "no format string"),
        (unused, "doesn't use the parameter 'unit'"),
        (nested_placeholder, "no parameter 'width'"),
        (keywords, "takes \\*\\*keywords"),
    ],
)
def test_faulty_functions(function: Any, text: str) -> None:
    """A docstring or annotation that can't work is refused when the function is decorated."""
    with pytest.raises(SpecError, match=text):
        constrain.output(function)


def test_caret_points_at_the_placeholder() -> None:
    """The message about an unknown placeholder shows its place in the docstring."""
    with pytest.raises(SpecError) as caught:
        constrain.output(unknown_placeholder)
    assert caught.value.line == 1 and caught.value.column == len("Find {text} in {")


def unresolvable(text: str) -> Missing:  # type: ignore[name-defined]  # noqa: F821
    """Find {text}."""


def test_unresolvable_annotation() -> None:
    """An annotation that names no type is an error that says so, at first use."""
    with pytest.raises(SpecError, match="cannot be resolved: name 'Missing'"):
        _ = constrain.output(unresolvable).spec


def test_unknown_options(model: Any) -> None:
    """An option that ``generate`` doesn't have is refused, and so are several values a call."""
    with pytest.raises(OptionError, match="no argument 'warmth'"):
        locate("here", model=model, warmth=2)
    with pytest.raises(OptionError, match="one value a call"):
        locate("here", model=model, n=2)
    with pytest.raises(OptionError, match="decorates functions"):
        constrain.output(3)  # type: ignore[call-overload]
