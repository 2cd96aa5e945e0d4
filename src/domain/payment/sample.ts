/** Request body that a merchant can paste. @see docs/api.md#create-a-payment */
export const SAMPLE_PAYMENT = {
  method: 'ideal',
  amount: 1050,
  currency: 'EUR',
  country: 'NL',
  success_url: 'https://example.com/thanks',
  error_url: 'https://example.com/sorry',
  reference: 'order-1001',
} as const;
