import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { SEARCH_KEYS } from '../../../src/domain/search-attributes';
import { BooksRefused } from '../../../src/ledger/ledger-accounts';
import type { Stores } from '../../../src/store';
import { eventually } from '../../support/eventually';
import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { withHeldUpdates } from '../../support/hold-updates';
import { terminateIdle } from '../../support/skipping-server';
import {
  callback,
  paymentInput,
  recordPaymentKey,
  scriptedBank,
  withBank,
} from '../../support/workflow-setting';
import { INSTRUCTED } from '../instructed';
import {
  ACT,
  MONEY,
  refusalOf,
  submittingBank,
  type Tracked,
  trackPayment,
  unlessUnreachable,
  useLifecycles,
} from '../lifecycles';

/**
 * Rules of payments, refunds and payouts alike, and of refunds and payouts, which instruct a bank.
 * Tests that skip hours come first: what another test leaves under way holds the clock.
 */
const lifecycles = useLifecycles();
const { setting, withPaymentOn, withRefund, withUnsentPayout, withStatus } = lifecycles;

type Story = (subject: Tracked) => Promise<void>;

describe('a workflow of a', () => {
  // A machine that stalls for the 4 s of a session has the bank asked for it twice.
  beforeAll(() => void jest.retryTimes(3, { logErrorsBeforeRetry: true }));
  afterAll(() => void jest.retryTimes(0));

  /** Otherwise `open` answers 5 s after the start, before a busy machine has done all this. */
  const withWaitingCaller = (story: Story) =>
    withUnsentPayout(
      submittingBank(),
      async (payout) => {
        await payout.shows('instruction at the bank: submitted');
        await story(payout);
      },
      { caller_waits: true },
    );

  test.each([
    ['payment', withStatus.authorized, { status: 'authorized', version: 3 }, 'mark_settled', 4],
    ['refund', withStatus.processing, { status: 'processing', version: 2 }, 'mark_settled', 3],
    ['payout', withWaitingCaller, { status: 'completed', version: 4 }, 'mark_completed', 4],
  ] as const)(
    '%s is not ended by a cancel request from the Temporal UI, and updates are still answered',
    (kind, reach, opened, act, version) =>
      reach(async (subject: Tracked) => {
        const { id, handle } = subject;
        const opening = handle.executeUpdate('open');
        await handle.cancel();
        const state = { [`${kind}_id`]: id, status: act.replace('mark_', ''), version };
        expect(await subject.act(act)).toEqual(state);
        expect(await opening).toMatchObject({ [`${kind}_id`]: id, ...opened });
        expect(await handle.result()).toEqual(state);
        await saveHistory(handle, `${kind}-ui-cancel`);
      }),
  );

  test.each([
    ['payment', withStatus.authorized, '23h', '2h', 'settlement_overdue', 'settled'],
    ['refund', withStatus.processing, '71h', '2h', 'refund_overdue', 'settled'],
    ['payout', withStatus.submitted, '1s', '60s', 'not_sent', 'completed'],
  ] as const)('%s shows that it is overdue, again after a snooze, until it is marked', (...row) => {
    const [kind, reach, early, rest, reason, last] = row;
    return reach(async (subject: Tracked) => {
      const { handle, stored, signal, act, attention, becomes } = subject;
      const { sleep } = setting.env;
      const { status, transition } = await stored();
      await sleep(early);
      expect(await attention()).toBeNull();
      await sleep(rest);
      await becomes({ status, attention: reason });
      expect(await act('snooze', { ...ACT, hours: 2 })).toMatchObject({ status });
      expect(await stored()).toMatchObject({ transition, attention: null });
      await sleep('119m');
      expect(await attention()).toBeNull();
      await sleep('2m');
      await becomes({ attention: reason });
      if (kind === 'payout') {
        await signal('sent');
        await becomes({ attention: null });
        await sleep('25s');
        expect(await attention()).toBeNull();
        await sleep('36s');
        await becomes({ attention: 'not_completed' });
      }
      await act(`mark_${last}`);
      expect(await handle.result()).toMatchObject({ status: last });
      const before = kind === 'payout' ? 'sent' : status;
      expect(await stored()).toMatchObject({
        attention: null,
        audit: [
          { who: 'ada', what: 'snooze', before: reason, after: 'no attention' },
          { who: 'ada', what: `mark_${last}`, before, after: last },
        ],
      });
      const history = kind === 'payout' ? 'overdue-snoozed' : 'overdue-marked-settled';
      await saveHistory(handle, `${kind}-${history}`);
    });
  });
});

describe('an attention reason', () => {
  test('that is acknowledged no longer hides that a refund is overdue', async () => {
    await withStatus.processing(async ({ handle, becomes, act, refusal, stored }) => {
      await handle.signal('settled', { callback_id: 7 });
      await becomes({ attention: 'malformed_callback' });
      await setting.env.sleep('73h');
      await act('acknowledge');
      const overdue = await becomes({ attention: 'refund_overdue' });
      const since = expect.any(Number);
      expect(overdue.acknowledged).toEqual([{ reason: 'malformed_callback', since }]);
      await act('acknowledge');
      await setting.env.sleep('73h');
      const refund = await stored();
      expect(refund.attention).toBeNull();
      expect(refund.acknowledged).toMatchObject([
        { reason: 'malformed_callback' },
        { reason: 'refund_overdue', since: overdue.attention_since },
      ]);
      expect(await refusal('acknowledge')).toEqual({
        code: 'wrong_state',
        message: 'The attention reason is none.',
      });
      await act('mark_settled');
      await handle.result();
      await saveHistory(handle, 'refund-acknowledged');
    });
  });

  test.each([
    ['payment', withStatus.authorized, 'settled', '25h', 'settlement_overdue'],
    ['refund', withStatus.processing, 'settled', '73h', 'refund_overdue'],
    ['payout', withStatus.submitted, 'completed', '2m', 'not_sent'],
  ] as const)(
    'that ends with its movement no longer hides that a %s is overdue, unless that is acknowledged',
    (_kind, reach, done, wait, overdue) =>
      reach(async ({ signal, becomes, act, stored, shows }: Tracked) => {
        const { sleep } = setting.env;
        const hideBy = async (bank_reference: string) => {
          await signal(done, { bank_reference, amount: 999 });
          await becomes({ attention: 'amount_differs' });
        };
        const resolve = () => act('resolve_movement', { ...ACT, as: 'never_happened' });
        const { status } = await stored();
        await hideBy('first');
        await sleep(wait);
        await shows(`is overdue: still ${status}`);
        await resolve();
        await becomes({ status, attention: overdue });
        await act('acknowledge');
        await hideBy('second');
        await resolve();
        await sleep(wait);
        expect(await stored()).toMatchObject({ status, attention: null });
      }),
  );

  test('stays snoozed until its time in a workflow that is started again', async () => {
    const findDue = async (of: Tracked) => /, due (\S+)\./.exec(await of.shows(', due '))?.[1];
    await withStatus.authorized(async (payment) => {
      await setting.env.sleep('25h');
      await payment.becomes({ attention: 'settlement_overdue' });
      await payment.act('snooze', { ...ACT, hours: 72 });
      const due = await findDue(payment);
      await terminateIdle(payment.handle);
      await payment.restart();
      await payment.shows('Started again in flight');
      expect(await findDue(payment)).toBe(due);
      const leftMs = Date.parse(due ?? '') - (await setting.env.currentTimeMs());
      expect(leftMs).toBeGreaterThan(71 * 3_600_000);
      await payment.endBy('settled');
      expect(await payment.stored()).toMatchObject({ status: 'settled', attention: null });
    });
  });
});

describe('a step of a workflow that is stuck', () => {
  const readAttention = async (handle: WorkflowHandle) =>
    (await handle.describe()).typedSearchAttributes.get(SEARCH_KEYS.attention) ?? null;

  test('is shown without the database after minutes, and no longer once the write succeeds', async () => {
    let isBroken = false;
    const { payments } = setting.stores;
    const update: Stores['payments']['update'] = async (...args) => {
      if (isBroken) throw new Error('The database is away.');
      return await payments.update(...args);
    };
    const broken = { ...setting.stores, payments: { ...payments, update } };
    await withPaymentOn(broken, async ({ handle, ...payment }) => {
      await payment.becomes({ status: 'awaiting_customer' });
      // That of another run, or one that comes late.
      await handle.signal('step_stuck', 'recordPaymentMove');
      isBroken = true;
      await payment.signal('authorized');
      await setting.env.sleep('3m');
      expect(await readAttention(handle)).toBeNull();
      await setting.env.sleep('9m');
      expect(await readAttention(handle)).toBe('record_stuck');
      await payment.shows('`recordPaymentMove` fails again and again');
      isBroken = false;
      await setting.env.sleep('1m');
      await payment.becomes({ status: 'authorized', attention: null });
      await payment.shows('**authorized** since');
      expect(await readAttention(handle)).toBeNull();
      expect(await payment.endBy('settled')).toMatchObject({ status: 'settled' });
    });
  });
});

/** Balances of a payment of which nothing is posted. */
const UNPOSTED = { available: undefined, clearing: undefined };
const PAID = { available: 1_050, clearing: -1_050 };

describe('an update of an operator', () => {
  test.each([
    ['payment', 'awaiting_customer', 'mark_settled', 'settled', 4, PAID],
    ['payment', 'authorized', 'mark_failed', 'failed', 4, UNPOSTED],
    ['refund', 'processing', 'mark_failed', 'failed', 3, { refunded: 0, available: 1_050 }],
    ['refund', 'processing', 'mark_settled', 'settled', 3, { refunded: 1_050, available: 0 }],
    ['payout', 'submitted', 'mark_failed', 'failed', 3, MONEY.untouched],
    ['payout', 'submitted', 'mark_completed', 'completed', 4, MONEY.captured],
    ['payout', 'sent', 'mark_failed', 'failed', 4, MONEY.untouched],
    ['payout', 'sent', 'mark_completed', 'completed', 4, MONEY.captured],
    ['payout', 'sent', 'mark_returned', 'returned', 4, MONEY.returned],
  ] as const)(
    'changes a %s that is %s by %s to %s, and the audit trail has who, when, what and why',
    (resource, from, what, status, version, expected) =>
      withStatus[from](async ({ id, handle, act, stored, eventTypes, money }) => {
        const state = { [`${resource}_id`]: id, status, version };
        expect(await unlessUnreachable(() => act(what))).toEqual(state);
        expect(await handle.result()).toEqual(state);
        const document = await stored();
        const by = { id: `${id}:${document.transition}`, who: ACT.operator, why: ACT.reason };
        const done = { what, when: document.updated_at, before: from, after: status };
        expect(document.audit).toEqual([{ ...by, ...done }]);
        const words = `The bank reported that the ${resource} `;
        const failure = { code: 'failed_at_bank', message: `${words}failed.` };
        const returned = { code: 'returned', reason: `${words}came back.` };
        expect(document.failure).toEqual(status === 'failed' ? failure : null);
        expect(Object(document).returned ?? null).toEqual(status === 'returned' ? returned : null);
        const events = await eventTypes();
        expect(events).toHaveLength(document.transition - 1);
        expect(events.at(-1)).toBe(`${resource}.${status}`);
        expect(await money()).toMatchObject(expected);
        const history = `${resource}-${from}-${what.replace('_', '-')}`;
        if (resource === 'payout') await saveHistory(handle, history);
        const isRefused = resource === 'refund' && status === 'failed';
        if (isRefused) await saveHistory(handle, 'refund-marked-failed');
      }),
  );

  test.each([
    ['refund', 'processing', 2, 'mark_settled', 'settled; a final state is never left.'],
    ['payout', 'sent', 3, 'mark_completed', 'completed; only one that is under way can be marked'],
  ] as const)(
    'is refused when another one has changed the %s first',
    (resource, from, version, update, why) =>
      withStatus[from](async ({ id, handle, stored, eventTypes, money }: Tracked) => {
        // While updates are held, the first transition is requested but not made.
        const { refunds, payouts } = setting.stores;
        const store = resource === 'refund' ? refunds : payouts;
        const start = (name: string) =>
          handle.startUpdate<object, [object]>(name, { args: [ACT], waitForStage: 'ACCEPTED' });
        const [first, second] = await withHeldUpdates(
          store as Pick<typeof refunds, 'update'>,
          async (reached) => {
            const acceptedFirst = await start(update);
            await reached;
            return [acceptedFirst, await start('mark_failed')] as const;
          },
        );
        const status = update.replace('mark_', '');
        const state = { status, version: version + 1 };
        expect(await first.result()).toEqual({ [`${resource}_id`]: id, ...state });
        expect(await refusalOf(second.result())).toEqual({
          code: 'wrong_state',
          message: expect.stringContaining(`The ${resource} is ${why}`),
        });
        expect(await handle.result()).toMatchObject(state);
        expect(await stored()).toMatchObject({ failure: null, audit: [{ what: update }] });
        const events = await eventTypes();
        expect(events).toHaveLength((await stored()).transition - 1);
        expect(events.at(-1)).toBe(`${resource}.${status}`);
        if (resource === 'payout') expect(await money()).toEqual(MONEY.captured);
        await saveHistory(handle, `${resource}-two-operators`);
      }),
  );
});

test.each(INSTRUCTED)(
  'the instruction of a $resource goes on where the books refuse mark_failed',
  async ({ resource, start, bank, isTaken, confirmation }) => {
    const { opened, release } = gate();
    const answer = () => opened.then(() => 'taken' as const);
    const script = bank({ send: ['loses the connection'], lookUp: ['gives up', answer] });
    await start(lifecycles, script, async (subject) => {
      await subject.shows('looked up again later');
      const { refunds, payouts } = setting.stores;
      const store = resource === 'refund' ? refunds : payouts;
      const update = jest.spyOn(store as Pick<typeof refunds, 'update'>, 'update');
      update.mockRejectedValueOnce(new BooksRefused('a release'));
      const refused = await subject.refusal('mark_failed', { ...ACT, ...confirmation });
      update.mockRestore();
      expect(refused).toMatchObject({ code: 'books_refused' });
      release();
      await isTaken(subject);
    });
  },
);

test('the reference of a bank that answers is stored as an identifier', async () => {
  const bank_reference = 'A&B 50%';
  const sendRefund = async () => ({ outcome: 'accepted', bank_reference }) as const;
  await withRefund(scriptedBank({ sendRefund }), async ({ becomes, endBy }) => {
    await becomes({ bank_reference: 'A%26B 50%25' });
    await endBy('settled');
  });
});

describe('a callback', () => {
  test.each([
    ['refund', withStatus.processing, 'settled', 'failed', 2],
    ['payout', withStatus.sent, 'completed', 'returned', 4],
  ] as const)(
    'that is malformed needs attention, and does not end the workflow of a %s',
    (resource, reach, done, other, transition) =>
      reach(async ({ handle, shows, endBy, stored }) => {
        await handle.signal(done, { callback_id: 7 });
        await handle.signal(other);
        const details = await shows(`unreadable callback ${other}`);
        expect(details).toContain('malformed_callback');
        expect(await endBy(done)).toMatchObject({ status: done });
        expect(await stored()).toMatchObject({ transition, attention: 'malformed_callback' });
        await saveHistory(handle, `${resource}-malformed-callback`);
      }),
  );

  test.each([
    ['payment', withStatus.authorized],
    ['refund', withStatus.processing],
    ['payout', withStatus.submitted],
  ] as const)(
    'about a %s, and the acts of operators, are shown as text, never as Markdown',
    (...row) =>
      row[1](async ({ handle, act, signal, shows }: Tracked) => {
        const text =
          '1)\n\n**settled** [Evidence](https://evil.example) `![](https://evil.example/p.png)\u009b';
        const unsigned = {
          callback_id: 'www.evil.example/_x_',
          mac: { key_id: text, v1: '0'.repeat(64) },
        };
        await signal('failed', unsigned);
        await handle.signal('failed', { callback_id: text, bank_reference: text, [text]: text });
        await shows('unreadable callback failed: callback_id: must have');
        await act('snooze', { operator: text, reason: text, hours: 1 });
        const details = await shows('operator 1)');
        const outside = details.replace(/`[^`\n]*`/g, '');
        for (const part of ['evil', '`', '\u009b', '[']) expect(outside).not.toContain(part);
        expect(details).toContain('is ignored: its connector has no such key');
      }),
  );

  test.each([
    ['failed', 'returned', 'moved_after_failed', MONEY.untouched],
    ['completed', 'failed', 'failed_after_completed', MONEY.captured],
    ['returned', 'completed', 'moved_after_returned', MONEY.returned],
  ] as const)(
    'about a payout that is %s already changes nothing by %s, and the attention reason is %s',
    (status, name, reason, expected) =>
      withStatus.sent(async (subject) => {
        const { id, handle, stored, entryKinds } = subject;
        await subject.endBy(status);
        const before = await entryKinds();
        await subject.signalAfterEnd(name);
        expect(await handle.result()).toMatchObject({ payout_id: id, status });
        expect(await stored()).toMatchObject({ status, transition: 4, attention: reason });
        expect(await subject.unapplied()).toHaveLength(1);
        expect(await entryKinds()).toEqual(before);
        expect(await subject.money()).toEqual(expected);
        expect(subject.told.filter((line) => line.startsWith('send'))).toHaveLength(1);
        await saveHistory(handle, `payout-${name}-after-${status}`);
      }),
  );

  test('that comes while no worker runs is applied in the order of the bank', async () => {
    const queue = `${setting.queues.lifecycle}-later`;
    await withBank(setting, scriptedBank(), async (connector) => {
      const input = paymentInput(connector);
      const { payment_id } = input;
      await recordPaymentKey(setting, input);
      const handle = await setting.env.client.workflow.start('payment', {
        ...{ workflowId: `payment:${payment_id}`, taskQueue: queue, args: [input] },
      });
      const { signal, becomes } = trackPayment(setting, input, handle);
      await signal('failed');
      await handle.signal('not_ours');
      await signal('settled');
      const stop = await setting.startWorkers(queue);
      const isStored = async () => (await setting.stores.payments.get(payment_id)) !== null;
      await eventually('the payment to be stored', isStored);
      // In the other order it would be settled, and then returned.
      await becomes({ status: 'failed', attention: 'late_settlement_reversed' });
      expect(await setting.stores.movements.forResource(payment_id)).toMatchObject([
        { reason: 'late', amount: 1_050 },
      ]);
      await handle.result();
      await saveHistory(handle, 'payment-callbacks-in-order');
      await stop();
    });
  });
});

describe('a callback whose signal Temporal has lost', () => {
  /** Stores a callback as signalled, and signals nothing. */
  async function lose(
    { id, stored }: Tracked,
    resource: 'payment' | 'payout',
    name: 'completed' | 'reversal_failed',
  ): Promise<void> {
    const { connector } = await stored();
    const received_at = new Date().toISOString();
    const about = { connector, resource, resource_id: id, name };
    const { callbacks } = setting.stores;
    const { _id } = await callbacks.insertOnce({ ...about, body: callback(), received_at });
    await callbacks.markSignalled({ _id }, received_at);
  }

  test('is applied once when its workflow is started again', () =>
    withStatus.sent(async (payout) => {
      const { handle, stored, restart } = payout;
      await lose(payout, 'payout', 'completed');
      await terminateIdle(handle);
      await restart();
      expect(await handle.result()).toMatchObject({ status: 'completed' });
      const before = await stored();
      await restart();
      await handle.result();
      expect(await stored()).toEqual(before);
    }));

  test('and that changes no status is applied once, also after it was acknowledged', async () => {
    await withStatus.awaiting_customer(async (payment) => {
      const { handle, restart, becomes } = payment;
      await payment.act('cancel', { by: 'merchant' });
      await handle.result();
      await lose(payment, 'payment', 'reversal_failed');
      await restart();
      await becomes({ attention: 'late_settlement_not_reversed' });
      await handle.result();
      await payment.actAfterEnd('acknowledge');
      await restart();
      await handle.result();
      expect(await payment.stored()).toMatchObject({ status: 'cancelled', attention: null });
    });
  });
});

test.each<[type: string, what: string, input: unknown, fault: string]>([
  ['payment', 'its id misspelt', { paymentId: randomUUID() }, 'is required'],
  ['refund', 'its id misspelt', { refundId: randomUUID() }, 'is required'],
  ['payout', 'its id misspelt', { payoutId: randomUUID() }, 'is required'],
  ['payment', 'its id alone', randomUUID(), 'is required'],
  ['payout', 'its id alone', randomUUID(), 'is required'],
  ['payout', 'nothing', null, 'is required'],
  ['payout', 'an id that is no UUID', { payout_id: 'first' }, 'must be a UUID'],
  ['payout', 'the id of another', { payout_id: randomUUID() }, 'must be the id that'],
])('a %s that is started by hand with %s ends before it reads anything', async (...row) => {
  const [type, , input, fault] = row;
  const isObject = typeof input === 'object' && input !== null;
  const start = isObject ? { resume: true, request_id: 'r', ...input } : input;
  const handle = await setting.env.client.workflow.start(type, {
    workflowId: `${type}:${randomUUID()}`,
    taskQueue: setting.queues.lifecycle,
    args: [start],
  });
  await expect(handle.result()).rejects.toMatchObject({
    cause: { type: 'invalid_request', message: expect.stringContaining(fault) },
  });
  const { events = [] } = await handle.fetchHistory();
  expect(events?.filter((event) => event.activityTaskScheduledEventAttributes)).toEqual([]);
});
