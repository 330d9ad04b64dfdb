"""Strict JSON as it arrives, and canonical JSON (RFC 8785) as it is hashed."""

from __future__ import annotations

import hashlib
import json
from typing import Any

MOST_INTEGER = 2**53 - 1


def digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def parse(body: bytes) -> Any:
    """One JSON document that every parser reads alike, or ValueError."""
    return json.loads(
        body.decode("utf-8"), object_pairs_hook=_members, parse_int=_integer,
        parse_constant=_refuse)


def canonical(value: Any) -> str:
    """The one text of a value: sorted names, no spaces, numbers as JavaScript writes them."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{_text(name)}:{canonical(value[name])}" for name in names) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    if isinstance(value, float):
        return _number(value)
    return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _number(value: float) -> str:
    """The shortest digits, with an exponent below 1e-6 and from 1e21 on."""
    if value == 0:
        return "0"
    sign, text = ("-", repr(-value)) if value < 0 else ("", repr(value))
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    # Where the point is, counted from the first digit that is not 0.
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if 0 < point <= 21:
        inside = digits[:point].ljust(point, "0")
        return sign + inside + ("." + digits[point:] if point < len(digits) else "")
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    rest = "." + digits[1:] if 1 < len(digits) else ""
    return f"{sign}{digits[0]}{rest}e{point - 1:+d}"


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has the same name twice")
    return members


def _integer(text: str) -> int:
    number = int(text) if len(text) < 20 else MOST_INTEGER + 1
    if MOST_INTEGER < abs(number):
        raise ValueError("a whole number is beyond 2^53 - 1")
    return number


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")
