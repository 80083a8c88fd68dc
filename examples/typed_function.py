"""A function whose return annotation is the schema and whose docstring is the prompt.

python examples/typed_function.py
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

import constrain


class Review(BaseModel, extra="forbid"):  # without it pydantic allows, and drops, keys beyond these
    """What a customer said."""

    product: Annotated[str, Field(max_length=40)]
    stars: Annotated[int, Field(ge=1, le=5)]
    mood: Literal["happy", "neutral", "angry"]
    would_buy_again: bool


@constrain.output
def read_review(text: str) -> Review:
    """Read this customer review and fill in the form: {text}"""


model = constrain.load_model()
print("spec:", read_review.spec)

review = read_review(
    "The kettle boils fast and looks great. Five stars, I would buy it again!", model=model, temperature=0.0
)
print(review)
assert isinstance(review, Review)

many = read_review.batch(
    ["The lamp broke after two days. One star.", "These headphones are okay for the price. Three stars."],
    model=model,
    temperature=0.0,
)
for review in many:
    print(review)
    assert isinstance(review, Review)
