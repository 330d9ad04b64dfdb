"""Checks that a request comes from a known node: HTTP message signatures (RFC 9421)."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Collection, Mapping

OLDEST_S = 3600
"""A signature has the time at which its round was opened, and a round is much shorter."""
COVERED = {"@method", "@authority", "@path", "content-digest"}


def is_signed(node_keys: Collection[str], path: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether one of the nodes, each known by its public key in hex, signed this request."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    given, signed = headers.get("Signature-Input", ""), headers.get("Signature", "")
    match = re.fullmatch(r'sig1=(\(("[^"]+"(?: "[^"]+")*)\);created=(\d+);keyid="([0-9a-f]{64})";'
                         r'alg="ed25519")', given)
    value = re.fullmatch(r"sig1=:([A-Za-z0-9+/=]+):", signed)
    digest = "sha-256=:" + base64.b64encode(hashlib.sha256(body).digest()).decode() + ":"
    if match is None or value is None or headers.get("Content-Digest") != digest:
        return False
    names = re.findall(r'"([^"]+)"', match[2])
    is_recent = abs(time.time() - int(match[3])) <= OLDEST_S
    if match[4] not in node_keys or not is_recent or not COVERED <= set(names):
        return False
    known = {"@method": "POST", "@authority": headers.get("Host", "").lower(), "@path": path}
    lines = [f'"{name}": {known.get(name) or headers.get(name, "")}' for name in names]
    base = "\n".join([*lines, f'"@signature-params": {match[1]}'])
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(match[4]))
        key.verify(base64.b64decode(value[1], validate=True), base.encode())
    except (InvalidSignature, ValueError):
        return False
    return True
