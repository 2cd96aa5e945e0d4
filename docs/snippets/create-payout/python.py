import os

from durable_payments import Client

client = Client(os.environ["KEY"], os.environ["BASE"])

payout = client.payouts.create(
    {
        "recipient_id": os.environ["RECIPIENT_ID"],
        "method": "sepa_instant",
        "amount": 5000,
        "currency": "EUR",
        "metadata": {"balance_account": "marketing"},
    },
    idempotency_key="payout-1001",
)
print(payout["id"], payout["status"])
