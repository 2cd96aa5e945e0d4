import { createClient } from '@durable-payments/client';

const { BASE = '', KEY = '' } = process.env;
const client = createClient({ apiKey: KEY, baseUrl: BASE });

const recipient = await client.recipients.create(
  {
    type: 'bank_account',
    first_name: 'Ada',
    last_name: 'Lovelace',
    iban: 'NL91 ABNA 0417 1643 00',
    address_line1: 'Keizersgracht 1',
    city: 'Amsterdam',
    postal_code: '1015 CN',
  },
  { idempotencyKey: 'ada' },
);
console.log(recipient.id);
