import os

from durable_payments import Client

client = Client(os.environ["KEY"], os.environ["BASE"])

payment = client.payments.get(os.environ["PAYMENT_ID"])
print(payment["status"], payment["amount"])
