import os

from durable_payments import Client

client = Client(os.environ["KEY"], os.environ["BASE"])

payment = client.payments.create(
    {
        "method": "ideal",
        "amount": 66602,
        "currency": "EUR",
        "country": "NL",
        "success_url": "https://example.com/thanks",
        "error_url": "https://example.com/sorry",
    },
    idempotency_key="order-1002",
)
print(payment["id"], payment["status"])
