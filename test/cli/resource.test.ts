import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { inTransaction } from '../../src/base/mongo';
import { deliverCallback } from '../../src/callbacks/deliver';
import { explain } from '../../src/cli/failure';
import type { CallbackResource } from '../../src/domain/banks/callback';
import { type EventType, webhookWorkflowId } from '../../src/domain/events/event';
import { redeliverAll, redeliverEvent } from '../../src/service/events/redeliveries';
import { actOn } from '../../src/service/operators/act';
import { findDeliveries, restart } from '../../src/service/operators/reconcile/orphans';
import { type DeliveryRow, listAttempts } from '../../src/store/deliveries';
import type { DisputeDocument } from '../../src/store/disputes';
import type { EventDocument } from '../../src/store/events';
import { eventually } from '../support/eventually';
import { buildAccount, buildDispute, buildPayment } from '../support/factories';
import { useFixture } from '../support/fixture';
import { readPayloads } from '../support/histories';
import { useHook } from '../support/hook';
import { buildDisputeRow, paymentAt } from '../support/list-rows';
import { asOperator, commandsIn, run, useCommands } from './cli';
import { recordEvents } from './event-log';
import { useResourceSetting } from './resource-setting';

const setting = useResourceSetting();

const at = expect.stringMatching(/^\d{4}-.+Z$/);

/** Reports a callback as a connector does. */
function report(id: string, callback_id: string, name: 'completed' | 'failed', from?: string) {
  const { service, deps } = setting;
  const about = { resource: 'payout', resource_id: id, name } as const;
  const callback = {
    ...{ callback_id, occurred_at: '2026-03-01T12:00:00.000Z', reason: 'Said so' },
    ...{ amount: 1_000, currency: 'EUR', value_date: '2026-03-02' },
  };
  return deliverCallback(deps, { connector: from ?? service.connector, ...about, callback });
}

test('payout show has its transitions, journal entries, callbacks and audit trail', async () => {
  const { shop, service } = setting;
  const id = await setting.payout({ metadata: { secret: 'M0' }, reference: 'salary-7' });
  await report(id.toUpperCase(), `${id}-1`, 'completed');
  await service.becomes('payouts', id, { status: 'completed' });
  await report(id, `${id}-2`, 'failed');
  const { callbacks, payouts } = service.stores;
  const key = `${service.connector}:${id}-2`;
  await eventually('the reason', async () => (await callbacks.get(key))?.unapplied);
  expect(await report(id, `${id}-3`, 'failed', 'other')).toBe('parked');
  // The attention reason is written after that of the callback.
  await eventually('the attention reason', async () => (await payouts.get(id))?.attention);
  const shown = await setting.json(`payout show ${id.toUpperCase()}`);
  const delivery = { status: 'no_endpoint', attempts: 0, next_attempt_at: null };
  const events = ['submitted', 'sent', 'completed'].map((name) => ({
    ...{ id: expect.stringMatching(/^evt_/), type: `payout.${name}`, created: at, delivery },
  }));
  const book = `${shop.account_id}:sandbox:EUR`;
  const legs = [
    { account: 'balances.main.available', amount: -1_000 },
    { account: 'balances.main.reserved', amount: 1_000 },
  ];
  const said = { occurred_at: '2026-03-01T12:00:00.000Z', received_at: at, code: null };
  const buildCallback = (number: number, facts: object) =>
    expect.objectContaining({
      ...{ ...said, callback_id: `${id}-${number}`, bank_reference: null, reason: 'Said so' },
      ...{ amount: 1_000, currency: 'EUR', value_date: '2026-03-02' },
      ...facts,
    });
  expect(shown).toEqual({
    payout: {
      ...{ id, workflow_id: `payout:${id}`, account_id: shop.account_id, livemode: false },
      ...{ status: 'completed', version: 5, amount: 1_000, fee: 0, currency: 'EUR' },
      ...{ balance_account: 'main', recipient_id: shop.recipients.sepa_instant },
      ...{ reference: 'salary-7', method: 'sepa_instant', connector: service.connector },
      ...{ bank_reference: expect.any(String), request_id: expect.any(String) },
      ...{ attention: 'failed_after_completed', failure: null, returned: null },
      remedy: expect.stringContaining('mark_returned --amount AMOUNT'),
      ...{ created_at: at, updated_at: at, due_at: at, sent_at: at, completed_at: at },
      verification: null,
    },
    recipient: { type: 'bank_account', scheme: null, last4: '3000' },
    events,
    postings: [
      {
        ...{ id: `payout_reserved:${id}`, kind: 'payout_reserved', at, book, legs },
        ...{ value_date: null, bank_reference: null },
      },
      expect.objectContaining({ kind: 'payout_captured', bank_reference: expect.any(String) }),
    ],
    movements: [
      expect.objectContaining({
        ...{ direction: 'out', amount: 1_000, currency: 'EUR', state: 'applied', reason: null },
        ...{ resource: 'payout', resource_id: id, sources: [{ kind: 'answer', id, at }] },
      }),
    ],
    callbacks: expect.arrayContaining([
      buildCallback(1, { unapplied: null }),
      buildCallback(2, {
        ...{ name: 'failed', signalled_at: at, parked: null },
        unapplied: 'a completed payout never fails',
      }),
      buildCallback(3, {
        ...{ connector: 'other', signalled_at: null },
        parked: 'no such payout at this connector',
      }),
    ]),
    audit: [],
  });
  const { stdout } = await setting.cli(`payout show ${id}`);
  for (const words of [
    ...[/^Amount: +€10\.00$/m, /^Recipient: +bank_account …3000$/m],
    /^Attention: +failed_after_completed$/m,
    /\n\nMOVES\nAT +EVENT +ID .+\n.+ payout\.submitted .+\n.+ payout\.sent /,
    / payout_reserved +balances\.main\.available +-€10\.00\n +balances\.main/,
    / failed +sandbox-\S+ +\S+-2 +Said so, €10\.00, value date 2026-03-02 +not applied: a completed payout/,
    / failed +other +\S+-3 +Said so, €10\.00, value date 2026-03-02 +parked: no such payout/,
    /\n\nAUDIT TRAIL\nNo operator has acted\.\n$/,
  ]) {
    expect(stdout).toMatch(words);
  }
  for (const hidden of ['M0', 'Lovelace', 'DE8937', '12 Long Lane']) {
    expect(stdout + JSON.stringify(shown)).not.toContain(hidden);
  }
});

test('payment show and refund show name each other, and show nothing of the customer', async () => {
  const { id: payment_id } = await buildPayment(setting.shop, {
    ...{ status: 'settled', success_url: 'https://shop.example/a?token=T0' },
    ...{ customer: { email: 'ada@example.com', first_name: 'Ada' }, metadata: { k: 'M0' } },
  });
  const { id } = await setting.refund({ payment_id, reason: 'R0 for Ada' });
  const refund = await setting.json('refund', 'show', id);
  expect(refund).toMatchObject({
    refund: { id, payment_id, status: 'processing', amount: 300, workflow_id: `refund:${id}` },
    postings: [{ kind: 'refund_accepted' }],
    callbacks: [],
  });
  const payment = await setting.json(`payment show ${payment_id}`);
  expect(payment).toMatchObject({
    payment: { id: payment_id, status: 'settled', refunded: 300 },
    refunds: [{ id, status: 'processing', amount: 300 }],
    postings: [{ kind: 'payment_settled' }],
    movements: [
      { direction: 'in', amount: 1_050, currency: 'EUR', state: 'applied', reason: null },
    ],
  });
  const { stdout } = await setting.cli(`payment show ${payment_id}`);
  expect(stdout).toMatch(/\n\nBANK MOVEMENTS\nMOVEMENT .+\nmv_\S+ .+ in +€10\.50 .+ applied +-\n/);
  expect(stdout).toMatch(new RegExp(`\\n\\nREFUNDS\\nREFUND .+\\n${id} .+ processing +€3\\.00`));
  const shown = stdout + JSON.stringify([payment, refund]);
  for (const hidden of ['ada@example.com', 'Ada', 'M0', 'R0', 'http', 'token', 'hash']) {
    expect(shown).not.toContain(hidden);
  }
});

const BY = ['--operator', 'mia', '--reason', 'The bank said so'];
const act = (kind: CallbackResource, id: string, what: string, ...more: string[]) => [
  ...[kind, 'act', id, what, ...BY, ...more],
];
/** Acts as the command does, with the workers of the product: for a workflow that has ended. */
const actAgain = (kind: CallbackResource, id: string, what: string) =>
  actOn(setting.deps, kind, id, { what, operator: 'mia', reason: 'The bank said so' });
const payout = (id: string) => setting.service.stores.payouts.get(id);

/** Payout that the sandbox bank sends, and says no more of. */
const openSent = () => setting.payout({ amount: 66_623 });

// Which acts change what is in test/workflows/shared/resources.test.ts.
describe('payout act', () => {
  test('prints the new state, and is in the audit trail and log', async () => {
    const id = await openSent();
    const snooze = act('payout', id, 'snooze', '--hours', '1.5', '--approved-by', 'noah');
    const snoozed = { payout_id: id, attention: null, status: 'sent', version: 4 };
    expect(await setting.json(...snooze)).toEqual(snoozed);
    const note = { what: 'snooze', why: 'The bank said so', approved_by: 'noah' };
    const state = 'no attention';
    const audit = [{ ...note, who: 'mia', when: at, before: state, after: state }];
    const show = `payout show ${id}`;
    expect(await setting.json(show)).toMatchObject({ audit });
    expect(await setting.cli(...act('payout', id, 'mark_returned'))).toEqual({
      ...{ exit: 0, stderr: '' },
      stdout: expect.stringMatching(
        /^Done: +mark_returned\nStatus: +returned\nVersion: +5\nAttention: +-\n$/,
      ),
    });
    expect((await setting.cli(show)).stdout).toMatch(
      /\nWHO +WHEN +WHAT +WHY +BEFORE +AFTER\nmia, approved by noah +\S+ \S+ UTC +snooze +The bank said so +no attention +no attention\nmia +.* sent +returned\n$/,
    );
    const { account_id } = setting.shop;
    const lines = await setting.service.stores.auditLog.list({ account_id, limit: 100 });
    const actor = { via: 'command_line', operator: 'mia', host: hostname() };
    expect(lines.filter(({ target }) => target === id)).toMatchObject([
      { act: 'payout.act', before: { state: 'sent' }, after: { state: 'returned' } },
      { act: 'payout.act', actor, before: { state }, after: { ...note, state } },
    ]);
  });

  test('marks a payout that the bank holds as failed only with a confirmation', async () => {
    const id = await setting.payout({ amount: 66_624 }, 'submitted');
    expect(await setting.refusal(...act('payout', id, 'mark_failed'))).toEqual({
      code: 'held_by_bank',
      message: expect.stringMatching(/^The bank holds the payout and may still execute it/),
    });
    expect((await payout(id))?.audit).toEqual([]);
    const confirmed = act('payout', id, 'mark_failed', '--bank-confirmed-not-executed');
    expect(await setting.json(...confirmed)).toMatchObject({ status: 'failed' });
    const { stdout } = await setting.cli('payout', 'show', id);
    expect(stdout).toContain('mark_failed (bank_confirmed_not_executed)');
  });

  test('without an answer in time reports that its outcome is unknown, and without Temporal changes nothing', async () => {
    const id = await openSent();
    const env = { ...setting.env, TEMPORAL_ADDRESS: '127.0.0.1:1' };
    const away = await run(env, ...act('payout', id, 'mark_failed'));
    const stderr = expect.stringContaining('Temporal does not answer at 127.0.0.1:1');
    expect(away).toMatchObject({ exit: 1, stderr });
    expect((await payout(id))?.status).toBe('sent');
    await setting.terminate('payout', id);
    // The client without patience: its deadline is what is checked.
    const { temporal } = setting.service;
    const nobody = { ...setting.deps, temporal, lifecycleQueue: `nobody-${id}`, timeoutMs: 10_000 };
    const failed = { what: 'mark_failed', operator: 'mia', reason: 'Why' };
    await expect(actOn(nobody, 'payout', id, failed)).rejects.toMatchObject({
      code: 'outcome_unknown',
      message: expect.stringMatching(
        /no answer within 10 seconds, so the outcome is unknown: `payout show \S+` shows it/,
      ),
    });
    // A busy Temporal may not have started the run, on which nobody works.
    await setting.terminate('payout', id).catch(() => undefined);
  });
});

test.each<[CallbackResource, string, () => Promise<string>]>([
  ['refund', 'mark_settled', async () => (await setting.refund()).id],
  ['payment', 'mark_settled', () => setting.payment()],
  ['payout', 'mark_completed', openSent],
])('%s act works after its workflow has ended or was terminated', async (kind, what, open) => {
  const [ended, terminated] = [await open(), await open()];
  const status = what.replace('mark_', '');
  expect(await setting.json(...act(kind, ended, what))).toMatchObject({ status });
  await setting.handle(kind, ended).result();
  await expect(actAgain(kind, ended, 'mark_failed')).rejects.toMatchObject({
    ...{ code: 'wrong_state', message: expect.stringContaining(`The ${kind} is ${status}; `) },
  });
  await setting.terminate(kind, terminated);
  expect(await actAgain(kind, terminated, what)).toMatchObject({ status });
  await setting.handle(kind, terminated).result();
});

const service = useFixture(async () => setting.service);
const hook = useHook(service);

type State = Pick<DeliveryRow, 'status' | 'attempts' | 'next_attempt_at'>;
const EXHAUSTED: State = { status: 'exhausted', attempts: 12, next_attempt_at: null };
const DUE_AT = '2026-03-01T12:05:00.000Z';
const SINCE = '2026-03-01T12:00:00Z';

/** Deliveries that a command starts have no worker: they run until the end of a test. */
const recorded: EventDocument[] = [];
const getDelivery = ({ _id }: EventDocument) =>
  service.temporal.workflow.getHandle(webhookWorkflowId(_id));
afterEach(async () => {
  for (const event of recorded.splice(0)) {
    const ended = getDelivery(event).terminate('end of test');
    await ended.catch(() => undefined);
  }
});

async function openMerchant(): Promise<string> {
  const account = await service.account();
  await hook.register(account);
  return account.account_id;
}

/** Records an event of a payment, whose delivery is in a state. */
async function buildEvent(
  state: Partial<State>,
  account_id?: string,
  type: EventType = 'payment.settled',
): Promise<EventDocument> {
  const [event] = await recordEvents(service, account_id ?? (await openMerchant()), [type]);
  if (event === undefined) throw new Error('No event was recorded.');
  await service.collection('deliveries').updateOne({ event_id: event._id }, { $set: state });
  recorded.push(event);
  return event;
}

/** Reads the state of the delivery, which goes to the one endpoint. */
async function readState({ _id }: Pick<EventDocument, '_id'>) {
  const [row] = await service.stores.deliveries.forEvents([_id]);
  if (row === undefined) return undefined;
  const { status, attempts, next_attempt_at, run: number } = row;
  return { status, attempts, next_attempt_at, run: number };
}

const readAttempts = async ({ _id }: EventDocument) =>
  listAttempts(await service.stores.deliveries.readLogs([_id]));
/** Dependencies without a worker. */
const buildIdle = () => ({ ...setting.deps, webhookQueue: `idle-${randomUUID()}` });
/** Dependencies that Temporal refuses: no server takes such a name. */
const buildRefused = () => ({ ...setting.deps, webhookQueue: 'q'.repeat(5_000) });

test('event list shows each event as it is sent, newest first, by account, environment, resource and time', async () => {
  const { account_id } = await service.account();
  const list = `event list ${account_id} --env sandbox`;
  const page = async (options: string) => Object(await setting.json(`${list} ${options}`));
  const events = await recordEvents(service, account_id, ['payment.authorized', 'payment.settled']);
  const newestFirst = events.toSorted((a, b) => (a.position < b.position ? 1 : -1));
  const rows = newestFirst.map(({ _id: id, type, created, data }) => {
    const delivery = { status: 'pending', attempts: 0, next_attempt_at: created };
    return { id, type, created, livemode: false, data, delivery };
  });
  const { next_cursor, ...first } = await page('--limit 1');
  expect(first).toEqual({ data: rows.slice(0, 1), has_more: true });
  const end = { has_more: false, next_cursor: null };
  expect(await page(`--before ${next_cursor}`)).toEqual({ data: rows.slice(1), ...end });
  const { stdout } = await setting.cli(`${list} --limit 1`);
  expect(stdout).toMatch(/^EVENT +CREATED +TYPE +RESOURCE +DELIVERY +ATTEMPTS +NEXT ATTEMPT\n/);
  expect(stdout).toContain('2026-03-01 12:00:00 UTC');
  expect(stdout).toContain(`There are more: --before ${next_cursor}`);
  const [other] = await recordEvents(service, account_id, ['payment.failed']);
  const { data } = await page(`--resource ${other?.resource_id}`);
  expect(data).toMatchObject([{ id: other?._id }]);
  expect((await page(`--before ${SINCE}`)).data).toEqual([]);
  expect((await page('--before 2026-03-01T13:00:01+01:00')).data).toHaveLength(3);
  expect(await setting.json(`event list ${account_id} --env live`)).toEqual({ data: [], ...end });
});

test('event show lists every attempt, the first one first', async () => {
  const event = await buildEvent({ status: 'pending', attempts: 0, next_attempt_at: DUE_AT });
  const { _id: id, account_id } = event;
  const [{ endpoint_id } = { endpoint_id: '' }] = await service.stores.deliveries.forEvents([id]);
  const first = {
    ...{ endpoint_id, run: 0, attempt: 1, at: '2026-03-01T12:00:00.100Z', duration_ms: 12 },
    ...{ url: 'https://shop.example/hook', status_code: 500, error: null },
    ...{ response_excerpt: '\u001b[31mno', next_attempt_at: DUE_AT },
    outcome: 'failed' as const,
  };
  const second = { ...first, attempt: 2, status_code: null, error: 'x\u0007' };
  for (const attempt of [second, first]) {
    await service.stores.deliveries.addAttempt({ event_id: id, ...attempt });
  }
  const shown = Object(await setting.json('event', 'show', id));
  expect(shown).toMatchObject({ id, account_id, delivery: { status: 'pending' } });
  expect(shown.attempts).toEqual([first, second]);
  const { stdout } = await setting.cli('event', 'show', id);
  expect(stdout).toMatch(/2026-03-01 12:00:00 UTC +first +1 +failed +HTTP 500 +12 ms +https:/);
  expect(stdout).not.toContain('\u0007');
});

// Further redeliveries are in test/api/webhooks.test.ts and test/workflows/webhook/delivery.test.ts.
describe('event redeliver', () => {
  type ReserveRun = typeof setting.deps.stores.deliveries.reserveRun;
  /** Redelivers while others reserve runs. */
  function redeliver(event: EventDocument, reserveRun: ReserveRun, deps = buildIdle()) {
    const { stores } = setting.deps;
    const deliveries = { ...stores.deliveries, reserveRun };
    return redeliverEvent({ ...deps, stores: { ...stores, deliveries } }, event._id);
  }

  test('by several operators at once makes the run that was reserved last, in one activity', async () => {
    const event = await buildEvent(EXHAUSTED);
    hook.answer.status = 500;
    const results = await Promise.allSettled(
      Array.from({ length: 5 }, () => redeliverEvent(setting.deps, event._id)),
    );
    const refused = results.filter((result) => result.status === 'rejected');
    expect(refused.length).toBeLessThan(5);
    for (const { reason } of refused) expect(reason).toMatchObject({ code: 'delivery_running' });
    const reserved = (await readState(event))?.run;
    await eventually('an attempt of the last', async () =>
      (await readAttempts(event)).some(({ run: number }) => number === reserved),
    );
    const { raw } = await getDelivery(event).describe();
    expect(raw.pendingActivities).toHaveLength(1);
  });

  test('that is slower than a later one leaves the later run as it is', async () => {
    const event = await buildEvent(EXHAUSTED);
    hook.answer.status = 500;
    const { reserveRun } = setting.deps.stores.deliveries;
    const slow: ReserveRun = async (...args) => {
      const reserved = await reserveRun(...args);
      const [later] = await redeliverEvent(setting.deps, event._id);
      expect(later?.run).toBe(2);
      return reserved;
    };
    await redeliver(event, slow, setting.deps);
    await eventually('an attempt', async () => (await readState(event))?.attempts === 13);
    expect(await readAttempts(event)).toMatchObject([{ run: 2 }]);
    expect(await readState(event)).toMatchObject({ status: 'pending', run: 2 });
  });

  test('is refused when another one has reserved the run', async () => {
    const event = await buildEvent(EXHAUSTED);
    const { reserveRun } = setting.deps.stores.deliveries;
    const late: ReserveRun = async (...args) => {
      await reserveRun(...args);
      return await reserveRun(...args);
    };
    await expect(redeliver(event, late)).rejects.toMatchObject({ code: 'delivery_running' });
    expect(await readState(event)).toMatchObject({ status: 'pending', run: 1 });
  });

  test('sends an event without an endpoint once there is one', async () => {
    const account = await service.account();
    const { account_id } = account;
    const [event] = await recordEvents(service, account_id, ['payment.settled'], null);
    if (event === undefined) throw new Error('No event was recorded.');
    const command = `event redeliver ${event._id}`;
    const message = `Nothing to send it to: no sandbox webhook endpoint is registered for ${account_id}.`;
    expect(await setting.refusal(command)).toEqual({ code: 'webhook_not_set', message });
    await hook.register(account);
    expect(await setting.json(command)).toEqual({ event_id: event._id, status: 'pending' });
    recorded.push(event);
  });

  test('leaves the event unchanged when Temporal refuses', async () => {
    const event = await buildEvent(EXHAUSTED);
    const before = await readState(event);
    const elsewhere = commandsIn({ ...setting.env, TEMPORAL_NAMESPACE: 'nowhere' });
    const { code } = await elsewhere.refusal(`event redeliver ${event._id}`);
    expect(code).toBe('temporal_refused');
    expect(await readState(event)).toEqual(before);
    // Refused only once the run is reserved.
    await expect(redeliverEvent(buildRefused(), event._id)).rejects.toMatchObject({
      code: 'temporal_unavailable',
    });
    expect(await readState(event)).toEqual({ ...before, run: 1 });
  });
});

describe('event redeliver --account', () => {
  const redeliver = (account: string, more = '') =>
    `event redeliver --account ${account} --env sandbox --since ${SINCE} ${more}`;

  /** A merchant with an event in each state, and an exhausted one of another type. */
  async function buildEvents() {
    const account_id = await openMerchant();
    const events = [
      await buildEvent(EXHAUSTED, account_id),
      await buildEvent(EXHAUSTED, account_id, 'payment.failed'),
      await buildEvent({ attempts: 5, next_attempt_at: DUE_AT }, account_id),
      await buildEvent({ attempts: 0, next_attempt_at: DUE_AT }, account_id),
      await buildEvent({ status: 'delivered', attempts: 1, next_attempt_at: null }, account_id),
    ] as const;
    const readRuns = () => Promise.all(events.map(async (event) => (await readState(event))?.run));
    return { account_id, events, readRuns };
  }

  test('sends all exhausted and waiting deliveries again, and with --dry-run only counts them', async () => {
    const { account_id, events, readRuns } = await buildEvents();
    const counted = { found: 3, by_status: { exhausted: 2, pending: 1 } };
    const dry = redeliver(account_id, '--dry-run');
    const none = { ...counted, dry_run: true, sent: 0, skipped: 0 };
    expect(await setting.json(dry)).toEqual(none);
    const { stdout } = await setting.cli(dry);
    expect(stdout).toBe('To be sent again: 3 (exhausted 2, pending 1).\n');
    expect(await readRuns()).toEqual([0, 0, 0, 0, 0]);
    const all = { ...counted, dry_run: false, sent: 3, skipped: 0 };
    expect(await setting.json(redeliver(account_id))).toEqual(all);
    expect(await readRuns()).toEqual([1, 1, 1, 0, 0]);
    const { _id: event_id } = events[2];
    const { input } = await readPayloads(service.temporal, webhookWorkflowId(event_id));
    expect(input).toMatchObject({ event_id, endpoints: [{ run: 1 }] });
    expect((await setting.refusal(redeliver('acct_1'))).code).toBe('account_not_found');
    const bare = (await service.account()).account_id;
    expect((await setting.refusal(redeliver(bare))).code).toBe('webhook_not_set');
  });

  test('selects by type, status and time, and prints its progress on stderr', async () => {
    const { account_id, readRuns } = await buildEvents();
    expect(await setting.cli(redeliver(account_id, '--type payment.failed'))).toEqual({
      ...{ exit: 0, stdout: 'Sent again: 1.\n' },
      stderr: 'To be sent again: 1 (exhausted 1, pending 0).\n',
    });
    const again = await setting.json(redeliver(account_id, '--status delivered'));
    expect(again).toMatchObject({ found: 1, by_status: { delivered: 1 }, sent: 1 });
    expect(await readRuns()).toEqual([0, 1, 0, 0, 1]);
    const before = redeliver(account_id, `--until ${SINCE} --dry-run`);
    expect(await setting.json(before)).toMatchObject({ found: 0 });
  });

  test('says what it leaves out, since its endpoint was disabled meanwhile', async () => {
    const account_id = await openMerchant();
    const events: EventDocument[] = [];
    while (events.length < 20) events.push(await buildEvent(EXHAUSTED, account_id));
    const sending = setting.cli(redeliver(account_id));
    await eventually('a run', async () => {
      const states = await Promise.all(events.map(readState));
      return states.some((state) => state?.run === 1);
    });
    const { endpoints } = service.stores;
    const endpoint = await endpoints.get(account_id, false);
    if (endpoint === null) throw new Error('There is no endpoint.');
    await endpoints.update(endpoint, { disabled_reason: 'merchant' }, SINCE);
    expect((await sending).stdout).toMatch(
      /^Sent again: \d+[.] Left out: \d+ [(].*disabled or deleted meanwhile[)][.]\n$/,
    );
  });

  test('sends at a limited rate, across pages, and says where to go on after a failure', async () => {
    const { account_id, events } = await buildEvents();
    const filter = {
      ...{ account_id, livemode: false, until: new Date().toISOString() },
      ...{ since: '2026-03-01T12:00:00.000000000Z', statuses: ['exhausted', 'pending'] as const },
    };
    const startedAt = performance.now();
    const steps: number[] = [];
    const total = await redeliverAll(setting.deps, filter, ({ sent }) => steps.push(sent), 2);
    expect(total).toEqual({ sent: 3, skipped: 0 });
    expect(performance.now() - startedAt).toBeGreaterThan(140);
    expect(steps).toEqual([1, 2, 3]);
    const sent = events.slice(0, 3);
    for (const event of sent) await getDelivery(event).result();
    const bodies = hook.received.map(({ body }) => body);
    expect(bodies.toSorted()).toEqual(sent.map(({ body }) => body).toSorted());
    const delivered = { ...filter, statuses: ['delivered'] as const };
    const stopped = await redeliverAll(buildRefused(), delivered, () => undefined).catch(explain);
    const hint = /Sent again before that: 0\. Go on with --since 2026-03-01T12:/;
    const message = expect.stringMatching(hint);
    expect(stopped).toMatchObject({ code: 'temporal_unavailable', message });
  });
});

// How such deliveries are listed is in reconcile.test.ts.
test('a delivery that Temporal has lost continues in its run after the attempts that it has made', async () => {
  const event = await buildEvent({ status: 'pending', attempts: 0, next_attempt_at: DUE_AT });
  const { _id: event_id, created: at } = event;
  const { deliveries } = service.stores;
  const [{ endpoint_id } = { endpoint_id: '' }] = await deliveries.forEvents([event_id]);
  for (const attempt of [1, 2, 3]) {
    await deliveries.addAttempt({
      ...{ event_id, endpoint_id, run: 0, attempt, at, url: hook.url, next_attempt_at: DUE_AT },
      ...{ status_code: 500, error: null, duration_ms: 1, response_excerpt: '', outcome: 'failed' },
    });
  }
  for await (const { orphans } of findDeliveries(setting.deps, [event_id])) {
    for (const orphan of orphans) await restart(setting.deps, orphan);
  }
  expect(Object.values(await getDelivery(event).result())).toEqual(['delivered']);
  expect(hook.received.map(({ body }) => body)).toEqual([event.body]);
  expect(await readState(event)).toMatchObject({ status: 'delivered', attempts: 4, run: 0 });
});

// With the keys of the service, which encrypt evidence.
const commands = useCommands(service);
const shop = useFixture(() => buildAccount(service, { funds: 100_000 }));
const folder = useFixture(
  async () => ({ path: mkdtempSync(join(tmpdir(), 'evidence-')) }),
  async ({ path }) => rmSync(path, { recursive: true }),
);

const WHY = ['--reason', 'Ticket 42'];

function write(content: string): string {
  const path = join(folder.path, `${randomUUID()}.json`);
  writeFileSync(path, content);
  return path;
}

async function openDispute(): Promise<{ id: string; payment_id: string }> {
  const payment = await buildPayment(shop, { method: 'visa', status: 'settled' });
  return await buildDispute(shop, { payment_id: payment.id, code: '13.1' });
}

/** Stores disputes of a new account, oldest first, without workflows. */
async function storeDisputes(count: number, livemode = false) {
  const { account_id } = await buildAccount(service);
  const rows = Array.from({ length: count }, (_, n): DisputeDocument => {
    const payment = paymentAt(n, new Date(Date.now() - (count - n) * 60_000).toISOString());
    const owner = { account_id, livemode, payment_id: randomUUID() };
    return { ...buildDisputeRow(payment), ...owner, _id: `dp_${randomUUID()}` };
  });
  await service.collection<DisputeDocument>('disputes').insertMany(rows);
  return { account_id, rows };
}

const listIds = async (args: string) => {
  const { data, ...page } = Object(await commands.json(`dispute list ${args}`));
  return { ids: data.map(({ id }: { id: string }) => id), ...page };
};
const refuse = async (line: string, ...more: string[]) =>
  (await commands.refusal(`dispute ${line}`, ...more)).code;

test('dispute list selects by account, environment, status and payment, and pages', async () => {
  const { account_id, rows } = await storeDisputes(3);
  const newest = rows.toReversed().map(({ _id }) => _id);
  const end = { has_more: false, next_cursor: null };
  expect(await listIds(account_id)).toEqual({ ids: newest, ...end });
  for (const other of ['--env live', '--status won']) {
    expect(await listIds(`${account_id} ${other}`)).toEqual({ ids: [], ...end });
  }
  expect((await listIds(`--payment ${rows[0]?.payment_id}`)).ids).toEqual([newest[2]]);
  const first = await listIds(`${account_id} --limit 2`);
  expect(first).toEqual({ ids: newest.slice(0, 2), has_more: true, next_cursor: newest[1] });
  const rest = await listIds(`${account_id} --limit 2 --before ${first.next_cursor}`);
  expect(rest).toEqual({ ids: newest.slice(2), ...end });
  expect((await listIds('--limit 1000')).ids).toEqual(expect.arrayContaining(newest));
  const { stdout } = await commands.cli(`dispute list ${account_id}`);
  expect(stdout).toMatch(/^DISPUTE +OPENED +ACCOUNT +ENV +STATUS +AMOUNT +ANSWER UNTIL\n/);
  expect(await refuse('list acct_none')).toBe('account_not_found');
  expect(await refuse('list --before dp_none')).toBe('dispute_not_found');
  expect(await refuse('list --status open')).toBe('invalid_usage');
});

test('dispute evidence sends a file once, and names what is wrong in another', async () => {
  const { id } = await openDispute();
  const send = (path: string) => `dispute evidence ${id} --file ${path}`;
  for (const [path, code, message] of [
    [write('{'), 'invalid_usage', 'cannot be read'],
    [write('{}'), 'invalid_request', 'explanation: is required'],
    [join(folder.path, 'none.json'), 'invalid_usage', 'none.json'],
  ] as const) {
    const refusal = { code, message: expect.stringContaining(message) };
    expect(await commands.refusal(send(path))).toEqual(refusal);
  }
  const other = send(write('{"explanation": "Something else."}'));
  const { accounts } = service.stores;
  const frozen = { at: new Date().toISOString(), reason: 'Leak' };
  await inTransaction(service.mongo, (session) =>
    accounts.freeze(shop.account_id, frozen, session),
  );
  expect((await commands.refusal(other)).code).toBe('account_frozen');
  await inTransaction(service.mongo, (session) => accounts.unfreeze(shop.account_id, session));
  const file = write(JSON.stringify({ explanation: 'Zebra was signed for.', carrier: 'PostNL' }));
  expect(await commands.json(send(file))).toMatchObject({ id, object: 'dispute' });
  await service.becomes('disputes', id, { status: 'under_review' });
  expect(await commands.json(send(file))).toMatchObject({ id, status: 'under_review' });
  expect((await commands.refusal(other)).code).toBe('dispute_closed');
  const owner = { account_id: shop.account_id, livemode: false, act: 'dispute.answered' } as const;
  const lines = await service.stores.auditLog.list({ ...owner, limit: 10 });
  expect(lines.every(({ target }) => target === id)).toBe(true);
  expect(lines.map(({ after }) => Object(after).outcome)).toEqual(
    expect.arrayContaining(['done', 'dispute_closed']),
  );
  expect(JSON.stringify(lines)).not.toContain('Zebra');
});

test('dispute show has what the bank reported and took, and nothing else of the payment', async () => {
  const { id } = await openDispute();
  const { postings, callbacks } = Object(await commands.json(`dispute show ${id}`));
  const read = (rows: object[], name: string) => rows.map((row) => Object(row)[name]);
  expect(read(postings, 'kind')).toEqual(['payment_dispute_opened']);
  expect(read(callbacks, 'name')).toEqual(['dispute_opened']);
});

test('dispute accept gives in, is recorded with who and why, and is refused after the end', async () => {
  const { id } = await openDispute();
  const accept = `accept ${id} --operator mia`;
  expect(await commands.json(`dispute ${accept}`, ...WHY)).toMatchObject({ id, object: 'dispute' });
  await service.becomes('disputes', id, { status: 'accepted' });
  const audit = [{ who: 'mia', what: 'accept', why: 'Ticket 42' }];
  expect(await service.stores.disputes.get(id)).toMatchObject({ audit });
  expect(await refuse(accept, ...WHY)).toBe('wrong_state');
  expect(await refuse('accept dp_none')).toBe('dispute_not_found');
  const bare = await openDispute();
  expect(await commands.json(`dispute accept ${bare.id}`)).toMatchObject({ id: bare.id });
  const [live] = (await storeDisputes(1, true)).rows;
  expect(await refuse(`accept ${live?._id}`, ...WHY)).toBe('operator_key_required');
  const mia = await asOperator(commands, `mia ${randomUUID()}`);
  expect((await mia.refusal(`dispute accept ${live?._id}`)).code).toBe('operator_required');
});
