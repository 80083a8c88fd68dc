"""Random structural tags: members and masks are those of a reader that tries every text.

The reader knows nothing of automata: it cuts texts where a word is complete for the first time. Formats nest, triggers
begin and end in one another, ends stand in contents, and tokens reach over all of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.errors import EmptyLanguageError, SpecError, UnsupportedFeatureError
from constrain.tokenizer_index.vocabulary import Vocabulary

ALPHABET = "a<"
OTHER = "x"  # stands for all letters that no word has
LONGEST = 7
TEXTS = ["".join(letters) for n in range(LONGEST + 1) for letters in product(ALPHABET + OTHER, repeat=n)]
TOKENS = [token for token in TEXTS[1:] if len(token) <= 2]
VOCABULARY = Vocabulary.from_tokens(
    [*(bytes([byte]) for byte in range(256)), None, *(t.encode() for t in TOKENS)], eos_token_ids=256
)
_MOST = 3


class Reader:
    """Reads texts as a format; all methods give the set of places where reading may end."""

    def __init__(self, text: str) -> None:
        self.text = text

    def fixed(self, places: set[int], ends: list[str]) -> set[int]:
        if not ends:
            return places
        return {i + len(end) for i in places for end in ends if self.text.startswith(end, i)}

    def cut(self, i: int, words: list[str], end: str) -> set[int]:
        """Read text up to and including ``end``, where none of ``words`` is complete before."""
        for j in range(i + 1, len(self.text) + 1):
            if any(len(word) <= j - i and self.text.endswith(word, i, j) for word in words):
                return {j} if len(end) <= j - i and self.text.endswith(end, i, j) else set()
        return set()

    def free(self, i: int, excludes: list[str], ends: list[str]) -> set[int]:
        cuts = [*(end for end in ends if end), *excludes]
        found = set()
        for end in ends or [""]:
            if end:
                found |= self.cut(i, cuts, end)
            else:
                inside = (j for j in range(i, len(self.text) + 1))
                found |= {j for j in inside if not any(word in self.text[i:j] for word in cuts)}
        return found

    def read(self, given: dict[str, Any], i: int, ends: list[str]) -> set[int]:
        kind = given["type"]
        if kind == "const_string":
            return self.fixed({i} if not given["value"] else self.fixed({i}, [given["value"]]), ends)
        if kind == "any_text":
            return self.free(i, given.get("excludes", []), ends)
        if kind == "sequence":
            places = {i}
            for part in given["elements"][:-1]:
                places = {j for place in places for j in self.read(part, place, [])}
            return {j for place in places for j in self.read(given["elements"][-1], place, ends)}
        if kind == "or":
            return {j for part in given["elements"] for j in self.read(part, i, ends)}
        if kind == "repeat":
            found, places = set(), {i}
            for n in range(given["max"] + 1):
                if n >= given["min"]:
                    found |= places
                places = {j for place in places for j in self.read(given["content"], place, [])}
            return self.fixed(found, ends)
        if kind == "tag":
            return self.tag(given, given["begin"], i, ends)
        if kind == "tags_with_separator":
            return self.separated(given, i, ends)
        return self.triggered(given, i, ends)

    def tag(self, given: dict[str, Any], begin: str, i: int, ends: list[str]) -> set[int]:
        """Read a tag of whose beginning ``begin`` is left."""
        own = given["end"] if isinstance(given["end"], list) else [given["end"]]
        if begin and not self.text.startswith(begin, i):
            return set()
        if any(own):
            return self.fixed(self.read(given["content"], i + len(begin), own), ends)
        return self.read(given["content"], i + len(begin), ends)

    def separated(self, given: dict[str, Any], i: int, ends: list[str]) -> set[int]:
        found = set() if given["at_least_one"] else {i}
        places = {i}
        seen: set[int] = set()
        while places:
            places = {
                j for place in places for one in given["tags"] for j in self.tag(one, one["begin"], place, [])
            }
            found |= places
            if given["stop_after_first"]:
                break
            separator = [given["separator"]] if given["separator"] else []
            places = self.fixed(places, separator) - seen
            seen |= places
        return self.fixed(found, ends)

    def triggered(self, given: dict[str, Any], i: int, ends: list[str]) -> set[int]:
        triggers, excludes = given["triggers"], given["excludes"]
        cuts = [*triggers, *excludes, *(end for end in ends if end)]
        found: set[int] = set()
        seen: set[int] = set()
        places = {i}
        n = 0
        while places:
            if (n or not given["at_least_one"]) and not (n and given["stop_after_first"]):
                found |= {j for place in places for j in self.free(place, [*triggers, *excludes], ends)}
            if n and given["stop_after_first"]:
                return found | self.fixed(places, ends)
            after: set[int] = set()
            for trigger in triggers:
                tags = [
                    one
                    for one in given["tags"]
                    if min((t for t in triggers if one["begin"].startswith(t)), key=len) == trigger
                ]
                for place in places:
                    for j in self.cut(place, cuts, trigger):
                        for one in tags:
                            after |= self.tag(one, one["begin"][len(trigger) :], j, [])
            places = after - seen
            seen |= after
            n += 1
        return found


def words(rng: random.Random, longest: int = 3) -> str:
    return "".join(rng.choices(ALPHABET, k=rng.randint(1, longest)))


def random_format(rng: random.Random, depth: int) -> dict[str, Any]:
    """Return a format; deeper ones are simpler."""
    kinds = ["const_string", "any_text"]
    if depth < 3:
        kinds += [
            "sequence",
            "or",
            "repeat",
            "tag",
            "triggered_tags",
            "triggered_tags",
            "tags_with_separator",
        ]
    kind = rng.choice(kinds) if depth else rng.choice(kinds[2:])
    made: dict[str, Any] = {"type": kind}
    if kind == "const_string":
        made["value"] = words(rng)
    elif kind == "any_text":
        made["excludes"] = [words(rng) for _ in range(rng.choice([0, 0, 1, 2]))]
    elif kind in ("sequence", "or"):
        made["elements"] = [random_format(rng, depth + 1) for _ in range(rng.randint(1, 3))]
    elif kind == "repeat":
        made |= {"content": random_format(rng, depth + 1), "min": rng.randint(0, 1)}
        made["max"] = made["min"] + rng.randint(0, 2)
    elif kind == "tag":
        made = random_tag(rng, words(rng), depth)
    else:
        triggers = list(dict.fromkeys(words(rng) for _ in range(rng.randint(1, 3))))
        begins = [
            rng.choice(triggers) + rng.choice(["", words(rng, 2)]) for _ in range(rng.randint(1, _MOST))
        ]
        made["tags"] = [random_tag(rng, begin, depth) for begin in begins]
        made |= {"at_least_one": rng.random() < 0.5, "stop_after_first": rng.random() < 0.4}
        if kind == "triggered_tags":
            made |= {"triggers": triggers, "excludes": [words(rng) for _ in range(rng.choice([0, 0, 1]))]}
        else:
            made["separator"] = rng.choice(["", words(rng)])
    return made


def random_tag(rng: random.Random, begin: str, depth: int) -> dict[str, Any]:
    end: Any = rng.choice(["", words(rng), words(rng), [words(rng), words(rng)], ["", words(rng)]])
    return {"type": "tag", "begin": begin, "content": random_format(rng, depth + 1), "end": end}


def formats(seed: int, n: int) -> Iterator[dict[str, Any]]:
    rng = random.Random(seed)
    for _ in range(n):
        yield random_format(rng, 0)


@cache
def mask_of_text(spec: constrain.Spec, text: str) -> frozenset[int]:
    compiled = constrain.compile(spec, VOCABULARY, cache=False)
    matcher = compiled.matcher()
    assert matcher.accept_string(text)
    mask = constrain.allocate_token_bitmask(1, VOCABULARY.size)
    matcher.fill_next_token_bitmask(mask, 0)
    return frozenset(np.flatnonzero(np.unpackbits(mask[0].view(np.uint8), bitorder="little")).tolist())


@pytest.mark.parametrize("seed", range(5))
def test_members_and_masks(seed: int) -> None:
    n_checked = 0
    for given in formats(seed, 6):
        members = {text for text in TEXTS if len(text) in Reader(text).read(given, 0, [])}
        try:
            spec = constrain.structural_tag(given)
        except EmptyLanguageError:
            assert not members, given
            continue
        except UnsupportedFeatureError:
            raise
        except SpecError as error:
            # A trigger in which another one is complete earlier, or a tag that begins with none.
            assert "trigger" in str(error), given
            continue
        wrong = [text for text in TEXTS if spec.matches(text) != (text in members)]
        assert not wrong, (given, wrong[:5])
        # Far from the longest texts, what members begin with is all that masks may allow.
        alive = {member[:i] for member in members for i in range(len(member) + 1)}
        rng = random.Random(seed)
        for text in rng.sample(sorted(t for t in alive if len(t) <= 3), k=3) if len(alive) > 9 else []:
            mask = mask_of_text(spec, text)
            assert (256 in mask) == (text in members), (given, text)
            for i, token in enumerate(TOKENS):
                if text + token in alive:
                    assert 257 + i in mask, (given, text, token)
                elif 257 + i in mask:
                    # Only if what follows is longer than the texts that were tried.
                    longer = constrain.compile(spec, VOCABULARY, cache=False).matcher()
                    assert longer.accept_string(text + token)
                    shortest = longer.min_tokens_to_finish()
                    assert int(shortest) * 2 + len(text + token) > LONGEST, (given, text, token)
            n_checked += 1
    assert n_checked > 2
