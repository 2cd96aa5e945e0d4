import { useHook } from '../support/hook';
import { eventually } from '../support/http';
import { useService } from '../support/service';
import { CREATES, type Creator } from './create-setting';
import { expectRefusal } from './refusal';

const service = useService();
const hook = useHook(service);

const OPENED = ['payment.awaiting_customer'];
const SENT = ['payout.submitted', 'payout.sent'];

/** Reports of a bank, the events until then, and reports that change nothing any more. */
const REPORTS: [resource: string, event: string, events: string[], later: string[]][] = [
  ['payment', 'authorized', [...OPENED, 'payment.authorized'], []],
  [
    'payment',
    'settled',
    [...OPENED, 'payment.authorized', 'payment.settled'],
    ['authorized', 'settled', 'expired', 'failed'],
  ],
  ['payment', 'failed', [...OPENED, 'payment.failed'], []],
  ['payment', 'expired', [...OPENED, 'payment.expired'], []],
  ['refund', 'settled', ['refund.settled'], ['settled', 'failed', 'settled']],
  // A failed refund that settles is debited again: test/workflows/refund/sent-again.test.ts
  ['refund', 'failed', ['refund.failed'], ['failed', 'failed']],
  [
    'payout',
    'completed',
    [...SENT, 'payout.completed'],
    ['submitted', 'sent', 'failed', 'completed'],
  ],
  [
    'payout',
    'failed',
    [...SENT, 'payout.failed'],
    ['submitted', 'sent', 'completed', 'returned', 'failed'],
  ],
  [
    'payout',
    'returned',
    [...SENT, 'payout.returned'],
    ['submitted', 'sent', 'completed', 'failed', 'returned'],
  ],
];

async function openCreator(resource: string): Promise<Creator> {
  const found = CREATES.find((each) => each.resource === resource);
  if (found === undefined) throw new Error(`There is no ${resource}.`);
  return await found.open(service);
}

test.each(REPORTS)(
  'a %s that is %s has an event for each step, and ignores later reports',
  async (resource, event, types, later) => {
    const creator = await openCreator(resource);
    await hook.register(creator);
    await service.stores.accounts.setPayoutFee(creator.account_id, 'sepa_instant', 25);
    const balances = () => service.stores.ledger.balances(creator.account_id, false);
    const created = await creator.make();
    const { id } = created;
    const reported = await creator.simulate(id, { event });
    expect([reported.status, reported.body.status]).toEqual([200, event]);
    expect((await creator.get(`/v1/${resource}s/${id}`)).text).toBe(reported.text);
    const before = await balances();
    for (const each of later) {
      const after = await creator.simulate(id, { event: each });
      expect([each, after.status, after.text]).toEqual([each, 200, reported.text]);
    }
    expect(await balances()).toEqual(before);
    expect(await creator.events(id)).toEqual(types);

    const listDelivered = () => hook.distinct(id).map(({ body }) => JSON.parse(body));
    await eventually('the events', async () => listDelivered().length >= types.length);
    const delivered = listDelivered();
    expect(delivered.map(({ type }) => type).sort()).toEqual(types.toSorted());
    const data =
      resource === 'refund'
        ? { refund_id: id, payment_id: created.payment_id }
        : { [`${resource}_id`]: id };
    for (const each of delivered) {
      expect(each).toEqual({
        id: expect.stringMatching(/^evt_[0-9a-f]{8}-[0-9a-f-]{27}$/),
        type: expect.any(String),
        created: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        livemode: false,
        data,
      });
    }
    const last = delivered.find(({ type }) => type === `${resource}.${event}`);
    if (event === 'settled') expect(last?.['created']).toBe(reported.body.settled_at);
  },
);

test.each([
  ['payment', 'declined'],
  ['refund', 'refund_refused'],
  ['payout', 'payout_rejected'],
])('a failed %s has the code and reason of its report, by default %s', async (resource, code) => {
  const { make, simulate } = await openCreator(resource);
  const fail = async (reason: object) =>
    (await simulate((await make()).id, { event: 'failed', ...reason })).body.failure;
  expect(await fail({ code: 'x', reason: 'Why.' })).toEqual({ code: 'x', message: 'Why.' });
  for (const bare of [{}, { code: null }, { code: null, reason: null }]) {
    expect(await fail(bare)).toEqual({ code, message: expect.any(String) });
  }
});

const FOREIGN = { payment: 'returned', refund: 'authorized', payout: 'settled' };

describe.each(CREATES)('a simulation for a $resource', ({ resource, path, open }) => {
  let creator: Creator;
  /** Read before and after each refusal, so that one serves them all. */
  let id: string;
  beforeAll(async () => {
    creator = await open(service);
    ({ id } = await creator.make());
  });

  test.each([
    ['an unknown event', { event: 'paid' }, ['event']],
    ['an event of another resource', { event: FOREIGN[resource] }, ['event']],
    ['no event', {}, ['event']],
    ['no body', undefined, ['event']],
    ['a code of 101 characters', { event: 'failed', code: 'x'.repeat(101) }, ['code']],
    ['a reason of 501 characters', { event: 'failed', reason: 'x'.repeat(501) }, ['reason']],
    ['wrong types', { event: 1, code: 1.5, reason: [] }, ['event', 'code', 'reason']],
    ['an unknown field', { event: 'failed', status: 'failed' }, ['status']],
  ])('refuses %s and changes nothing', async (_, body, fields) => {
    const before = await creator.get(`${path}/${id}`);
    expectRefusal(await creator.simulate(id, body), 'invalid_request', fields);
    expect((await creator.get(`${path}/${id}`)).text).toBe(before.text);
  });

  test('does not find an unknown id, nor one of another kind', async () => {
    const { id: payment_id } = await creator.settledPayment();
    const refund = await creator.post('/v1/refunds', { payment_id });
    for (const other of ['some-id', resource === 'payment' ? refund.body.id : payment_id]) {
      const answer = await creator.simulate(other, { event: 'failed' });
      expectRefusal(answer, `${resource}_not_found`);
    }
  });
});
