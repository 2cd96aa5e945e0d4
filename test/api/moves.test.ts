import { useHook } from '../support/hook';
import { eventually } from '../support/http';
import { useService } from '../support/service';
import { CREATES, type Creator } from './create-setting';
import { expectRefusal } from './refusal';

const service = useService();
const hook = useHook(service);

const SENT = ['payout.submitted', 'payout.sent'];
const OPENED = ['payment.awaiting_customer'];
const creating = (resource: string) => CREATES.find((each) => each.resource === resource);

/** Callbacks of a bank, the events until then, and callbacks that change nothing any more. */
const MOVES: [resource: string, event: string, events: string[], later: string[]][] = [
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

describe.each(MOVES)('a %s that is %s', (resource, event, types, later) => {
  let creator: Creator;
  beforeAll(async () => {
    creator = await openCreator(resource);
    await service.stores.accounts.setPayoutFee(creator.account_id, 'sepa_instant', 25);
  });

  const balances = () => service.stores.ledger.balances(creator.account_id, false);

  test('reads so, and nothing else that the bank says moves it or its money', async () => {
    const { id } = await creator.make();
    const moved = await creator.simulate(id, { event });
    expect([moved.status, moved.body.status]).toEqual([200, event]);
    expect((await creator.get(`/v1/${resource}s/${id}`)).text).toBe(moved.text);
    const before = await balances();
    for (const each of later) {
      const after = await creator.simulate(id, { event: each });
      expect([each, after.status, after.text]).toEqual([each, 200, moved.text]);
    }
    expect(await balances()).toEqual(before);
    expect(await creator.events(id)).toEqual(types);
  });

  test('tells the endpoint of every step, once', async () => {
    await hook.register(creator);
    const made = await creator.make();
    const { body } = await creator.simulate(made.id, { event });
    await creator.simulate(made.id, { event });
    const events = () => hook.distinct(made.id).map((delivery) => JSON.parse(delivery.body));
    await eventually('the events', async () => events().length >= types.length);
    const told = events();
    expect(told.map(({ type }) => type).sort()).toEqual(types.toSorted());
    for (const each of told) {
      expect(each).toEqual({
        id: expect.stringMatching(/^evt_[0-9a-f]{8}-[0-9a-f-]{27}$/),
        type: expect.any(String),
        created: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        livemode: false,
        data:
          resource === 'refund'
            ? { refund_id: made.id, payment_id: made.payment_id }
            : { [`${resource}_id`]: made.id },
      });
    }
    const last = told.find(({ type }) => type === `${resource}.${event}`);
    if (event === 'settled') expect(last?.['created']).toBe(body.settled_at);
  });
});

test.each([
  ['payment', 'declined'],
  ['refund', 'refund_refused'],
  ['payout', 'payout_rejected'],
])('a %s that failed has the code and reason given, or says %s', async (resource, code) => {
  const { make, simulate } = await openCreator(resource);
  const why = { event: 'failed', code: 'x', reason: 'Why.' };
  const told = await simulate((await make()).id, why);
  expect(told.body.failure).toEqual({ code: 'x', message: 'Why.' });
  for (const bare of [{}, { code: null }, { code: null, reason: null }]) {
    const { body } = await simulate((await make()).id, { event: 'failed', ...bare });
    expect(body.failure).toEqual({ code, message: expect.any(String) });
  }
});

const FOREIGN = { payment: 'returned', refund: 'authorized', payout: 'settled' };

describe.each(CREATES)('a simulation about a $resource', ({ resource, path, open }) => {
  let creator: Creator;
  /** Read before and after each refusal, so that one serves them all. */
  let id: string;
  beforeAll(async () => {
    creator = await open(service);
    ({ id } = await creator.make());
  });

  test.each([
    ['an event that is none', { event: 'paid' }, ['event']],
    ['an event of another resource', { event: FOREIGN[resource] }, ['event']],
    ['no event', {}, ['event']],
    ['no body', undefined, ['event']],
    ['a code of 101 characters', { event: 'failed', code: 'x'.repeat(101) }, ['code']],
    ['a reason of 501 characters', { event: 'failed', reason: 'x'.repeat(501) }, ['reason']],
    ['wrong types', { event: 1, code: 1.5, reason: [] }, ['event', 'code', 'reason']],
    ['an unknown field', { event: 'failed', status: 'failed' }, ['status']],
  ])('%s is refused and moves nothing', async (_, body, fields) => {
    const before = await creator.get(`${path}/${id}`);
    expectRefusal(await creator.simulate(id, body), 'invalid_request', fields);
    expect((await creator.get(`${path}/${id}`)).text).toBe(before.text);
  });

  test('what nobody has, or is of another kind, cannot be simulated', async () => {
    const code = `${resource}_not_found` as const;
    const event = { event: 'failed' };
    const { id: payment_id } = await creator.settledPayment();
    const refund = await creator.post('/v1/refunds', { payment_id });
    for (const other of ['some-id', resource === 'payment' ? refund.body.id : payment_id]) {
      expectRefusal(await creator.simulate(other, event), code);
    }
  });
});

async function openCreator(resource: string): Promise<Creator> {
  const found = creating(resource);
  if (found === undefined) throw new Error(`There is no ${resource}.`);
  return await found.open(service);
}
