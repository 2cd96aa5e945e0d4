"""Which webhooks are genuine."""

from __future__ import annotations

import hashlib
import hmac
import json
import unittest
from typing import Any, Dict, List

from durable_payments import SignatureError, sign_webhook, verify_webhook

SECRET = "whsec_of_a_test"
EVENT = {"id": "evt_1", "type": "payment.settled", "data": {"payment_id": "p"}}
BODY = json.dumps(EVENT).encode()
NOW = 1_795_000_000
V1 = hmac.new(SECRET.encode(), b"%d." % NOW + BODY, hashlib.sha256).hexdigest()
SIGNATURE = f"t={NOW},v1={V1}"


def verify(**changes: Any) -> Any:
    webhook = {"body": BODY, "signature": SIGNATURE, "secret": SECRET, "now": NOW, **changes}
    return verify_webhook(**webhook)


class Webhooks(unittest.TestCase):
    def test_a_genuine_one_is_verified_as_bytes_and_text_and_while_a_secret_is_rolled(self) -> None:
        self.assertEqual(verify(), EVENT)
        self.assertEqual(verify(body=BODY.decode()), EVENT)
        self.assertEqual(verify(secret=["whsec_new", SECRET]), EVENT)
        self.assertEqual(verify(now=NOW + 300), EVENT)
        self.assertEqual(sign_webhook(BODY, SECRET, now=NOW), SIGNATURE)

    def test_others_are_refused(self) -> None:
        refused: List[Dict[str, Any]] = [
            {"signature": None},
            {"signature": f"v1={V1}"},
            {"signature": f"t={NOW}"},
            {"signature": f"t=soon,v1={V1}"},
            {"signature": f"{SIGNATURE},v1={'0' * 64}"},
            {"signature": SIGNATURE[:-2]},
            {"signature": f"{SIGNATURE}\n"},
            {"secret": "whsec_another"},
            {"secret": []},
            {"secret": ""},
            {"body": BODY + b" "},
            {"now": NOW + 301},
            {"now": NOW - 301},
            {"now": NOW + 61, "tolerance": 60},
        ]
        for changes in refused:
            with self.subTest(changes=changes), self.assertRaises(SignatureError):
                verify(**changes)
