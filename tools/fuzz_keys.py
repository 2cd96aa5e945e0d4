"""Gives each call of schemathesis a new Idempotency-Key, since it sends one key with every body."""

import re
import uuid

import schemathesis


@schemathesis.hook
def before_call(ctx, case, kwargs):
    key = (case.headers or {}).get("Idempotency-Key")
    if key is not None and re.fullmatch(r"[\x20-\x7e]{1,255}", str(key)):
        case.headers["Idempotency-Key"] = str(uuid.uuid4())
