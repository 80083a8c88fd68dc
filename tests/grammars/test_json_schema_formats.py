"""String formats against the standard library and against lists of examples."""

from __future__ import annotations

import datetime as dt
import ipaddress
import itertools
import json
import random
import unicodedata
import uuid
from collections.abc import Callable, Iterator

import pytest

import constrain
from constrain.grammars.json_schema.formats import SUPPORTED, accepts_text
from tests.reference.grammar import ReferenceGrammar
from tests.reference.json_documents import language

TOO_LARGE = {"idn-hostname"}  # for the reference matcher; so the engine is asked
EXAMPLES: dict[str, tuple[list[str], list[str]]] = {
    "date": (
        ["2024-02-29", "0001-01-01", "9999-12-31"],
        ["2023-02-29", "0000-01-01", "2024-1-1", "1900-02-29"],
    ),
    "idn-hostname": (
        [
            "example.com",
            "m\u00fcnchen.de",
            "\uc2e4\ub840.\ud14c\uc2a4\ud2b8",
            "l\u00b7l",
            "\u03b1\u0375\u03b2",
            "\u05d0\u05f3\u05d1",
        ],
        [
            *(
                "",
                "-a",
                "a-",
                "ab--c",
                "a b",
                "a..b",
                "M\u00dcNCHEN",
                "a\u00b7a",
                "\u0375S",
                "\u05d0b",
                "\u0300a",
                "e\u0301",
            ),
            *("a\u200db", "\u30fb", "\u0628\u0660\u06f0", "\u302e", "\u4e00" * 64, "\u05d0.1a"),
        ],
    ),
    "time": (
        ["00:00:00Z", "23:59:59.123+23:59", "12:00:00z", "23:59:60Z", "23:59:60.5-00:00"],
        ["24:00:00Z", "12:00:00", "12:60:00Z", "12:00:60Z", "22:59:60Z", "12:00:00.Z", "12:00:00+24:00"],
    ),
    "date-time": (
        ["2024-02-29T12:00:00Z", "1963-06-19t08:30:06.283185z", "1990-12-31T15:59:50.123-08:00"],
        ["2024-02-29 12:00:00Z", "2024-02-30T12:00:00Z", "2024-02-29T12:00:00", "2024-02-29", "2024-02-29TZ"],
    ),
    "duration": (
        ["P4DT12H30M5S", "P1Y2M3D", "PT36H", "P2W", "P1M2D", "P01D", "PT0S"],
        ["P", "PT", "P1YT", "P2D1Y", "P1D2H", "P1Y2D", "PT1H2S", "P1Y2W", "PT0.5S", "1D", "-P1D"],
    ),
    "email": (
        [
            *("joe.bloggs@example.com", "te~st@localhost", '"joe bloggs"@example.com', "a@[127.0.0.1]"),
            *("a@[IPv6:::1]", "x" * 64 + "@a.b", "a@" + ".".join(["b" * 63] * 4)),
        ],
        [
            *(".a@b.c", "a.@b.c", "a..b@c.d", "a@b=c", "a@-b.c", "a@[127.0.0.300]", "@b", "a@", "a b@c"),
            *("x" * 65 + "@a.b", "a@" + ".".join(["b" * 63] * 4) + ".b"),
        ],
    ),
    "idn-email": (["실례@실례.테스트", "δοκιμή@example.com", '"é"@a'], ["user＠example.com", "a@b c"]),
    "hostname": (
        ["www.example.com", "a", "1host", "a-b", "a--b.c", "x" * 63 + ".com"],
        ["", ".", "a.", ".a", "-a", "a-", "a_b", "x" * 64, ".".join(["x" * 50] * 6), "ab--c", "xn--a", "é"],
    ),
    "ipv4": (["0.0.0.0", "127.0.0.1", "255.255.255.255"], ["1.2.3", "1.2.3.4.5", "256.0.0.1", "01.2.3.4"]),
    "ipv6": (
        ["::", "::1", "1::", "1:2:3:4:5:6:7:8", "1::8", "1:2:3:4:5:6:7::", "::ffff:1.2.3.4", "ABCD::"],
        [":", "1:2:3:4:5:6:7", "1::2::3", ":::", "12345::", "1:2:3:4:5:6:7:8:9", "::1.2.3", "::1%eth0"],
    ),
    "uri": (
        [
            "http://foo.bar/?baz=qux#quux",
            "mailto:a@b.c",
            "urn:a:b",
            "ldap://[2001:db8::7]/c=GB?x?y",
            "a:",
            "http://",
        ],
        [
            "//foo.bar",
            "/abc",
            "abc",
            "http:// a",
            "bar,baz:foo",
            "http://a/%6",
            "http://a/<>",
            "http://a:b/",
            "é:",
        ],
    ),
    "uri-reference": (
        ["", "/abc", "abc", "#f", "?q", "//a", "./a:b", "http://a"],
        ["1:b", "#a\\b", "/%zz", "é"],
    ),
    "iri": (["http://ƒøø.ßår/?∂éœ=πîx#πîüx", "http://a"], ["âππ", "http://a b"]),
    "iri-reference": (["âππ", "#ƒrägmênt", "//ƒøø.ßår"], ["#ƒräg\\mênt", "\\\\WINDOWS"]),
    "uri-template": (
        ["", "http://e.com/{term:1}/{+term*}", "{a.b,c}", "{?x,y}", "a😀b", "{v:1000}"],
        ["{", "{}", "{a,,b}", "{v:0}", "{v:10000}", "a}b", "a b", "{a..b}", "%4"],
    ),
    "uuid": (
        ["12345678-90ab-CDEF-1234-567890abcdef"],
        ["12345678-90ab-cdef-1234-567890abcde", "1234567890ab"],
    ),
    "json-pointer": (["", "/a/~0~1", '/"\\\n/é', "//"], ["a", "/~2", "/~", "#/a"]),
    "relative-json-pointer": (["0", "12/a", "1#"], ["", "/a", "01", "-1/a", "0##", "1#/a"]),
    "regex": (
        [
            *("", "^[a-z]+$", r"^\S+@\S+\.\S+$", "(a|b)*?", "(((x)))", "^(?:[A-Z]{1,3}|[0-9]{12,34}){3,}$"),
            *(
                r"^[\w.+-]+\/\-$",
                r"[^\\\]]",
                "a|",
                "(?=x)y(?<!z)",
                "[-a]",
                "[ -~é]",
                r"[\u0000-\u1fff]",
                r"\x41",
            ),
        ],
        [
            *("(", "a)", "^(abc]", "[z-a]", "[", "a{2,1}", "a{34,12}", "*a", "a**", "\\", "^*", r"\a", r"\Z"),
            *("(?a)", "a++", "(?<n>", "{", "]", "(?", "(*)", r"\x1", r"\u12", r"[\w-a]", "(?=a)*", r"\u{41}"),
        ],
    ),
}


def _matchers() -> dict[str, ReferenceGrammar]:
    return {name: language({"type": "string", "format": name}) for name in sorted(SUPPORTED - TOO_LARGE)}


MATCHERS = _matchers()


def is_taken(name: str, text: str) -> bool:
    if name in TOO_LARGE:
        return constrain.json_schema({"type": "string", "format": name}).matches(json.dumps(text))
    return MATCHERS[name].accepts(json.dumps(text, ensure_ascii=False).encode())


@pytest.mark.parametrize("name", sorted(SUPPORTED))
def test_formats_take_examples_of_their_standards(name: str) -> None:
    """Each format takes examples its standard allows, and none it forbids."""
    members, others = EXAMPLES[name]
    for text in members:
        assert is_taken(name, text), text
    for text in others:
        assert not is_taken(name, text), text


def test_every_standard_format_is_known() -> None:
    """The formats of draft 2020-12 are supported."""
    standard = {
        *("date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4"),
        *("ipv6", "uri", "uri-reference", "iri", "iri-reference", "uuid", "uri-template", "json-pointer"),
        *("relative-json-pointer", "regex"),
    }
    assert standard == SUPPORTED


def _dates() -> Iterator[str]:
    for year in ("1900", "2000", "2023", "2024", "0004", "0100", "0000", "9996"):
        for month, day in itertools.product(range(14), range(33)):
            yield f"{year}-{month:02}-{day:02}"


def _times() -> Iterator[str]:
    for hour, minute, second in itertools.product((0, 9, 19, 23, 24, 30), (0, 59, 60), (0, 59, 61)):
        for tail in ("Z", ".5Z", "+00:00", "-23:59", "+24:00"):
            yield f"{hour:02}:{minute:02}:{second:02}{tail}"


def _addresses() -> Iterator[str]:
    for n in range(1, 6):
        for parts in itertools.product(("0", "1.", "255", "256", "00", "."), repeat=min(n, 3)):
            yield ".".join(parts) + ".1" * (n - 3)
    for n in range(10):
        for left in range(n + 1):
            yield ":".join(["1"] * left) + "::" + ":".join(["ab"] * (n - left))
            yield ":".join(["1"] * left) + "::" + ":".join([*["ab"] * (n - left), "1.2.3.4"])
        yield ":".join(["1"] * n)
        yield ":".join([*["1"] * n, "1.2.3.4"])


@pytest.mark.parametrize(
    ("name", "texts", "read"),
    [
        ("date", _dates, dt.date.fromisoformat),
        ("time", _times, dt.time.fromisoformat),
        ("ipv4", _addresses, ipaddress.IPv4Address),
        ("ipv6", _addresses, ipaddress.IPv6Address),
    ],
)
def test_formats_agree_with_the_standard_library(
    name: str, texts: Callable[[], Iterator[str]], read: Callable[[str], object]
) -> None:
    """Dates, times and addresses are taken exactly if the standard library reads them."""
    for text in texts():
        try:
            read(text)
            expected = True
        except ValueError:
            expected = False
        assert is_taken(name, text) == expected, text


def test_uuids_of_the_standard_library_are_taken() -> None:
    """UUIDs are taken as they are printed."""
    for n in (0, 1, 2**128 - 1, 0x0123456789ABCDEF << 60):
        assert is_taken("uuid", str(uuid.UUID(int=n)))


def test_internationalised_names_are_valid() -> None:
    """Labels drawn from one or two scripts, with characters that need a context, are names to another library."""
    idna = pytest.importorskip("idna", reason="the oracle")
    rng = random.Random(1)
    scripts = (
        "HEBREW",
        "ARABIC",
        "TAMIL",
        "GREEK",
        "CYRILLIC",
        "HIRAGANA",
        "KATAKANA",
        "DEVANAGARI",
        "COMBINING",
    )
    letters = [
        chr(code)
        for code in range(0x80, 0xD800)
        if unicodedata.category(chr(code)) in ("Ll", "Lo", "Mn", "Mc", "Nd")
    ]
    pools = [[letter for letter in letters if unicodedata.name(letter).startswith(name)] for name in scripts]
    special = "\u00b7\u0375\u05f3\u05f4\u30fb\u200c\u200d-a1l0."
    n_taken = 0
    for _ in range(1500):
        pool = rng.choice(pools)
        sources = [pool, pool, pool, special, rng.choice(pools)]
        text = "".join(rng.choice(rng.choice(sources)) for _ in range(rng.randrange(1, 6)))
        if accepts_text("idn-hostname", text):
            idna.encode(text, strict=True)
            n_taken += 1
    assert n_taken > 300
