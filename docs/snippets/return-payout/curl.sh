curl -sS "$BASE/v1/sandbox/payouts/$PAYOUT_ID/simulate" \
  -H "Authorization: Bearer $KEY" \
  -H 'Content-Type: application/json' \
  -d '{"event": "returned", "code": "AC04", "reason": "Account closed"}'
