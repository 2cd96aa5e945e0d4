import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { SEARCH_KEYS } from '../../../src/domain/search-attributes';
import type { Stores } from '../../../src/store';
import { messages } from '../../../workflows/payment/messages';
import { saveHistory } from '../../support/histories';
import { withHeldUpdates } from '../../support/hold-updates';
import {
  open,
  paymentInput,
  recordPaymentKey,
  scriptedBank,
  withBank,
} from '../../support/workflow-setting';
import { ETHER, withPayment as withCryptoPayment } from '../crypto/setting';
import {
  ACT,
  MONEY,
  refusalOf,
  shows,
  type Tracked,
  trackPayment,
  unlessUnreachable,
  useLifecycles,
} from '../lifecycles';

const { setting, withStatus } = useLifecycles();

/** Balances of a payment of which nothing is posted. */
const UNPOSTED = { available: undefined, clearing: undefined };
const PAID = { available: 1_050, clearing: -1_050 };
const FINAL = 'a final state is never left.';

describe('an update of an operator', () => {
  test.each([
    ['payment', 'awaiting_customer', 'mark_failed', 'failed', 3, UNPOSTED],
    ['payment', 'awaiting_customer', 'mark_settled', 'settled', 4, PAID],
    ['payment', 'authorized', 'mark_failed', 'failed', 4, UNPOSTED],
    ['payment', 'authorized', 'mark_settled', 'settled', 4, PAID],
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
        expect(document.audit).toEqual([
          {
            ...{
              id: `${id}:${document.transition}`,
              who: 'ada',
              what,
              why: 'confirmed by telephone',
            },
            ...{ when: document.updated_at, before: from, after: status },
          },
        ]);
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
        if (resource === 'refund' && status === 'failed')
          await saveHistory(handle, 'refund-marked-failed');
      }),
  );

  test.each([
    ['payment', withStatus.authorized, 'mark_settled', { status: 'authorized', version: 3 }],
    ['refund', withStatus.processing, 'mark_settled', { status: 'processing', version: 2 }],
    ['payout', withStatus.sent, 'mark_completed', { status: 'sent', version: 3 }],
  ] as const)(
    'with a malformed payload is refused with the name of the field, and the %s stays',
    (resource, reach, done, state) =>
      reach(async ({ refusal, handle, act }) => {
        for (const [update, args, words] of [
          ['mark_failed', { operator: 'ada' }, /reason/],
          [done, undefined, /must be an object/],
          [done, { operator: ' ', reason: 'x' }, /operator/],
          ['snooze', { ...ACT, hours: -1 }, /hours/],
          ...(resource === 'payout'
            ? ([
                ['resubmit', { reason: 'no name' }, /operator/],
                ['mark_returned', { operator: ' ', reason: 'x' }, /operator/],
              ] as const)
            : []),
        ] as const) {
          const message = expect.stringMatching(words);
          expect(await refusal(update, args)).toEqual({ code: 'invalid_request', message });
        }
        expect(await handle.query('state')).toMatchObject(state);
        await act(done);
      }),
  );

  test.each([
    ['payment', 'authorized', 3, 'mark_settled', `The payment is settled; ${FINAL}`],
    ['refund', 'processing', 2, 'mark_settled', `The refund is settled; ${FINAL}`],
    [
      ...(['payout', 'sent', 3, 'mark_completed'] as const),
      'The payout is completed; only one that is under way can be marked as failed.',
    ],
  ] as const)(
    'is refused when another one has changed the %s first',
    (resource, from, version, update, message) =>
      withStatus[from](async ({ id, handle, stored, eventTypes, money }: Tracked) => {
        // While updates are held, the first transition is requested but not made.
        const { payments, refunds, payouts } = setting.stores;
        const store = { payment: payments, refund: refunds, payout: payouts }[resource];
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
        expect(await refusalOf(second.result())).toEqual({ code: 'wrong_state', message });
        expect(await handle.result()).toMatchObject(state);
        expect(await stored()).toMatchObject({ failure: null, audit: [{ what: update }] });
        const events = await eventTypes();
        expect(events).toHaveLength((await stored()).transition - 1);
        expect(events.at(-1)).toBe(`${resource}.${status}`);
        if (resource === 'payout') expect(await money()).toEqual(MONEY.captured);
        if (resource !== 'payment') await saveHistory(handle, `${resource}-two-operators`);
      }),
  );
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

  test('of a reorged deposit stays acknowledged until another deposit is reorged', () =>
    withCryptoPayment(setting, async ({ handle, deposit, report, act, becomes }) => {
      const quarter = ETHER / 4n;
      const passed = { screening: 'passed' };
      await deposit('tx', quarter, 3, passed);
      await deposit('second', quarter, 3, passed);
      await report('deposit_undone', { transaction_id: 'tx' });
      await becomes({ attention: 'deposit_undone' });
      await act('acknowledge');
      await deposit('second', quarter, 4);
      await shows(handle, 'by second, 4 of 3 confirmations');
      await becomes({ attention: null });
      await report('deposit_undone', { transaction_id: 'second' });
      await becomes({ attention: 'deposit_undone' });
      await act('acknowledge');
      await deposit('rest', ETHER, 3);
      expect(await handle.result()).toMatchObject({ status: 'received' });
      await becomes({ attention: null });
    }));

  test('stays snoozed until its time in a workflow that is started again', async () => {
    const findDue = async (of: Tracked) => /, due (\S+)\./.exec(await of.shows(', due '))?.[1];
    await withStatus.authorized(async (payment) => {
      await setting.env.sleep('25h');
      await payment.becomes({ attention: 'settlement_overdue' });
      await payment.act('snooze', { ...ACT, hours: 72 });
      const due = await findDue(payment);
      await payment.handle.terminate('in a test');
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

  /** Opens a payment that waits for its customer, by workers of a queue if need be. */
  const withPayment = (
    story: (payment: ReturnType<typeof trackPayment>) => Promise<unknown>,
    queue?: string,
  ) =>
    withBank(setting, scriptedBank(), async (connector) => {
      const input = paymentInput(connector);
      const { payment_id } = input;
      await recordPaymentKey(setting, input);
      const opened = await open(setting, 'payment', payment_id, input, messages.open, queue);
      const payment = trackPayment(setting, input, opened.handle);
      await payment.becomes({ status: 'awaiting_customer' });
      await story(payment);
      expect(await payment.endBy('settled')).toMatchObject({ status: 'settled' });
    });

  test('is shown without the database after minutes, and no longer once the write succeeds', async () => {
    const queue = `${setting.queues.lifecycle}-broken`;
    let isBroken = false;
    const { payments } = setting.stores;
    const update: Stores['payments']['update'] = async (...args) => {
      if (isBroken) throw new Error('The database is away.');
      return await payments.update(...args);
    };
    const stores = { ...setting.stores, payments: { ...payments, update } };
    const stop = await setting.startWorkers(queue, stores);
    await withPayment(async ({ handle, becomes, shows: showsInDetails, signal }) => {
      isBroken = true;
      await signal('authorized');
      await setting.env.sleep('3m');
      expect(await readAttention(handle)).toBeNull();
      await setting.env.sleep('9m');
      expect(await readAttention(handle)).toBe('record_stuck');
      await showsInDetails('`recordPaymentMove` fails again and again');
      isBroken = false;
      await setting.env.sleep('1m');
      await becomes({ status: 'authorized', attention: null });
      await showsInDetails('**authorized** since');
      expect(await readAttention(handle)).toBeNull();
    }, queue).finally(stop);
  });

  test('is not shown when another run reports it or the report comes late', () =>
    withPayment(async ({ handle, becomes, signal }) => {
      await handle.signal('step_stuck', 'recordPaymentMove');
      await signal('authorized');
      await becomes({ status: 'authorized' });
      expect(await readAttention(handle)).toBeNull();
    }));
});

describe.each(['payment', 'refund', 'payout'])(
  'a workflow of a %s that is started by hand',
  (type) => {
    test.each([
      ['with its id misspelt', { [`${type}Id`]: randomUUID() }, 'is required'],
      ['with an id that is no UUID', { [`${type}_id`]: 'first' }, 'must be a UUID'],
      ['under the id of another', { [`${type}_id`]: randomUUID() }, 'must be the id that'],
    ])('%s ends before it reads anything', async (_, input, fault) => {
      const handle = await setting.env.client.workflow.start(type, {
        workflowId: `${type}:${randomUUID()}`,
        taskQueue: setting.queues.lifecycle,
        args: [{ resume: true, request_id: 'r', ...input }],
      });
      await expect(handle.result()).rejects.toMatchObject({
        cause: { type: 'invalid_request', message: expect.stringContaining(fault) },
      });
      const { events = [] } = await handle.fetchHistory();
      expect(events?.filter((event) => event.activityTaskScheduledEventAttributes)).toEqual([]);
    });
  },
);
