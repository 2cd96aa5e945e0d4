import os

from durable_payments import Client

client = Client(os.environ["KEY"], os.environ["BASE"])

refund = client.refunds.create(
    {"payment_id": os.environ["PAYMENT_ID"], "amount": 250},
    idempotency_key="refund-1001",
)
print(refund["id"], refund["status"])
