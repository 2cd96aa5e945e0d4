import os

from durable_payments import Client

client = Client(os.environ["KEY"], os.environ["BASE"])

payment = client.sandbox.simulate_payment(
    os.environ["PAYMENT_ID"],
    {"event": "settled"},
)
print(payment["status"])
