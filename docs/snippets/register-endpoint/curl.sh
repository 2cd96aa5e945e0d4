curl -sS "$BASE/v1/webhook-endpoints" \
  -H "Authorization: Bearer $KEY" \
  -H 'Content-Type: application/json' \
  -H 'Idempotency-Key: my-server' \
  -d '{"url": "http://localhost:9000/webhooks"}'
