import { explain } from '../../src/cli/failure';
import { redeliverAll } from '../../src/service/events/redeliver-many';
import type { EventDelivery, EventDocument } from '../../src/store/events';
import { openAccount } from '../support/service';
import { useDeliverySetting } from './delivery-setting';
import { recordEvents, registerEndpoint } from './event-log';

const setting = useDeliverySetting();

const STANDINGS: EventDelivery[] = [
  { status: 'exhausted', attempts: 12, next_attempt_at: null, run: 0 },
  { status: 'pending', attempts: 5, next_attempt_at: '2026-03-01T18:00:00.000Z', run: 0 },
  { status: 'pending', attempts: 0, next_attempt_at: '2026-03-01T12:00:00.000Z', run: 0 },
  { status: 'delivered', attempts: 1, next_attempt_at: null, run: 0 },
];

/** A merchant with an event in each standing, and an exhausted one of another type. */
async function merchant() {
  const { account_id } = await openAccount(setting.deps.stores, {});
  await registerEndpoint(setting.service, account_id, setting.inbox.url);
  const types = STANDINGS.map(() => 'payment.settled' as const);
  const events = await recordEvents(setting.service, account_id, [...types, 'payment.failed']);
  for (const [n, { _id }] of events.entries()) {
    await setting.deps.stores.events.setDelivery(_id, STANDINGS[n] ?? STANDINGS[0] ?? {});
  }
  const [exhausted, waiting, fresh, delivered, failed] = events;
  if (!exhausted || !waiting || !fresh || !delivered || !failed) throw new Error('Too few.');
  return { account_id, exhausted, waiting, fresh, delivered, failed, events };
}

const since = '2026-03-01T12:00:00Z';
const many = (account: string, ...more: string[]) => {
  const from = ['--account', account, '--env', 'sandbox', '--since', since];
  return ['event', 'redeliver', ...from, ...more];
};

async function runsOf(events: EventDocument[]): Promise<(number | undefined)[]> {
  const standing = await Promise.all(events.map((event) => setting.deliveryOf(event)));
  return standing.map((delivery) => delivery?.run);
}

async function endAll(events: EventDocument[]): Promise<void> {
  for (const event of events) await setting.handleOf(event).terminate('end of test');
}

test('all that failed or waits is sent again, once it was counted', async () => {
  const { account_id, exhausted, waiting, fresh, delivered, failed } = await merchant();
  const counted = { found: 3, by_status: { exhausted: 2, pending: 1 } };
  expect(await setting.service.json(...many(account_id, '--dry-run'))).toEqual({
    ...counted,
    dry_run: true,
    sent: 0,
    skipped: 0,
  });
  const { stdout } = await setting.service.cli(...many(account_id, '--dry-run'));
  expect(stdout).toBe('To be sent again: 3 (exhausted 2, pending 1).\n');
  const all = [exhausted, waiting, fresh, delivered, failed];
  expect(await runsOf(all)).toEqual([0, 0, 0, 0, 0]);

  const sent = { ...counted, dry_run: false, sent: 3, skipped: 0 };
  expect(await setting.service.json(...many(account_id))).toEqual(sent);
  expect(await runsOf(all)).toEqual([1, 1, 0, 0, 1]);
  expect(await setting.inputOf(waiting)).toMatchObject({ event_id: waiting._id, run: 1 });
  await endAll([exhausted, waiting, failed]);
});

test('it is narrowed by type, status and time, and tells a person how it goes', async () => {
  const { account_id, delivered, failed, events } = await merchant();
  const told = await setting.service.cli(...many(account_id, '--type', 'payment.failed'));
  expect(told).toEqual({
    exit: 0,
    stdout: 'Sent again: 1.\n',
    stderr: 'To be sent again: 1 (exhausted 1, pending 0).\n',
  });
  const again = await setting.service.json(...many(account_id, '--status', 'delivered'));
  expect(again).toMatchObject({ found: 1, by_status: { delivered: 1 }, sent: 1 });
  expect(await runsOf(events)).toEqual([0, 0, 0, 1, 1]);
  const before = many(account_id, '--until', '2026-03-01T12:00:00Z', '--dry-run');
  expect(await setting.service.json(...before)).toMatchObject({ found: 0 });
  await endAll([delivered, failed]);
});

test('it goes out at a measured pace, the oldest first, also past a page', async () => {
  const { account_id, exhausted, waiting, failed } = await merchant();
  const filter = {
    account_id,
    livemode: false,
    since: '2026-03-01T12:00:00.000000000Z',
    until: new Date().toISOString(),
    statuses: ['exhausted', 'pending'] as const,
  };
  const startedAt = performance.now();
  const steps: number[] = [];
  await setting.working(async () => {
    const total = await redeliverAll(setting.deps, filter, ({ sent }) => steps.push(sent), 2);
    expect(total).toEqual({ sent: 3, skipped: 0 });
    expect(performance.now() - startedAt).toBeGreaterThan(140);
    for (const event of [exhausted, waiting, failed]) await setting.handleOf(event).result();
  });
  expect(steps).toEqual([1, 2, 3]);
  expect([...setting.bodies()].sort()).toEqual(
    [exhausted, waiting, failed].map((e) => e.body).sort(),
  );
  const nowhere = { ...setting.deps, webhookQueue: 'q'.repeat(5_000) };
  const again = redeliverAll(nowhere, { ...filter, statuses: ['delivered'] }, () => undefined);
  expect(await again.catch(explain)).toMatchObject({
    code: 'temporal_unavailable',
    message: expect.stringMatching(/Sent again before that: 0\. Go on with --since 2026-03-01T12:/),
  });
});

test('wrong usage is refused, and a merchant without an endpoint', async () => {
  const usage = [
    ['event', 'redeliver'],
    ['event', 'redeliver', 'evt_1', '--dry-run'],
    ['event', 'redeliver', '--account', 'acct_1', '--env', 'live'],
    many('acct_1', '--status', 'lost'),
    many('acct_1', '--type', 'payment'),
  ];
  for (const args of usage) {
    expect((await setting.service.refusal(...args)).code).toBe('invalid_usage');
  }
  const { account_id } = await openAccount(setting.deps.stores, {});
  const codes = [many('acct_1'), many(account_id)].map(async (args) => {
    return (await setting.service.refusal(...args)).code;
  });
  expect(await Promise.all(codes)).toEqual(['account_not_found', 'webhook_not_set']);
});
