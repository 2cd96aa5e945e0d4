"""A project that installs the wheel and checks its types."""

import sys

from durable_payments import ApiError, Client, verify_webhook
from durable_payments.types import Payment, WebhookEvent

client = Client(sys.argv[2], sys.argv[1], timeout=10)

payment: Payment = client.payments.create(
    {
        "method": "ideal",
        "amount": 1050,
        "currency": "EUR",
        "country": "NL",
        "success_url": "https://shop.example/thanks",
        "error_url": "https://shop.example/sorry",
    }
)


def add_up() -> int:
    return sum(row["amount"] for row in client.payments.list({"status": "settled"}))


def fulfill(body: bytes, signature: str) -> str:
    event: WebhookEvent = verify_webhook(body, signature, ["whsec_new", "whsec_old"])
    return event["data"]["payment_id"] if event["type"] == "payment.settled" else ""


client.payments.list({"status": "paid"})  # type: ignore[arg-type]
try:
    client.payments.get("unknown")
except ApiError as error:
    print(payment["status"], error.code)
