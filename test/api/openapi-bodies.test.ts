import Ajv2020 from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { z } from 'zod';
import { call, idealPayment, settledPayment } from '../support/http';
import { useService } from '../support/service';
import { openShop } from './payout-setting';

const Document = z.object({
  components: z.object({ schemas: z.record(z.string(), z.unknown()) }),
});

const service = useService();
let document: z.infer<typeof Document>;

beforeAll(async () => {
  document = Document.parse(await (await fetch(`${service.url}/openapi.json`)).json());
});

/** Sends each body, and holds the answer against the document's schema of that name. */
async function expectAllowed(key: string, path: string, schema: string, bodies: object[]) {
  const ajv = addFormats(new Ajv2020({ strict: false }));
  const { components } = document;
  const validate = ajv.compile({ $ref: `#/components/schemas/${schema}`, components });
  for (const body of bodies) {
    const sent: unknown = JSON.parse(JSON.stringify(body));
    const { status } = await call(service.url, 'POST', path, { key, body: sent });
    expect({ sent, allowed: validate(sent) }).toEqual({ sent, allowed: status === 201 });
  }
}

test('a payment that the document allows is taken; one that it does not is refused', async () => {
  const { key } = await service.account();
  await expectAllowed(key, '/v1/payments', 'CreatePayment', [
    idealPayment(),
    idealPayment({ country: null, reference: null, customer: null, metadata: null }),
    idealPayment({ customer: { email: 'a@b.nl', first_name: null }, metadata: { a: { b: [] } } }),
    idealPayment({ amount: 10.5 }),
    idealPayment({ amount: 0 }),
    idealPayment({ amount: '5' }),
    idealPayment({ currency: 'eur' }),
    idealPayment({ success_url: 'http://a.b/' }),
    idealPayment({ extra: 1 }),
    idealPayment({ customer: { phone: '1' } }),
    idealPayment({ metadata: [] }),
    idealPayment({ reference: 'x'.repeat(256) }),
    idealPayment({ method: undefined }),
  ]);
});

test('a refund that the document allows is taken; one that it does not is refused', async () => {
  const { key } = await service.account();
  const { id: payment_id } = await settledPayment(service, key);
  await expectAllowed(key, '/v1/refunds', 'CreateRefund', [
    { payment_id, amount: 1 },
    { payment_id, amount: 1, reason: null },
    { payment_id, amount: 1, reason: 'x'.repeat(500) },
    { payment_id, amount: 1, reason: 'x'.repeat(501) },
    { payment_id, amount: 1, reason: 5 },
    { payment_id, amount: 1.5 },
    { payment_id, amount: 0 },
    { payment_id, amount: '5' },
    { payment_id, amount: 1, extra: 1 },
    { payment_id, amount: 1, currency: 'EUR' },
    { payment_id: null, amount: 1 },
    { amount: 1 },
    {},
    { payment_id, amount: null },
  ]);
});

test('a payout that the document allows is taken; one that it does not is refused', async () => {
  const { key, ask } = await openShop(service);
  await expectAllowed(key, '/v1/payouts', 'CreatePayout', [
    ask(),
    ask({ reference: null, metadata: null }),
    ask({ reference: 'x'.repeat(255), metadata: { balance_account: 'marketing', a: { b: [] } } }),
    ask({ reference: 'x'.repeat(256) }),
    ask({ reference: 5 }),
    ask({ metadata: [] }),
    ask({ amount: 10.5 }),
    ask({ amount: 0 }),
    ask({ amount: '5' }),
    ask({ amount: null }),
    ask({ amount: undefined }),
    ask({ currency: 'eur' }),
    ask({ recipient_id: null }),
    ask({ recipient_id: undefined }),
    ask({ method: null }),
    ask({ fee: 0 }),
    {},
  ]);
});
