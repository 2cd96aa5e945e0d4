export const SAMPLE_IDS = {
  payment: '5f0b6a52-1d0c-4c39-9d3b-6c6f0f6a2b11',
  refund: '8c2a4d0e-7b1f-4a56-8f2d-0d6f3c9b7e22',
  recipient: 'b7d3e1c4-3f68-4b0a-a1c9-2e5d7f804c33',
  payout: 'd94f2b7a-6c05-4e18-b3f7-91a0c8e65d44',
  crypto_payment: 'e16c8f39-0a7d-4d2b-8c54-7b3e9f1d0a55',
  crypto_settlement: 'f3a95d10-8e42-4176-9b6a-4c0d2e7f8b66',
  dispute: 'dp_2c7e9a10-5b3d-4f86-8a1c-6d0e4b9f7c99',
  event: 'evt_0a91b2c3-d4e5-4f60-8a7b-9c0d1e2f3a77',
  webhook_endpoint: 'we_6d1f0b8e-92c4-4a7d-b350-1e8c7f2a9d88',
} as const;

export const SAMPLE_ORIGIN = 'https://payments.example.com';
export const SAMPLE_TOKEN = 'q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA';
export const SAMPLE_CREATED = '2026-03-01T12:34:56.789Z';
export const SAMPLE_UPDATED = '2026-03-01T12:35:12.003Z';
export const SAMPLE_ADDRESS = '0x52908400098527886E0F7030069857D2E4169EE7';
export const SAMPLE_TRANSACTION = `0x${'4f'.repeat(32)}`;
export const SAMPLE_UNITS = '40000000000000000';

/** Body that a merchant can paste. @see docs/api.md#create-a-payment */
export const SAMPLE_PAYMENT = {
  method: 'ideal',
  amount: 1050,
  currency: 'EUR',
  country: 'NL',
  success_url: 'https://example.com/thanks',
  error_url: 'https://example.com/sorry',
  reference: 'order-1001',
} as const;
