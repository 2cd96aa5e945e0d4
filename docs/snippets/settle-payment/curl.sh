curl -sS "$BASE/v1/sandbox/payments/$PAYMENT_ID/simulate" \
  -H "Authorization: Bearer $KEY" \
  -H 'Content-Type: application/json' \
  -d '{"event": "settled"}'
