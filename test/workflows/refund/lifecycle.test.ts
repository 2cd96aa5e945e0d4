import { defineSearchAttributeKey } from '@temporalio/common';
import { createTemporalClient } from '../../../src/temporal/client';
import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import {
  callback,
  fund,
  openRefund,
  refundInput,
  scriptedBank,
  settledPayment,
  withBank,
} from '../../support/workflow-setting';
import {
  ACT,
  readRefunded,
  refusalOf,
  trackRefund,
  unlessUnavailable,
  useLifecycles,
} from '../lifecycles';

const { setting, withRefund, withStatus } = useLifecycles();

// A machine that stalls for the 4 s of a session has the bank asked for it twice.
jest.retryTimes(3, { logErrorsBeforeRetry: true });

const AMOUNT = defineSearchAttributeKey('ServiceAmount', 'INT');
const STATUS = defineSearchAttributeKey('ServiceStatus', 'KEYWORD');

const REFUNDED = { refunded: 1_050, available: 0 };
const UNREFUNDED = { refunded: 0, available: 1_050 };

test('a refund is accepted with its money reserved, sent by the bank and settled', async () => {
  await withRefund(scriptedBank(), async (refund) => {
    const { id, handle, payment, opened, money, told } = refund;
    expect(opened).toEqual({ refund_id: id, status: 'processing', version: 1 });
    expect(await money()).toEqual(REFUNDED);
    await refund.shows('instruction at the bank: accepted');
    expect(told).toEqual(['openSession', `sendRefund ${id}`]);
    const result = await refund.endBy('settled');
    expect(result).toEqual({ refund_id: id, status: 'settled', version: 2 });
    expect(await refund.stored()).toMatchObject({
      reason: 'returned goods',
      bank_reference: `ref-${id}`,
      payment_bank_reference: `ref-${payment.payment_id}`,
      settled_at: expect.any(String),
      failure: null,
    });
    expect(await refund.eventTypes()).toEqual(['refund.settled']);
    expect(await refund.entryKinds()).toEqual(['refund_accepted', 'refund_settled']);
    expect(await money()).toEqual(REFUNDED);
    await saveHistory(handle, 'refund-settled');
  });
});

test('a refund that fails at the bank later gives its amount back', async () => {
  await withStatus.processing(async ({ handle, endBy, stored, eventTypes, entryKinds, money }) => {
    const facts = { code: 'account_closed', reason: 'No.', bank_reference: 'b-7' };
    expect(await endBy('failed', facts)).toMatchObject({ status: 'failed', version: 2 });
    expect(await stored()).toMatchObject({
      failure: { code: 'account_closed', message: 'No.' },
      bank_reference: 'b-7',
      settled_at: null,
    });
    expect(await eventTypes()).toEqual(['refund.failed']);
    expect(await entryKinds()).toEqual(['refund_accepted', 'refund_failed']);
    expect(await money()).toEqual(UNREFUNDED);
    await saveHistory(handle, 'refund-failed');
  });
});

test('a failure without words gets ours', async () => {
  await withRefund(scriptedBank(), async ({ endBy, stored }) => {
    await endBy('failed');
    expect((await stored()).failure).toEqual({
      code: 'refund_refused',
      message: 'The bank refused the refund.',
    });
  });
});

test('the bank refuses the instruction: the refund fails and gives its amount back', async () => {
  const failure = { code: 'too_old', message: 'Too old.' };
  const bank = scriptedBank({ sendRefund: async () => ({ outcome: 'refused', ...failure }) });
  await withRefund(bank, async ({ handle, stored, eventTypes, money }) => {
    expect(await handle.result()).toMatchObject({ status: 'failed', version: 2 });
    expect(await stored()).toMatchObject({ failure });
    expect(await eventTypes()).toEqual(['refund.failed']);
    expect(await money()).toEqual(UNREFUNDED);
    await saveHistory(handle, 'refund-refused-by-bank');
  });
});

test('no amount is all that remains; operators find it by that amount', async () => {
  await withBank(setting, scriptedBank(), async (connector) => {
    const payment = await settledPayment(setting, connector);
    const part = await openRefund(setting, refundInput(payment, { amount: 300 }));
    const rest = refundInput(payment, { amount: null });
    const { handle } = await openRefund(setting, rest);
    const { stored, endBy, money } = trackRefund(setting, rest.refund_id, payment, handle);
    expect((await stored()).amount).toBe(750);
    expect(await money()).toEqual(REFUNDED);
    await part.handle.signal('failed', callback());
    await part.handle.result();
    await endBy('settled');
    expect((await handle.describe()).typedSearchAttributes.get(AMOUNT)).toBe(750);
    expect(await money()).toEqual({ refunded: 750, available: 300 });
    await saveHistory(handle, 'refund-whole-remainder');
  });
});

test('the same callback_id counts once', async () => {
  await withRefund(scriptedBank(), async ({ handle, unapplied, eventTypes }) => {
    const settled = callback();
    await handle.signal('settled', settled);
    await handle.signal('settled', settled).catch(() => 'it has ended already');
    expect(await handle.result()).toMatchObject({ status: 'settled', version: 2 });
    expect(await unapplied()).toEqual([]);
    expect(await eventTypes()).toHaveLength(1);
  });
});

test('a cancel request from the Temporal UI ends nothing, and updates are still answered', async () => {
  await withStatus.processing(async ({ id, handle, act }) => {
    await handle.cancel();
    const state = { refund_id: id, status: 'settled', version: 2 };
    expect(await act('mark_settled')).toEqual(state);
    expect(await handle.result()).toMatchObject({ status: 'settled' });
    await saveHistory(handle, 'refund-ui-cancel');
  });
});

describe('refused at the opening', () => {
  test('a race for the remainder: the loser is told why, nothing is stored, its key is free', async () => {
    const bank = scriptedBank();
    await withBank(setting, bank, async (connector) => {
      const payment = await settledPayment(setting, connector);
      await openRefund(setting, refundInput(payment, { amount: 600 }));
      const second = refundInput(payment, { amount: 600 });
      expect(await refusalOf(openRefund(setting, second))).toEqual({
        code: 'refund_amount_exceeds_balance',
        message: '€4.50 of the payment can still be refunded.',
      });
      const { refund_id } = second;
      const { env, stores } = setting;
      const handle = env.client.workflow.getHandle(`refund:${refund_id}`);
      expect(await handle.result()).toMatchObject({ refund_id, status: 'refused' });
      expect((await handle.describe()).typedSearchAttributes.get(STATUS)).toBe('refused');
      expect(await stores.refunds.get(refund_id)).toBeNull();
      expect(await stores.idempotency.forResource(refund_id)).toBeNull();
      expect(await readRefunded(setting, payment)).toEqual({ refunded: 600, available: 450 });
      expect(bank.told).not.toContain(`sendRefund ${refund_id}`);
      await saveHistory(handle, 'refund-refused');
    });
  });

  test('the balance is empty: asked again after the end, the answer is the same', async () => {
    await withBank(setting, scriptedBank(), async (connector) => {
      const payment = await settledPayment(setting, connector);
      await fund(setting, payment, -1);
      const input = refundInput(payment);
      const code = 'insufficient_balance';
      expect(await refusalOf(openRefund(setting, input))).toMatchObject({ code });
      const { env, stores, queues } = setting;
      await env.client.workflow.getHandle(`refund:${input.refund_id}`).result();
      const client = createTemporalClient({
        client: env.client,
        lifecycleQueue: queues.lifecycle,
        stores,
        now: () => new Date(),
      });
      const again = unlessUnavailable(() => client.openRefund(input));
      await expect(again).rejects.toMatchObject({ code });
      expect(await stores.refunds.get(input.refund_id)).toBeNull();
      expect(await stores.ledger.forResource(input.refund_id)).toEqual([]);
      expect(await readRefunded(setting, payment)).toEqual({ refunded: 0, available: 1_049 });
    });
  });
});

test('a bank that says nothing: overdue, snoozed, overdue again, marked as settled', async () => {
  await withStatus.processing(async ({ id, handle, stored, attention, act }) => {
    await setting.env.sleep('71h');
    expect(await attention()).toBeNull();
    await setting.env.sleep('2h');
    const overdue = { status: 'processing', attention: 'refund_overdue' };
    expect(await stored()).toMatchObject(overdue);
    const state = { refund_id: id, status: 'processing', version: 1 };
    expect(await act('snooze', { ...ACT, hours: 2 })).toEqual(state);
    expect(await attention()).toBeNull();
    await setting.env.sleep('3h');
    expect(await attention()).toBe('refund_overdue');
    await act('mark_settled');
    expect(await handle.result()).toMatchObject({ status: 'settled' });
    expect(await stored()).toMatchObject({
      attention: null,
      audit: [
        { who: 'ada', what: 'snooze', before: 'refund_overdue', after: 'no attention' },
        { who: 'ada', what: 'mark_settled', before: 'processing', after: 'settled' },
      ],
    });
    await saveHistory(handle, 'refund-overdue-marked-settled');
  });
});

test('an attention reason that says more than lateness stays', async () => {
  await withStatus.processing(async ({ handle, attention, act }) => {
    await handle.signal('settled', { occurred_at: 'yesterday' });
    await setting.env.sleep('73h');
    expect(await attention()).toBe('malformed_callback');
    await act('mark_settled');
    expect(await handle.result()).toMatchObject({ status: 'settled' });
  });
});

/** Last: an activity under way, even one left by its workflow, keeps this server from skipping time. */
describe('final before the bank has answered', () => {
  test('by a callback: nothing waits for the answer', async () => {
    const { opened, release } = gate();
    const bank = scriptedBank({
      sendRefund: async () => {
        await opened;
        return { outcome: 'accepted', bank_reference: 'late' };
      },
    });
    await withRefund(bank, async ({ id, handle, endBy, stored, told }) => {
      await eventually('the instruction', async () => told.includes(`sendRefund ${id}`));
      const facts = { bank_reference: 'from-callback' };
      expect(await endBy('settled', facts)).toMatchObject({ status: 'settled', version: 2 });
      release();
      expect(await stored()).toMatchObject({ status: 'settled', ...facts });
      await saveHistory(handle, 'refund-callback-first');
    });
  });

  test('by an operator, told that it is overdue: with the connector down, nothing is sent', async () => {
    const bank = scriptedBank();
    const payment = await withBank(setting, bank, (connector) =>
      settledPayment(setting, connector),
    );
    const input = refundInput(payment, { due_seconds: 1 });
    const { handle } = await openRefund(setting, input);
    const { becomes, act, money } = trackRefund(setting, input.refund_id, payment, handle);
    await becomes({ attention: 'refund_overdue' });
    await act('mark_failed');
    expect(await handle.result()).toMatchObject({ status: 'failed' });
    expect(await money()).toEqual(UNREFUNDED);
    expect(bank.told).toEqual(['openSession']);
    await saveHistory(handle, 'refund-connector-down');
  });
});
