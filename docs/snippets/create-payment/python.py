import os

from durable_payments import Client

client = Client(os.environ["KEY"], os.environ["BASE"])

payment = client.payments.create(
    {
        "method": "ideal",
        "amount": 1050,
        "currency": "EUR",
        "country": "NL",
        "reference": "order-1001",
        "success_url": "https://example.com/thanks",
        "error_url": "https://example.com/sorry",
    },
    idempotency_key="order-1001",
)
print(payment["id"], payment["redirect_url"])
