export const PYTHON = `# Python 3. header: Service-Signature, body: the raw bytes, secret: whsec_…
import hashlib
import hmac
import re
import time


def is_genuine(header: str, body: bytes, secret: str) -> bool:
    match = re.fullmatch(r"t=([0-9]{1,12}),v1=([0-9a-f]{64})", header or "")
    if match is None:
        return False
    t, v1 = match.groups()
    if abs(time.time() - int(t)) > 300:
        return False
    signed = t.encode() + b"." + body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, v1)
`;
