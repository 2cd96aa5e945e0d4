const { BASE, KEY } = process.env;

const response = await fetch(`${BASE}/v1/payments`, {
  method: 'POST',
  headers: {
    Authorization: `Bearer ${KEY}`,
    'Content-Type': 'application/json',
    'Idempotency-Key': 'order-1001',
  },
  body: JSON.stringify({
    method: 'ideal',
    amount: 1050,
    currency: 'EUR',
    country: 'NL',
    reference: 'order-1001',
    success_url: 'https://example.com/thanks',
    error_url: 'https://example.com/sorry',
  }),
});
console.log(JSON.stringify(await response.json()));
