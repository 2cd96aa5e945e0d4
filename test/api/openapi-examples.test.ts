import Ajv2020 from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { z } from 'zod';
import { NETWORKS } from '../../src/domain/crypto/assets';
import { ENDPOINTS } from '../../src/domain/wire';
import { eventually } from '../support/http';
import { useService } from '../support/service';
import { CREATES } from './create-setting';
import { openShop, type Shop } from './payout-setting';

const Content = z.object({
  'application/json': z.object({ example: z.looseObject({}).optional() }),
});
const Document = z.object({
  components: z.object({ schemas: z.record(z.string(), z.unknown()) }),
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.object({
        parameters: z.array(
          z.object({ name: z.string(), in: z.string(), example: z.unknown().optional() }),
        ),
        requestBody: z.object({ content: Content }).optional(),
        responses: z.record(z.string(), z.looseObject({})),
      }),
    ),
  ),
});
const Success = z.object({ content: Content });
type Body = Record<string, unknown>;

const service = useService();
let document: z.infer<typeof Document>;
let shop: Shop;

const post = async (path: string, body: object | undefined) => {
  const { status, body: answer, text } = await shop.post(path, body);
  if (status >= 400) throw new Error(`POST ${path} ${JSON.stringify(body)}: ${text}`);
  return answer;
};

/** Example of the body of a POST. */
function exampleOf(path: string): Body {
  const media = document.paths[path]?.['post']?.requestBody?.content['application/json'];
  if (media?.example === undefined) throw new Error(`POST ${path} has no example`);
  return media.example;
}

/** Makes each kind of resource by the examples, and gives its id. */
const make = {
  payment: async () => (await post('/v1/payments', exampleOf('/v1/payments'))).id,
  event: async () => {
    const { data } = (await shop.get(`/v1/events?resource_id=${await make.payment()}`)).body;
    return data[0].id;
  },
  endpoint: async () => {
    const path = '/v1/webhook-endpoints';
    return (await post(path, exampleOf(path))).id;
  },
  settled: async () => {
    const id = await make.payment();
    await post(`/v1/sandbox/payments/${id}/simulate`, { event: 'settled' });
    return id;
  },
  refund: async () => {
    const payment_id = await make.settled();
    const example = exampleOf('/v1/refunds');
    return (await post('/v1/refunds', { ...example, payment_id })).id;
  },
  recipient: async () => {
    const path = '/v1/payout-recipients';
    return (await post(path, exampleOf(path))).id;
  },
  payout: async () => {
    const recipient_id = await make.recipient();
    const { id } = await post('/v1/payouts', { ...exampleOf('/v1/payouts'), recipient_id });
    await service.becomes('payouts', id, { status: 'sent' });
    return id;
  },
  coins: async () => {
    const path = '/v1/crypto/payments';
    return (await post(path, exampleOf(path))).id;
  },
  received: async () => {
    const id = await make.coins();
    await post(`/v1/sandbox/crypto/payments/${id}/simulate`, { event: 'received' });
  },
  settlement: async () => {
    const path = '/v1/crypto/settlements';
    const example = exampleOf(path);
    await make.received();
    return (await post(path, { ...example, amount: '1000000000000000' })).id;
  },
  sent: async () => {
    const id: string = await make.settlement();
    await service.becomes('crypto_settlements', id, { status: 'sent' });
    return id;
  },
};

beforeAll(async () => {
  const { stores, url } = service;
  shop = await openShop(service);
  const { account_id } = shop;
  await stores.accounts.setCrypto(account_id, true);
  const now = new Date().toISOString();
  const address = '0x52908400098527886E0F7030069857D2E4169EE7';
  for (const network of NETWORKS) {
    const wallet = { account_id, livemode: false, network, address };
    await stores.wallets.set(wallet, { now, counts_from: now });
  }
  document = Document.parse(await (await fetch(`${url}/openapi.json`)).json());
});

/** Id of a fresh resource that a path takes. */
function idFor(path: string): Promise<string> {
  if (path.includes('/crypto/payments/')) return make.coins();
  if (path.includes('/sandbox/crypto/settlements/')) return make.sent();
  if (path.includes('/crypto/settlements/')) return make.settlement();
  if (path.includes('/refunds/')) return make.refund();
  if (path.includes('/payouts/')) return make.payout();
  if (path.includes('/payout-recipients/')) return make.recipient();
  if (path.includes('/events/')) return make.event();
  if (path.includes('/webhook-endpoints/')) return make.endpoint();
  return make.payment();
}

/** Example body with ids of what there is, and the state that it needs. */
async function madeReal(operation: string, body: Body): Promise<Body> {
  if (operation === 'createRefund') return { ...body, payment_id: await make.settled() };
  if (operation === 'createPayout') return { ...body, recipient_id: await make.recipient() };
  if (operation === 'createCryptoSettlement') await make.received();
  return body;
}

/** Text of an answer without what is another each time. */
function alike(answer: unknown): unknown {
  const text = JSON.stringify(answer)
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'id')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'time')
    .replaceAll(/whsec_[\w-]{43}/g, 'secret')
    .replaceAll(/0x[0-9a-f]{64}/gi, 'transaction')
    .replaceAll(/0x[0-9a-f]{40}/gi, 'address')
    .replaceAll(/(pay\/(?:crypto\/)?)[\w-]{43}/g, '$1token')
    .replaceAll(/@\d+\?/g, '@chain?')
    .replaceAll(/"\d{3,}"/g, '"units"')
    // A settlement may be sent before it is read.
    .replace(
      /"status":"sent"(.*)"transaction_id":"transaction"/,
      '"status":"pending"$1"transaction_id":null',
    );
  return JSON.parse(text);
}

const named = ENDPOINTS.map((endpoint) => [endpoint.operation, endpoint] as const);

test.each(named)('%s succeeds with its example, and answers like its own', async (_, endpoint) => {
  const { operation, method, path, success } = endpoint;
  const shown = document.paths[path]?.[method];
  const { content } = Success.parse(shown?.responses[success.status]);
  const { example } = content['application/json'];
  const body = shown?.requestBody?.content['application/json'].example;
  const query = (shown?.parameters ?? []).flatMap((parameter) =>
    parameter.in === 'query' && parameter.name !== 'after'
      ? [`${parameter.name}=${encodeURIComponent(`${parameter.example}`)}`]
      : [],
  );
  const ask = async (search = '') => {
    const to = path.includes('{id}') ? path.replace('{id}', await idFor(path)) : path;
    const sent = body && (await madeReal(operation, body));
    const send = () => {
      const address = `${to}${search}`;
      return method === 'post'
        ? shop.post(address, sent)
        : shop.send(method.toUpperCase(), address, sent);
    };
    // On a busy machine a payout may be answered before its bank has it.
    const made = await eventually('an answer with the word of the bank', async () => {
      const answer = await send();
      const isEarly = operation === 'createPayout' && answer.body.status !== 'sent';
      return answer.status < 400 && isEarly ? undefined : answer;
    });
    expect([search, made.status, made.text]).toEqual([search, success.status, made.text]);
    return made.body;
  };
  if (query.length > 0) await ask(`?${query.join('&')}`);
  if (operation.startsWith('list')) {
    if (operation === 'listPaymentRefunds') return;
    // At least one row, also where this test runs alone.
    await idFor(`${path}/`);
    const { data } = await ask();
    expect(Object.keys(data[0])).toEqual(Object.keys(Object(example?.['data'])[0]));
    return;
  }
  const answer = await ask();
  // How far its deliveries are depends on the moment.
  const isEvent = operation === 'getEvent' || operation === 'redeliverEvent';
  const values = isEvent ? pickFields(example) : example;
  expect(alike(isEvent ? pickFields(answer) : answer)).toEqual(alike(values));
});

function pickFields({ deliveries: _, ...fields }: Body = {}): Body {
  return { ...fields, type: 'payment.settled' };
}

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
