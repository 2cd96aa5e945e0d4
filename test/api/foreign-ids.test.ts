import type { ErrorCode } from '../../src/domain/errors';
import { useFixture } from '../support/fixture';
import type { Answer } from '../support/http';
import { useService } from '../support/service';
import { storeResources } from '../support/stored-resources';
import { cardRecipient } from './recipient-bodies';
import { expectRefusal } from './refusal';
import { ROUTES } from './routes-setting';

const service = useService();

const CODES: Record<string, ErrorCode> = {
  payments: 'payment_not_found',
  refunds: 'refund_not_found',
  payouts: 'payout_not_found',
  'payout-recipients': 'recipient_not_found',
  events: 'event_not_found',
  'webhook-endpoints': 'webhook_endpoint_not_found',
  'crypto/payments': 'crypto_payment_not_found',
  'crypto/settlements': 'crypto_settlement_not_found',
};

/** Bodies that every rule accepts, by the end of the path. */
const BODIES: [end: RegExp, body: object][] = [
  [/crypto\/payments\/[^/]+\/simulate$/, { event: 'received' }],
  [/simulate$/, { event: 'failed' }],
  [/test$/, { type: 'payout.sent' }],
];

const WITH_ID = ROUTES.filter(([, path]) => path.includes('{id}')).map(
  ([method, path]) => [method, path] as const,
);

const setting = useFixture(async () => {
  const open = async () => {
    const account = await service.account();
    await service.stores.accounts.setCrypto(account.account_id, true);
    return account;
  };
  const [owner, stranger] = [await open(), await open()];
  const { ids } = await storeResources(service, { ...owner, livemode: false });
  const recipient = await owner.post('/v1/payout-recipients', cardRecipient());
  const endpoint = await owner.post('/v1/webhook-endpoints', { url: 'http://127.0.0.1:9/hook' });
  return {
    ...{ owner, stranger, live: await service.withKey(owner, true) },
    ids: {
      ...ids,
      'payout-recipients': String(recipient.body.id),
      'webhook-endpoints': String(endpoint.body.id),
    } as Readonly<Record<string, string>>,
  };
});

function readResource(path: string): string {
  return /^\/v1\/(?:sandbox\/)?(.+)\/\{id\}/.exec(path)?.[1] ?? '';
}

function idFor(path: string): string {
  return setting.ids[readResource(path)] ?? '';
}

/** Id that nobody has, of the same form. */
function unknown(id: string): string {
  return `${id.slice(0, -6)}${id.endsWith('000000') ? '111111' : '000000'}`;
}

/** Drops from an answer what differs for each request. */
function comparable({ status, body }: Answer): object {
  return { status, body: { error: { ...body.error, request_id: undefined } } };
}

/** Reads all that the accounts have. */
async function readAll() {
  const names = [
    ...['payments', 'refunds', 'payouts', 'recipients', 'events', 'webhook_endpoints'],
    ...['crypto_payments', 'crypto_settlements', 'bank_callbacks', 'audit_log'],
  ];
  const { owner, stranger } = setting;
  const accounts = [owner.account_id, stranger.account_id];
  const resource_id = { $in: Object.values(setting.ids) };
  const filter = { $or: [{ account_id: { $in: accounts } }, { resource_id }] };
  return await Promise.all(names.map((name) => service.collection(name).find(filter).toArray()));
}

describe.each(WITH_ID)('%s %s', (method, path) => {
  const body = method === 'GET' ? undefined : BODIES.find(([end]) => end.test(path))?.[1];

  test.each(['stranger', 'live'] as const)(
    'answers a key of a %s as for an unknown id, and changes nothing',
    async (who) => {
      const before = await readAll();
      const id = idFor(path);
      const client = setting[who];
      const foreign = await client.send(method, path.replace('{id}', id), body);
      const none = await client.send(method, path.replace('{id}', unknown(id)), body);
      const isSandboxOnly = who === 'live' && path.startsWith('/v1/sandbox/');
      const code = isSandboxOnly ? 'api_key_scope_insufficient' : CODES[readResource(path)];
      expectRefusal(foreign, code ?? 'internal_error');
      expect(comparable(foreign)).toEqual(comparable(none));
      expect(await readAll()).toEqual(before);
    },
  );

  test('answers a key of the owner', async () => {
    if (method !== 'GET') return;
    expect((await setting.owner.get(path.replace('{id}', idFor(path)))).status).toBe(200);
  });
});

test.each(['stranger', 'live'] as const)(
  'a key of a %s cannot refund a payment of the owner, like an unknown one',
  async (who) => {
    const { payments: id = '' } = setting.ids;
    const before = await readAll();
    const refund = (payment_id: string) => setting[who].post('/v1/refunds', { payment_id });
    const [foreign, none] = [await refund(id), await refund(unknown(id))];
    expectRefusal(foreign, 'payment_not_found');
    expect(comparable(foreign)).toEqual(comparable(none));
    expect(await readAll()).toEqual(before);
  },
);
