"""Verifies webhooks."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from typing import Optional, Sequence, Union, cast

from .errors import SignatureError
from .types import WebhookEvent

TOLERANCE = 300
_SIGNATURE = re.compile(r"t=(\d{1,12}),v1=([0-9a-f]{64})|v1=([0-9a-f]{64}),t=(\d{1,12})", re.ASCII)


def verify_webhook(
    body: Union[bytes, str],
    signature: Optional[str],
    secret: Union[str, Sequence[str]],
    *,
    tolerance: float = TOLERANCE,
    now: Optional[float] = None,
) -> WebhookEvent:
    """Verifies a webhook and parses it. Store its ``id`` and act on it only once: an event can
    arrive twice.

    ``body`` is exactly what was received: parsed and serialized again, it has another signature.
    ``signature`` is the header ``Service-Signature``. While a secret is rolled, pass both.
    Raises ``SignatureError`` unless the webhook is genuine and at most ``tolerance`` seconds old.
    """
    match = _SIGNATURE.fullmatch(signature or "")
    if match is None:
        raise SignatureError("Service-Signature is missing or is not t=SECONDS,v1=HEX.")
    t = match.group(1) or match.group(4)
    v1 = match.group(2) or match.group(3)
    secrets = [each for each in ([secret] if isinstance(secret, str) else secret) if each]
    if not secrets:
        raise SignatureError("No signing secret is set.")
    raw = body.encode("utf-8") if isinstance(body, str) else bytes(body)
    results = [hmac.compare_digest(_sign(each, t, raw), v1) for each in secrets]
    if not any(results):
        raise SignatureError("The signature does not verify with any secret.")
    if abs((time.time() if now is None else now) - int(t)) > tolerance:
        raise SignatureError(f"The signature is not from the last {tolerance} seconds.")
    return cast(WebhookEvent, json.loads(raw))


def sign_webhook(body: Union[bytes, str], secret: str, *, now: Optional[float] = None) -> str:
    """Builds a ``Service-Signature``, for tests of your receiver."""
    t = str(int(time.time() if now is None else now))
    raw = body.encode("utf-8") if isinstance(body, str) else bytes(body)
    return f"t={t},v1={_sign(secret, t, raw)}"


def _sign(secret: str, t: str, body: bytes) -> str:
    return hmac.new(secret.encode(), t.encode() + b"." + body, hashlib.sha256).hexdigest()
