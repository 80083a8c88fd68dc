"""``format: "regex"``: regular expressions of ECMA-262 as a pattern.

Their language nests, so the pattern is a part of it: groups within groups to a depth of `_DEPTH`, and lookarounds that
hold no groups. Left out as well are names and references of groups, ``\\p``, ``\\c``, ``\\0``, counts of more than
three digits, or of three where two must be compared, ranges whose ends aren't a letter, a digit or a little more, and
what only annex B allows. The syntax is that of the 15th edition, sections 22.2.1 and 22.2.1.1; what is taken is valid
with and without the flag ``u``, but for escaped punctuation, which the flag allows for syntax characters only.
"""

from __future__ import annotations

_DEPTH = 3
_ESCAPE = r"\\(?:[dDwWsStnrvf]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[ -/:-@\[-^`{-~])"


def _counts() -> str:
    """Return the pattern of two numbers, a comma between them, of which the first is not the greater."""
    pairs = ["[0-9],[1-9][0-9]{1,2}", "[1-9][0-9],[1-9][0-9]{2}"]
    pairs += [f"{low},[{low}-9]" for low in range(10)]
    pairs += [f"{tens}[0-9],[{tens + 1}-9][0-9]" for tens in range(1, 9)]
    pairs += [f"{tens}{low},{tens}[{low}-9]" for tens in range(1, 10) for low in range(10)]
    return "|".join(pairs)


def _ranges() -> str:
    """Return the pattern of ranges in character classes whose ends are in order."""
    digits = "0123456789"
    lower = "abcdefghijklmnopqrstuvwxyz"
    found = [f"{low}-[{low}-9A-Za-z~]" for low in digits]
    found += [f"{low}-[{low}-Za-z~]" for low in lower.upper()]
    found += [f"{low}-[{low}-z~]" for low in lower]
    found.append(r"[ !#-,./]-[0-9:-@A-Z_`a-z{-~]")
    hexadecimal = "0123456789abcdef"
    for i, low in enumerate(hexadecimal[:-1]):
        above = hexadecimal[i + 1 :]
        first, second = f"[{low}{low.upper()}]", f"[{above}{above.upper()}]"
        rest = "[0-9A-Fa-f]"
        found.append(rf"\\x{first}{rest}-\\x{second}{rest}")
        found.append(rf"\\u{first}{rest}{{3}}-\\u{second}{rest}{{3}}")
    return "|".join(found)


def _source() -> str:
    member = rf"(?:[^\\\]\-]|{_ESCAPE}|\\b|{_ranges()})"
    atom = rf"(?:[^\\^$.*+?()\[\]{{}}|]|\.|{_ESCAPE}|\[\^?-?{member}*-?\])"
    many = rf"(?:(?:[*+?]|\{{(?:[0-9]{{1,3}},?|{_counts()})\}})\??)?"
    assertion = r"[\^$]|\\[bB]"
    flat = rf"(?:{assertion}|{atom}{many}|\|)*"
    assertion += rf"|\(\?(?:=|!|<=|<!){flat}\)"
    found = rf"(?:{assertion}|{atom}{many}|\|)*"
    for _ in range(_DEPTH):
        found = rf"(?:{assertion}|(?:{atom}|\((?:\?:)?{found}\)){many}|\|)*"
    return found


REGEX = _source()
