"""Python's dialect: the same texts as `re.fullmatch`, and the same patterns refused."""

from __future__ import annotations

import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrain.grammars.errors import LimitExceededError, SpecError, UnsupportedFeatureError
from constrain.grammars.ir import CharacterClass, Pattern, Repeat
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.regex.parse import parse_regex
from tests.reference.patterns import matches
from tests.strategies import fixed

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")

LABEL = r"(?!-)[a-z0-9-]{1,63}(?<!-)"
# Patterns people write, each with members to mutate.
CORPUS: list[tuple[str, list[str]]] = [
    (r"[0-9]+(\.[0-9]+)?", ["1", "10.25"]),
    (r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)*\.[a-zA-Z]{2,}", ["john.smith+x@mail.example.co.uk"]),
    (r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", ["2024-02-29", "1999-12-31"]),
    (r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?", ["23:59:59.5Z", "00:00+0530"]),
    (
        r"https?://([a-z0-9-]+\.)+[a-z]{2,6}(:[0-9]{1,5})?(/[^ ?#]*)?(\?[^ #]*)?(#[^ ]*)?",
        ["http://a-b.io:80/x?q#f"],
    ),
    (r"((25[0-5]|2[0-4]\d|1?\d?\d)(\.(?!$)|$)){4}", ["192.168.0.1", "255.255.255.255"]),
    (
        r"[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        ["123e4567-e89b-12d3-a456-426614174000"],
    ),
    (
        r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[\da-z-]+(\.[\da-z-]+)*)?(\+[\w.-]+)?",
        ["1.0.0-alpha.1+b.5"],
    ),
    (r"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", ["VGhlIHF1aWNrIQ==", ""]),
    (r"(?=.*[A-Z])(?=.*[a-z])(?=.*\d)(?!.*(?:pass|word))[A-Za-z\d]{8,20}", ["Secret123", "Passw0rdOk"]),
    (rf"(?=.{{1,20}}$)(?:{LABEL}\.)+[a-z]{{2,}}", ["a-b.example.com", "x.y.zz"]),
    (r"(?:(?!-->)[\s\S])*-->", ["a - b --x-->", "-->"]),
    (r"/\*((?!\*/).)*\*/", ["/* a * b */", "/**/"]),
    (r'"(?:[^"\\]|\\.)*"', ['"a \\" b"', '""']),
    (r"'(?:[^'\\\n]++|\\.)*+'", ["'a\\'b'", "''"]),
    (r"#(?:[0-9a-fA-F]{3}){1,2}\b", ["#fff", "#a0B1c2"]),
    (r"\bfoo\b.*\bbar\b", ["foo bar", "foo x bar", "foo-bar"]),
    (r"(?:\b\w+\b[ ,]*)+", ["one two, three", "a"]),
    (r"\w+(?: \w+)*", ["naïve café", "日本 語"]),
    (r"(?i)(mon|tues|wednes)day, \d{1,2} \w+", ["Monday, 3 août", "TUESDAY, 12 x"]),
    (r"(?i:straße|ſ|k)+", ["STRAßE", "sſK\u212a"]),
    (r"(?m)^a$\n^b$", ["a\nb"]),
    (r"(?m)(?:^\d+$\n?)+", ["1\n22\n3\n", "1"]),
    (r"a$\n?", ["a", "a\n"]),
    (r"^(https?://|/?.?-?(?!\w+://)\w).+\.ya?ml$", ["https://x/y.yml", "./a/b.yaml", "a://b.yml"]),
    (r"^(?!org\.bukkit\.)([a-zA-Z_$][\w$]*\.)*[a-zA-Z_$][\w$]*$", ["com.x.Y", "org.bukkit.A"]),
    (r"(?<!\d)\d{3}(?!\d)", ["123"]),
    (r"\d+(?<!13)(?<![02468])", ["113", "17", "21"]),
    (r"(\d{1,3}(?=(\d{3})+$))?(\d{3})+", ["123456", "1234"]),
    (r"[^\W\d_]+", ["été", "x"]),
    (r"[\s\S]{0,5}", ["a\nb", ""]),
    (r"(?s:.)+?[.]", ["a\n."]),
    (r"(?x) \d+  # digits" + "\n" + r" [ ] \# \ [#]", ["12 # #"]),
    (r"M{0,3}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})", ["MCMXCIV", "XII"]),
    (r"<(?P<tag>[a-z]+)(?:\s+[a-z]+(?:=\"[^\"]*\")?)*\s*/?>", ['<a href="x" b>', "<br/>"]),
    (r"(?:(?:\r\n|[\r\n\t ])*\S+)*", ["a\r\nb c", ""]),
    (r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", ["-0.5e+10", "12"]),
    (r"[\u0041-\x5A\U0001F600-\U0001F64F\N{EM DASH}\101]+", ["A😀—"]),
    (r"\p{Lu}\p{Ll}*(?: \p{Lu}\p{Ll}*)*", ["Élan Vital"]),
    (r"(a|ab)(c|bcd)(d*)", ["abcd", "abcdd", "acd"]),
    (r"(x+x+)+y", ["xxxxxy"]),
    (r"(a?){3}a{3}", ["aaa", "aaaaaa"]),
    (r"(?:a|b|ab)*?c{2,}?", ["aabbabcc"]),
    (r"[]a-]+[^]]", ["]-ab"]),
    (r"a{,2}b{1,}c{2}d{", ["aabccd{"]),
    (r"x{2,3}{a}|y{ 1}|z{}", ["xx{a}", "y{ 1}", "z{}"]),
    (r"(?>a+)b|(?>ab|a)c", ["aab", "abc", "ac"]),
    (r"(?:ab)*+c|\d{2,3}+4", ["ababc", "1234"]),
    (r"(?:(?!ab)[abc]){2,20}", ["bacc", "accacb"]),
    (r"x(?:(?<!ab)[abc]){9,12}y", ["xaacbbbacbbby"]),
    (r"\A(?:\d\Z|\w\B-)+-?", ["7", "a--"]),
    ("", [""]),
]


def read(pattern: str, flags: str = "") -> Pattern:
    return parse_regex(pattern, flags, watch=Watch(Limits(compile_seconds=60)))


def as_python(pattern: str) -> str:
    """Without ``\\p``, which `re` lacks."""
    letters = {r"\p{Lu}": "[A-ZÀ-ÖØ-Þ]", r"\p{Ll}": "[a-zß-öø-ÿ]"}
    for name, plain in letters.items():
        pattern = pattern.replace(name, plain)
    return pattern


def mutate(text: str, rng: random.Random) -> str:
    place = rng.randrange(len(text) + 1)
    other = rng.randrange(len(text) + 1)
    extra = rng.choice([*"aAzZ09_- .\n-/<>\"'é🙏", *text] or ["x"])
    low, high = sorted((place, other))
    return rng.choice(
        [
            text[:place] + extra + text[place:],
            text[:place] + extra + text[place + 1 :],
            text[:low] + text[high:],
            text[:high] + text[low:],
            text[:place] + text[place + 1 :],
            text + text,
            text + "\n",
        ]
    )


@pytest.mark.parametrize(("pattern", "members"), CORPUS, ids=range(len(CORPUS)))
def test_real_patterns_agree_with_re(pattern: str, members: list[str]) -> None:
    """Members and mutated members get the answer of `re.fullmatch`."""
    ours = read(pattern)
    theirs = re.compile(as_python(pattern))
    rng = random.Random(pattern)
    texts = list(members)
    for _ in range(40):
        texts.append(mutate(rng.choice(texts), rng))
    texts = [text for text in texts if len(text) < 60]
    assert any(theirs.fullmatch(text) for text in members)
    for text in texts:
        assert matches(ours, text.encode()) == (theirs.fullmatch(text) is not None), text


# ------------------------------------------------------------------------------------ generated patterns

ATOMS = ["a", "b", "a", "b", "-", ".", "[ab]", "[^a]", r"\w", r"\W", r"\n", "[a-]", "é", r"[^\W_]"]
ANCHORS = ["^", "$", r"\A", r"\Z", r"\b", r"\B"]
QUANTIFIERS = ["*", "+", "?", "{2}", "{1,2}", "{,2}", "{2,}", "{0}", "{1,3}"]
OPENINGS = ["(?:", "(", "(?=", "(?!", "(?m:", "(?i:", "(?s:", "(?a:", "(?>", "(?:", "(?:"]
BEHIND = ["a", "b", "[ab]", ".", r"\w", "(?=a)", r"\b", "^", "(?<=a)", "(?<!b)"]


@st.composite
def patterns(draw: st.DrawFn, depth: int = 3) -> str:
    """A pattern over a few letters with everything that looks around."""
    alternatives = []
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 2, 3]))):
        parts = []
        for _ in range(draw(st.sampled_from([0, 1, 1, 2, 2, 3]))):
            parts.append(draw(pieces(depth)))
        alternatives.append("".join(parts))
    return "|".join(alternatives)


@st.composite
def pieces(draw: st.DrawFn, depth: int) -> str:
    kind = draw(st.integers(0, 11 if depth else 6))
    if kind <= 4:
        piece = draw(st.sampled_from(ATOMS))
    elif kind == 5:
        piece = draw(st.sampled_from(ANCHORS))
    elif kind == 6:
        inside = draw(st.lists(st.sampled_from(BEHIND), min_size=1, max_size=3))
        piece = draw(st.sampled_from(["(?<=", "(?<!"])) + "".join(inside) + ")"
    else:
        piece = draw(st.sampled_from(OPENINGS)) + draw(patterns(depth - 1)) + ")"
    if draw(st.integers(0, 9)) < 4:
        piece += draw(st.sampled_from(QUANTIFIERS)) + draw(st.sampled_from(["", "", "", "?", "+"]))
    return piece


TEXTS = st.lists(st.text("aabb-\nAé", max_size=5), min_size=12, max_size=12)


def agree(pattern: str, texts: list[str], flags: str = "") -> None:
    try:
        letters = sum(getattr(re, letter.upper()) for letter in flags)
        theirs = re.compile(pattern, letters)
    except (re.error, OverflowError, ValueError):
        with pytest.raises(SpecError):
            read(pattern, flags)
        return
    try:
        ours = read(pattern, flags)
    except UnsupportedFeatureError:
        return
    for text in ["", *texts]:
        assert matches(ours, text.encode()) == (theirs.fullmatch(text) is not None), text


@fixed(350)
@given(patterns(), TEXTS)
def test_generated_patterns_agree_with_re(pattern: str, texts: list[str]) -> None:
    """Whatever is built of assertions, groups and quantifiers has the language that `re` gives it."""
    agree(pattern, texts)


@fixed(600)
@given(
    st.text("abz019 \\^$.|?*+()[]{}-,:=!<>#PpixsmLuadDwWsSbBAZNkUu\n&é", max_size=9),
    st.sampled_from(["", "x", "ims"]),
)
def test_any_text_is_judged_as_re_judges_it(pattern: str, flags: str) -> None:
    """What `re.compile` refuses is refused; what it takes is taken or refused as unsupported."""
    if re.search(r"\\[pP]", pattern):
        return
    agree(pattern, ["a", "ab", "a\n", "z0", "\\", "{", "aa"], flags)


@fixed(200)
@given(
    st.lists(
        st.sampled_from(
            [*ATOMS, *ANCHORS, *QUANTIFIERS, *OPENINGS, ")", "|", "(?#x)", "(?P<n>", "(?i)", r"\1", " "]
        ),
        max_size=7,
    ),
    st.sampled_from(["", "x", "s", "m"]),
)
def test_any_sequence_of_pieces_is_judged_as_re_judges_it(parts: list[str], flags: str) -> None:
    """The same for texts that look more like patterns."""
    agree("".join(parts), ["a", "ab", "-", "b\n", "aab"], flags)


# ------------------------------------------------------------------------------------ single points


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "a{",
            "a{}",
            "a{1",
            "a{1,",
            "a{,",
            "a{,}",
            "a{ 1}",
            "a{1 }",
            "{1}",
            "{",
            "}",
            "a{1}{",
            "a{x}",
            "a{1,x}",
            "x{-1}",
        ),
        *(
            "a**",
            "a*{2}",
            "a{2}{3}",
            "a+++",
            "a??",
            "a???",
            "*a",
            "|*",
            "(*a)",
            "^*",
            "$+",
            r"\b?",
            r"\A{2}",
            "(?:^)*",
            *(
                "(?<!a)*+b",
                "(?<!b)++a",
                r"(?:\ba*+)*+",
                r"(?=\w*+){2,}+a",
                "(?:){2,}+a",
                "(?>|a)b",
                "(?>a|)b",
            ),
            *("(?>a??)b", "(?>a*?)ab", "(?>a?|b)ab"),
        ),
        *(
            "(?=a)*a",
            "(?=a)*",
            "(?!a){2}b",
            "(?:)*",
            "()",
            "(|a)",
            "a||b",
            "(?#)*a",
            "a(?#x)*",
            "(?i)*",
            "(?i)a",
            "a(?i)",
        ),
        *(
            "(?i:a)(?-i:b)",
            "(?-i)a",
            "(?i-i:a)",
            "(?i-:a)",
            "(?-:a)",
            "(?au:a)",
            "(?a-a:x)",
            "(?L)a",
            "(?q)a",
            "(?",
            "(?i",
            "(?P",
        ),
        *(
            "(?P<a>x)(?P<a>y)",
            "(?P<1>x)",
            "(?P<>x)",
            "(?P<é>x)",
            "(?P=a)",
            "(?<n>a)",
            "(?'n'a)",
            "(?&n)",
            "(?R)",
            "(?|a)",
            "(?",
        ),
        *(
            r"\07",
            r"\008",
            r"\1",
            r"(a)\1",
            r"(a)\2",
            r"(\1)",
            r"\400",
            r"\377",
            r"[\400]",
            r"[\1]",
            r"[\8]",
            r"\8",
            r"\123",
            r"\12",
        ),
        *(
            r"\x4",
            r"\x41",
            r"\u004",
            r"\u0041",
            r"\U0011FFFF",
            r"\U00000041",
            r"\N{DASH}",
            r"\N{EM DASH}",
            r"\N",
            r"\N{",
            r"\Nx",
        ),
        *(
            r"\e",
            r"\z",
            r"\Q",
            r"\ ",
            r"\é",
            r"\_",
            r"\-",
            "\\",
            r"[\b]",
            r"[\B]",
            r"[\A]",
            r"[\Z]",
            r"[\q]",
            r"[\d-a]",
            r"[a-\d]",
        ),
        *(
            "[",
            "[]",
            "[]]",
            "[^]",
            "[^]]",
            "[a",
            "[a-",
            "[a-]",
            "[-a]",
            "[z-a]",
            "[a-a]",
            "[[a]]",
            "[a&&b]",
            "[a--b]",
            "[|]",
            "[a-b-c]",
        ),
        *(
            "(",
            ")",
            "(a",
            "a)",
            "(?<=a)b",
            "(?<=a*)b",
            "(?<=a|bc)d",
            "(?<=a{2}|bc)d",
            "(?<=(?=a*)b)c",
            "(?<!$)a",
            "(?<=(?:a{2}){3})b",
        ),
        *(
            "(a)(?(1)b|c)",
            "(?(1)b|c)",
            "(?(x)b)",
            "a{4294967295}",
            "a{99999999999}",
            "a{0000000000001}",
            "a{2,1}",
            "a{1,0}?",
            "a{0,0}",
        ),
    ],
)
def test_odd_syntax_is_judged_as_re_judges_it(pattern: str) -> None:
    """Every odd corner is taken or refused as `re` does, with the same meaning."""
    agree(
        pattern,
        ["a", "aa", "b", "ab", "a{", "\x07", "8", "A", "-", "]", "&", "\x01", "\x1f", "aaaaaa", "S", "é"],
    )


@pytest.mark.parametrize("flags", ["", "i", "m", "s", "x", "im", "isx", "imsx"])
def test_flags_argument(flags: str) -> None:
    """``flags`` means what the flags of `re` mean."""
    agree("^a.b$ # c\n|x", ["a b # c\n", "A\nB", "a.b", "X", "a.b # c\n", "a-b", "A-B"], flags)


def test_unknown_flag_is_refused() -> None:
    """A letter that is no flag is named, with the choices."""
    with pytest.raises(SpecError, match=r"'q'.*'i', 'm', 's' and 'x'"):
        read("a", "iq")


@pytest.mark.parametrize(
    ("pattern", "offset"),
    [
        ("a(b", 1),
        ("a)b", 1),
        ("ab[c", 2),
        ("a\n\\q", 2),
        ("x{3,2}", 1),
        (r"(a)\2", 3),
        ("(?P<n>a)(?P<n>b)", 12),
        (r"ab\p{No_Such}", 2),
        (r"(a)\1", 3),
        ("a++a", 1),
    ],
)
def test_errors_point_at_the_place(pattern: str, offset: int) -> None:
    """An error has the source, the offset, line and column, and draws a caret."""
    with pytest.raises(SpecError) as caught:
        read(pattern)
        read("(?:a|ab)*+a")
    error = caught.value
    if pattern != "a++a":
        assert error.offset == offset and error.source == pattern
        assert error.line == pattern[:offset].count("\n") + 1
    assert str(error).endswith("^")


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a)\1",
        r"(?P<n>a)(?P=n)",
        "(a)?(?(1)b|c)",
        "(?>a|ab)*c|(?>a*b*)ab",
        "(?:a|ab)*+c",
        r"(?<=(?=ab)a)b|(?:a(?<=(?=ab)a))*b",
    ],
)
def test_what_no_regular_language_expresses_is_refused(pattern: str) -> None:
    """Back-references, conditionals and uncertain atomic groups are refused with a hint, not approximated."""
    re.compile(pattern)
    try:
        ours = read(pattern)
    except UnsupportedFeatureError as error:
        assert error.hint and error.feature
        return
    for text in ("ab", "aab", "abab", "c", "ac", "abc", "aa", "aaab"):
        assert matches(ours, text.encode()) == (re.fullmatch(pattern, text) is not None), text


def test_nothing_but_surrogates_is_the_empty_class() -> None:
    """Surrogates are no characters of texts in UTF-8."""
    for pattern in (
        r"\ud800",
        r"[\ud800-\udfff]",
        "\udc00",
        r"[^\x00-\ud7ff\ue000-\U0010ffff]",
        "(?i)\udc00",
    ):
        assert not matches(read(pattern), b"")
        assert not matches(read(pattern), "\ud800".encode("utf-8", "surrogatepass"))
    assert matches(read(r"[\ud7ff-\ue000]{2}"), "\ud7ff\ue000".encode())


# ------------------------------------------------------------------------------------ size and time


@pytest.mark.parametrize(
    "pattern",
    [
        "((a|aa)*){200}b",
        "(a{1000}){1000}",
        "(" * 1500 + "a" + ")" * 1500,
        "(?:" * 1500 + "a" + ")*" * 1500,
        "(?:" * 1200 + "a" + "|b)" * 1200,
        "(?:" * 1000 + "ab" + "{2}|b)" * 1000,
        "(?=" * 1500 + "a" + ")" * 1500 + "a",
        "(?!" * 1501 + "a" + ")" * 1501 + ".",
        "|".join(f"word{i}" for i in range(5000)),
        "[a-z]{1,10000}[0-9]{10000,}",
        "a?" * 3000 + "a" * 3000,
        r"\w" * 2000,
        r"(?i)" + "straße" * 500,
        r"(?!x)[a-z]{3,9000}(?<!y)",
        "(?:(?!foo).){1,9000}",
    ],
    ids=range(15),
)
def test_large_patterns_are_read_fast(pattern: str) -> None:
    """Depth, length and counts cost time in proportion, and never the interpreter's stack."""
    start = time.perf_counter()
    read(pattern)
    assert time.perf_counter() - start < 3


def test_repeats_are_not_unrolled() -> None:
    """A count stays a count; repeats of repeats become one where that is exact."""
    digit = CharacterClass(((48, 57),))
    assert read("[0-9]{3,10000}") == Repeat(digit, 3, 10000)
    assert read("(?:[0-9]{1000}){1000}") == Repeat(digit, 1_000_000, 1_000_000)
    assert read("(?:[0-9]*)*") == Repeat(digit, 0, None)
    assert read("(?:[0-9]{2}){1,3}") == Repeat(Repeat(digit, 2, 2), 1, 3)
    assert read("(?:[0-9]{2,3}){1,3}") == Repeat(Repeat(digit, 2, 3), 1, 3) or read(
        "(?:[0-9]{2,3}){1,3}"
    ) == Repeat(digit, 2, 9)


@pytest.mark.parametrize("depth", [2100, 200_000])
@pytest.mark.parametrize("opening", ["(", "(?:", "(?=", "(?<!", "(?i:"])
def test_too_deep_a_nest_reaches_a_limit(opening: str, depth: int) -> None:
    """Groups nested deeper than ``Limits.nesting`` are refused by that limit."""
    with pytest.raises(LimitExceededError) as caught:
        read(opening * depth + "a" + ")" * depth)
    assert caught.value.limit == "nesting"


def test_large_automata_of_assertions_reach_a_limit() -> None:
    """Lookaround in a loop whose automaton explodes ends with a limit, in bounded time."""
    start = time.perf_counter()
    with pytest.raises(LimitExceededError):
        parse_regex("(?:(?=[ab]*a[ab]{60}c)[ab])*c", watch=Watch(Limits(compile_seconds=2, liveness=5000)))
    assert time.perf_counter() - start < 10
