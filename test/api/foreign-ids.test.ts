import type { ErrorCode } from '../../src/domain/errors';
import { buildAccount, buildEndpoint } from '../support/factories';
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

const WITH_ID = ROUTES.filter(([, path]) => path.includes('{id}')).map(
  ([method, path]) => [method, path] as const,
);

/** Bodies that every rule accepts, by the end of the path. */
const BODIES: [end: RegExp, body: object][] = [
  [/crypto\/payments\/[^/]+\/simulate$/, { event: 'received' }],
  [/simulate$/, { event: 'failed' }],
  [/test$/, { type: 'payout.sent' }],
];

const setting = useFixture(async () => {
  const owner = await buildAccount(service, { crypto: true });
  const stranger = await buildAccount(service, { crypto: true });
  const { ids } = await storeResources(service, { ...owner, livemode: false });
  const recipient = await owner.post('/v1/payout-recipients', cardRecipient());
  const endpoint = await buildEndpoint(owner, { url: 'http://127.0.0.1:9/hook' });
  const created = { 'payout-recipients': recipient.body.id, 'webhook-endpoints': endpoint.id };
  const all: Readonly<Record<string, string>> = { ...ids, ...created };
  return { owner, ids: all, others: { stranger, live: await service.withKey(owner, true) } };
});

/** Reads all that the accounts have. */
async function readAll() {
  const names = [
    ...['payments', 'refunds', 'payouts', 'recipients', 'events', 'webhook_endpoints'],
    ...['crypto_payments', 'crypto_settlements', 'bank_callbacks', 'audit_log'],
  ];
  const { owner, others, ids } = setting;
  const account_id = { $in: [owner.account_id, others.stranger.account_id] };
  const filter = { $or: [{ account_id }, { resource_id: { $in: Object.values(ids) } }] };
  return await Promise.all(names.map((name) => service.collection(name).find(filter).toArray()));
}

/** Expects the same refusal about an id of the owner as about one that nobody has, without effects. */
async function expectUnknown(
  code: ErrorCode,
  id: string,
  ask: (id: string) => Promise<Answer>,
): Promise<void> {
  const before = await readAll();
  const foreign = await ask(id);
  const none = await ask(`${id.slice(0, -6)}${id.endsWith('000000') ? '111111' : '000000'}`);
  expectRefusal(foreign, code);
  const compare = ({ status, body: { error } }: Answer) => [status, { ...error, request_id: '' }];
  expect(compare(foreign)).toEqual(compare(none));
  expect(await readAll()).toEqual(before);
}

describe.each([
  ['a stranger', 'stranger'],
  ['the live environment', 'live'],
] as const)('a key of %s', (_, asker) => {
  test.each(WITH_ID)(
    'finds at %s %s what it would at an unknown id, and changes nothing',
    async (method, path) => {
      const [, resource = ''] = /^\/v1\/(?:sandbox\/)?(.+)\/\{id\}/.exec(path) ?? [];
      const isSandboxOnly = asker === 'live' && path.startsWith('/v1/sandbox/');
      const code = isSandboxOnly ? 'api_key_scope_insufficient' : CODES[resource];
      const id = setting.ids[resource] ?? '';
      const body = method === 'GET' ? undefined : BODIES.find(([end]) => end.test(path))?.[1];
      await expectUnknown(code ?? 'internal_error', id, (each) =>
        setting.others[asker].send(method, path.replace('{id}', each), body),
      );
      if (method !== 'GET') return;
      expect((await setting.owner.get(path.replace('{id}', id))).status).toBe(200);
    },
  );

  test('cannot refund a payment of the owner', async () => {
    const { payments = '' } = setting.ids;
    await expectUnknown('payment_not_found', payments, (payment_id) =>
      setting.others[asker].post('/v1/refunds', { payment_id }),
    );
  });
});
