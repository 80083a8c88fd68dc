"""String formats as patterns, each from the standard that defines it.

Texts are taken in canonical spelling (see `strings`). Where a standard's language is not regular, or of
no reasonable size, the pattern is a part of it: no text is allowed that the standard refuses, and what
is left out is rare:

- years are 0001 to 9999, since few libraries have a year 0;
- seconds are at most 59, except for leap seconds in UTC (``23:59:60Z``): in another zone the time of day
  would have to fit the offset;
- labels of host names have no ``--`` in third and fourth place; such A-labels (RFC 5890) are valid only
  if they decode to something valid;
- address literals of electronic mail are IPv4 and IPv6;
- internationalised host names: see `idn_hostname`;
- operators of URI templates are those that RFC 6570 gives a meaning;
- regular expressions nest to a small depth; see `regex_format`.
"""

from __future__ import annotations

from functools import cache

from constrain.grammars.ir import Pattern
from constrain.grammars.json_schema import idn_hostname
from constrain.grammars.json_schema.regex_format import REGEX
from constrain.grammars.json_schema.strings import quoted
from constrain.grammars.limits import Limits, Watch
from constrain.grammars.regex.build import accepts
from constrain.grammars.regex.parse import parse_ecma

# ------------------------------------------------------------------------------ dates and times
# RFC 3339, section 5.6 and appendix A. Letters may be in lower case, as the standard allows.

_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"  # not year 0
_YEAR = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
DATE = (
    f"(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
_FRACTION = r"(?:\.[0-9]+)?"
_HOUR_MINUTE = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = (
    f"(?:{_HOUR_MINUTE}:[0-5][0-9]{_FRACTION}(?:[Zz]|[+-]{_HOUR_MINUTE})"
    f"|23:59:60{_FRACTION}(?:[Zz]|[+-]00:00))"
)
_WIDE_TIME = rf"{_HOUR_MINUTE}:(?:[0-5][0-9]|60){_FRACTION}(?:[Zz]|[+-]{_HOUR_MINUTE})"
_DURATION_TIME = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DURATION = (
    f"P(?:(?:[0-9]+D|[0-9]+M(?:[0-9]+D)?|[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?)(?:{_DURATION_TIME})?"
    f"|{_DURATION_TIME}|[0-9]+W)"
)

# ------------------------------------------------------------------------------ hosts and addresses
# RFC 1123, section 2.1 (labels); RFC 3986, section 3.2.2 (addresses); RFC 5321, section 4.1.2 (mail).

_ALNUM = "[A-Za-z0-9]"
_LDH = "[A-Za-z0-9-]"
_LABEL = (  # by length: 1, 2, 3, 4, and 5 to 63
    f"(?:{_ALNUM}|{_ALNUM}{{2}}|{_ALNUM}{_LDH}{_ALNUM}|{_ALNUM}{_LDH}[A-Za-z0-9-]{_ALNUM}"
    f"|{_ALNUM}{_LDH}(?:{_ALNUM}{_LDH}|-{_ALNUM}){_LDH}{{0,58}}{_ALNUM})"
)
_HOSTNAME = rf"{_LABEL}(?:\.{_LABEL})*"
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_H16 = "[0-9A-Fa-f]{1,4}"
_LS32 = f"(?:{_H16}:{_H16}|{_IPV4})"


def _ipv6() -> str:
    forms = [f"(?:{_H16}:){{6}}{_LS32}", f"::(?:{_H16}:){{5}}{_LS32}"]
    for before in range(1, 6):  # at most so many groups before "::"
        left = _H16 if before == 1 else f"(?:{_H16}:){{0,{before - 1}}}{_H16}"
        groups = 5 - before
        right = f"(?:{_H16}:){{{groups}}}" if groups else ""
        forms.append(f"(?:{left})?::{right}{_LS32}")
    forms.append(f"(?:(?:{_H16}:){{0,5}}{_H16})?::{_H16}")
    forms.append(f"(?:(?:{_H16}:){{0,6}}{_H16})?::")
    return f"(?:{'|'.join(forms)})"


_IPV6 = _ipv6()
_ATEXT = r"A-Za-z0-9!#$%&'*+/=?^_`{|}~\-"
_MAIL_LABEL = f"{_ALNUM}(?:{_LDH}{{0,61}}{_ALNUM})?"
_MAIL_LITERAL = rf"\[(?:{_IPV4}|IPv6:{_IPV6})\]"
_EMAIL = (
    rf'(?:[{_ATEXT}]+(?:\.[{_ATEXT}]+)*|"(?:[ !#-\[\]-~]|\\[ -~])*")'
    rf"@(?:{_MAIL_LABEL}(?:\.{_MAIL_LABEL})*|{_MAIL_LITERAL})"
)
# RFC 5321, section 4.5.3.1: 64 octets before the "@", 255 after it.
_EMAIL_LENGTHS = r"[^\n]{1,64}@[^@\n]{1,255}"
# RFC 6531, section 3.3. Labels are letters, marks and digits.
_IDN_LABEL_CHARACTER = r"A-Za-z0-9\p{Ll}\p{Lo}\p{Lm}\p{Mn}\p{Mc}\p{Nd}"
_IDN_LABEL = f"[{_IDN_LABEL_CHARACTER}](?:[{_IDN_LABEL_CHARACTER}-]{{0,61}}[{_IDN_LABEL_CHARACTER}])?"
_BEYOND_ASCII = "\x80-\ud7ff\ue000-\U0010ffff"
_IDN_EMAIL = (
    rf"(?:[{_ATEXT}{_BEYOND_ASCII}]+(?:\.[{_ATEXT}{_BEYOND_ASCII}]+)*"
    rf'|"(?:[ !#-\[\]-~{_BEYOND_ASCII}]|\\[ -~])*")'
    rf"@(?:{_IDN_LABEL}(?:\.{_IDN_LABEL})*|{_MAIL_LITERAL})"
)

# ------------------------------------------------------------------------------ identifiers
# RFC 3986, appendix A; RFC 3987, section 2.2 (with characters beyond ASCII).

_UCSCHAR = (
    "\xa0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef"
    + "".join(f"{chr(plane << 16)}-{chr((plane << 16) + 0xFFFD)}" for plane in range(1, 14))
    + "\U000e1000-\U000efffd"
)
_IPRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_PERCENT = "%[0-9A-Fa-f]{2}"


def _identifiers(beyond: str, private: str) -> tuple[str, str]:
    """Return the patterns of URIs and of URI references, or of IRIs with characters ``beyond`` ASCII."""
    plain = rf"A-Za-z0-9\-._~!$&'()*+,;={beyond}"
    pchar = f"(?:[{plain}:@]|{_PERCENT})"
    ip_literal = rf"\[(?:{_IPV6}|[vV][0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+)\]"
    authority = f"(?:(?:[{plain}:]|{_PERCENT})*@)?(?:{ip_literal}|(?:[{plain}]|{_PERCENT})*)(?::[0-9]*)?"
    segments = f"(?:/{pchar}*)*"
    network = f"//{authority}{segments}"
    absolute = f"/(?:{pchar}+{segments})?"
    tail = rf"(?:\?(?:[{plain}:@/?{private}]|{_PERCENT})*)?(?:#(?:[{plain}:@/?]|{_PERCENT})*)?"
    uri = rf"[A-Za-z][A-Za-z0-9+\-.]*:(?:{network}|{absolute}|{pchar}+{segments}|){tail}"
    relative = f"(?:{network}|{absolute}|(?:[{plain}@]|{_PERCENT})+{segments}|){tail}"
    return uri, f"(?:{uri}|{relative})"


_URI, _URI_REFERENCE = _identifiers("", "")
_IRI, _IRI_REFERENCE = _identifiers(_UCSCHAR, _IPRIVATE)

# RFC 6570, section 2, with erratum 6937 (apostrophes are literals).
_VARIABLE = rf"(?:[A-Za-z0-9_]|{_PERCENT})(?:\.?(?:[A-Za-z0-9_]|{_PERCENT}))*(?::[1-9][0-9]{{0,3}}|\*)?"
_URI_TEMPLATE = (
    rf"(?:[!#$&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~{_UCSCHAR}{_IPRIVATE}]|{_PERCENT}"
    rf"|\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}})*"
)

# RFC 6901, section 3; draft-bhutton-relative-json-pointer-00, section 3, without index manipulation.
_JSON_POINTER = "(?:/(?:[^~/]|~[01])*)*"
# RFC 4122, section 3.
_UUID = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"

# ------------------------------------------------------------------------------ by name

# Each a list of expressions that a text must all match as a whole.
_SOURCES: dict[str, tuple[str, ...]] = {
    "date": (DATE,),
    "time": (_TIME,),
    "date-time": (f"{DATE}[Tt]{_TIME}",),
    "duration": (_DURATION,),
    "email": (_EMAIL, _EMAIL_LENGTHS),
    "idn-email": (_IDN_EMAIL, _EMAIL_LENGTHS),
    "hostname": (_HOSTNAME, "[^\n]{1,253}"),
    "ipv4": (_IPV4,),
    "ipv6": (_IPV6,),
    "uri": (_URI,),
    "uri-reference": (_URI_REFERENCE,),
    "iri": (_IRI,),
    "iri-reference": (_IRI_REFERENCE,),
    "uri-template": (_URI_TEMPLATE,),
    "uuid": (_UUID,),
    "json-pointer": (_JSON_POINTER,),
    "relative-json-pointer": (f"(?:0|[1-9][0-9]*)(?:#|{_JSON_POINTER})",),
    "regex": (REGEX,),
}

SUPPORTED = frozenset((*_SOURCES, "idn-hostname"))
# Where a pattern above is less than the standard's language, one that is more: its complement is that of
# the format, or part of it.
_WIDER: dict[str, str] = {
    "date": r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])",
    "time": _WIDE_TIME,
    "date-time": rf"[0-9]{{4}}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])[Tt]{_WIDE_TIME}",
    "email": "[^]*@[^]*",
    "idn-email": "[^]*@[^]*",
    "hostname": r"[A-Za-z0-9.\-]+",
    "idn-hostname": "[^]+",
    "uri-template": r"(?:[^{}]|\{[^{}]*\})*",
    "regex": "[^]*",
    "relative-json-pointer": rf"(?:0|[1-9][0-9]*)(?:[+-](?:0|[1-9][0-9]*))?(?:#|{_JSON_POINTER})",
}


def _sources(name: str) -> tuple[str, ...]:
    """Return expressions that a text of the format ``name`` must all match as a whole."""
    return idn_hostname.expressions() if name == "idn-hostname" else _SOURCES[name]


@cache
def json_strings(name: str) -> tuple[Pattern, ...]:
    """Return patterns of JSON strings, all of which a string of the format ``name`` matches."""
    watch = Watch(Limits())
    return tuple(quoted(parse_ecma(f"^(?:{source})$", watch=watch), True) for source in _sources(name))


@cache
def excluded_strings(name: str) -> Pattern:
    """Return the JSON strings, in every spelling, that may be of the format ``name``."""
    return quoted(_widest(name), False)


def _widest(name: str) -> Pattern:
    source = _WIDER.get(name)
    if source is None:
        (source,) = _SOURCES[name]
    return parse_ecma(f"^(?:{source})$", watch=Watch(Limits()))


def accepts_text(name: str, text: str) -> bool:
    """Is ``text`` of the format ``name``? Only a positive answer is sure."""
    watch = Watch(Limits())
    return all(accepts(parse_ecma(f"^(?:{source})$", watch=watch), text) for source in _sources(name))


def may_accept_text(name: str, text: str) -> bool:
    """May ``text`` be of the format ``name``? Only a negative answer is sure."""
    return accepts(_widest(name), text)
