import Ajv2020 from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { z } from 'zod';
import { useService } from '../support/service';
import { CREATES } from './create-setting';

const Document = z.object({
  components: z.object({ schemas: z.record(z.string(), z.unknown()) }),
});

const service = useService();
let document: z.infer<typeof Document>;

beforeAll(async () => {
  document = Document.parse(await (await fetch(`${service.url}/openapi.json`)).json());
});

/** Changes of a body that is taken; the document and the API agree on each. */
const CHANGES: Record<string, object[]> = {
  payments: [
    {},
    { country: null, reference: null, customer: null, metadata: null },
    { customer: { email: 'a@b.nl', first_name: null }, metadata: { a: { b: [] } } },
    { success_url: 'http://a.b/' },
    { customer: { phone: '1' } },
    { metadata: [] },
    { reference: 'x'.repeat(256) },
    { method: undefined },
  ],
  refunds: [
    { amount: 1 },
    { amount: 1, reason: null },
    { amount: 1, reason: 'x'.repeat(500) },
    { amount: 1, reason: 'x'.repeat(501) },
    { amount: 1, reason: 5 },
    { amount: 1, currency: 'EUR' },
    { payment_id: null, amount: 1 },
    { payment_id: undefined, amount: 1 },
    { amount: null },
  ],
  payouts: [
    {},
    { reference: null, metadata: null },
    { reference: 'x'.repeat(255), metadata: { balance_account: 'marketing', a: { b: [] } } },
    { reference: 'x'.repeat(256) },
    { reference: 5 },
    { metadata: [] },
    { amount: null },
    { amount: undefined },
    { recipient_id: null },
    { recipient_id: undefined },
    { method: null },
    { fee: 0 },
  ],
};
const REFUSED = [
  { amount: 10.5 },
  { amount: 0 },
  { amount: '5' },
  { currency: 'eur' },
  { extra: 1 },
];

test.each(CREATES)(
  'of $name, a body that the document allows is taken, and one that it does not is refused',
  async ({ name, operation, path, open }) => {
    const ajv = addFormats(new Ajv2020({ strict: false }));
    const { components } = document;
    const $ref = `#/components/schemas/C${operation.slice(1)}`;
    const validate = ajv.compile({ $ref, components });
    const creator = await open(service);
    const changed = [...REFUSED, ...(CHANGES[name] ?? [])].map((change) => ({
      ...creator.body,
      ...change,
    }));
    for (const body of [...changed, {}]) {
      const sent: unknown = JSON.parse(JSON.stringify(body));
      const { status } = await creator.post(path, sent);
      expect({ sent, allowed: validate(sent) }).toEqual({ sent, allowed: status === 201 });
    }
  },
);
