const { BASE, KEY, PAYMENT_ID } = process.env;

const response = await fetch(`${BASE}/v1/refunds`, {
  method: 'POST',
  headers: {
    Authorization: `Bearer ${KEY}`,
    'Content-Type': 'application/json',
    'Idempotency-Key': 'refund-1001',
  },
  body: JSON.stringify({ payment_id: PAYMENT_ID, amount: 250 }),
});
console.log(JSON.stringify(await response.json()));
