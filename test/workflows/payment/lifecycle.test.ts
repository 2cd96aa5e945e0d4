import { randomBytes } from 'node:crypto';
import { createPaymentActivities, type PaymentTransition } from '../../../activities/payments';
import { createLogger } from '../../../src/base/log';
import type { PaymentStatus } from '../../../src/domain/payment/payment';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { terminateIdle } from '../../support/skipping-server';
import {
  callback,
  openPayment,
  paymentInput,
  recordPaymentKey,
  scriptedBank,
  withBank,
} from '../../support/workflow-setting';
import { ACT, trackPayment, useLifecycles } from '../lifecycles';

const { setting, withPayment, withStatus } = useLifecycles();

// A machine that stalls for the 4 s of a session has the bank asked for it twice.
jest.retryTimes(3, { logErrorsBeforeRetry: true });

const ALL_EVENTS = ['payment.awaiting_customer', 'payment.authorized', 'payment.settled'];

test('a payment is opened, authorised and settled', async () => {
  await withPayment(scriptedBank(), async ({ id, handle, opened, signal, endBy, eventTypes }) => {
    const opening = { status: 'awaiting_customer', failure: null, created_at: expect.any(String) };
    const state = { payment_id: id, status: 'awaiting_customer', version: 2 };
    expect(opened).toEqual({ ...state, opening });
    await signal('authorized');
    expect(await endBy('settled')).toEqual({ payment_id: id, status: 'settled', version: 4 });
    expect(await eventTypes()).toEqual(ALL_EVENTS);
    await saveHistory(handle, 'payment-settled');
  });
});

test('nobody pays: it expires by its timer, the bank is asked to close first', async () => {
  await withPayment(scriptedBank(), async ({ handle, stored, told }) => {
    expect(await handle.result()).toMatchObject({ status: 'expired' });
    const payment = await stored();
    const lived = Date.parse(payment.updated_at) - Date.parse(payment.created_at);
    expect(lived).toBeGreaterThanOrEqual(1_800_000);
    expect(lived).toBeLessThan(1_860_000);
    expect(payment.failure).toBeNull();
    expect(told).toEqual(['openSession', 'closeSession']);
    await saveHistory(handle, 'payment-expired');
  });
});

test('a cash-machine reference lives for three days', async () => {
  await withPayment(
    scriptedBank(),
    async ({ handle, stored }) => {
      await setting.env.sleep('71h');
      expect((await stored()).status).toBe('awaiting_customer');
      expect(await handle.result()).toMatchObject({ status: 'expired' });
    },
    { method: 'multibanco', expires_in_seconds: 259_200 },
  );
});

test('at expiry the customer was faster: it is authorised instead', async () => {
  const bank = scriptedBank({ closeSession: async () => ({ outcome: 'already_authorized' }) });
  await withPayment(bank, async ({ stored, endBy }) => {
    await setting.env.sleep('31m');
    expect((await stored()).status).toBe('authorized');
    expect(await endBy('settled')).toMatchObject({ status: 'settled' });
  });
});

test('an authorised payment never expires; overdue, it is shown to operators', async () => {
  await withPayment(scriptedBank(), async ({ handle, signal, stored, attention, act }) => {
    await signal('authorized');
    await setting.env.sleep('25h');
    const overdue = { status: 'authorized', attention: 'settlement_overdue' };
    expect(await stored()).toMatchObject(overdue);
    await act('snooze', { ...ACT, hours: 2 });
    expect(await attention()).toBeNull();
    await setting.env.sleep('3h');
    expect(await attention()).toBe('settlement_overdue');
    await act('mark_settled');
    expect(await handle.result()).toMatchObject({ status: 'settled' });
    expect(await stored()).toMatchObject({
      attention: null,
      audit: [
        { who: 'ada', what: 'snooze', before: 'settlement_overdue', after: 'no attention' },
        { who: 'ada', what: 'mark_settled', before: 'authorized', after: 'settled' },
      ],
    });
    await saveHistory(handle, 'payment-overdue-marked-settled');
  });
});

test('an attention reason that says more than lateness stays, and lateness is told once', async () => {
  await withPayment(scriptedBank(), async ({ handle, signal, endBy, attention }) => {
    await signal('authorized');
    await setting.env.sleep('25h');
    expect(await attention()).toBe('settlement_overdue');
    await handle.signal('settled', { occurred_at: 'yesterday' });
    await setting.env.sleep('1h');
    expect(await attention()).toBe('malformed_callback');
    const events = (await handle.fetchHistory()).events?.length;
    await setting.env.sleep('24h');
    expect(await attention()).toBe('malformed_callback');
    expect((await handle.fetchHistory()).events).toHaveLength(events ?? 0);
    expect(await endBy('settled')).toMatchObject({ status: 'settled' });
  });
});

test('in a wrong state, an act is refused in words and changes nothing', async () => {
  await withStatus.awaiting_customer(async ({ refusal, stored }) => {
    expect(await refusal('snooze', { ...ACT, hours: 1 })).toEqual({
      code: 'wrong_state',
      message: 'Only an authorised payment can be snoozed; it is awaiting_customer.',
    });
    expect(await stored()).toMatchObject({ version: 2, audit: [] });
  });
});

test('a slow bank: stored as created after 4 s, awaiting the customer when it answers', async () => {
  let isAway = true;
  const bank = scriptedBank({
    openSession: async ({ payment_id }) => {
      if (isAway) throw new Error('the bank is away');
      return { outcome: 'opened', bank_reference: payment_id, session_url: 'https://bank.example' };
    },
  });
  await withPayment(bank, async ({ handle, opened, stored, endBy, eventTypes }) => {
    expect(opened).toMatchObject({ status: 'created', version: 1 });
    expect(await eventTypes()).toEqual([]);
    isAway = false;
    await setting.env.sleep('5m');
    expect(await stored()).toMatchObject({
      status: 'awaiting_customer',
      session_url: 'https://bank.example',
    });
    expect(await eventTypes()).toEqual(['payment.awaiting_customer']);
    const facts = { code: 'declined_by_bank', reason: 'No.' };
    expect(await endBy('failed', facts)).toMatchObject({ status: 'failed' });
    expect((await stored()).failure).toEqual({ code: 'declined_by_bank', message: 'No.' });
    await saveHistory(handle, 'payment-slow-bank-failed');
  });
});

test('the bank declines to open: the payment fails at once, with its event', async () => {
  const failure = { code: 'closed', message: 'Not today.' };
  const bank = scriptedBank({ openSession: async () => ({ outcome: 'declined', ...failure }) });
  await withPayment(bank, async ({ handle, opened, stored, eventTypes }) => {
    expect(opened).toMatchObject({ status: 'failed', version: 2 });
    expect(await handle.result()).toMatchObject({ status: 'failed' });
    expect(await eventTypes()).toEqual(['payment.failed']);
    expect((await stored()).failure).toEqual(failure);
  });
});

test('the same callback_id counts once; an out-of-order one is kept as unapplied', async () => {
  await withPayment(scriptedBank(), async ({ handle, eventTypes, unapplied }) => {
    const [settled, late] = [callback(), callback()];
    await handle.signal('settled', settled);
    await handle.signal('settled', settled);
    await handle.signal('authorized', late);
    expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
    expect(await eventTypes()).toHaveLength(3);
    expect(await unapplied()).toEqual([expect.stringMatching(/^authorized: .*settled already/)]);
    await saveHistory(handle, 'payment-out-of-order');
  });
});

test('a malformed callback never throws: it is shown, and the payment goes on', async () => {
  await withPayment(scriptedBank(), async ({ handle, act, stored }) => {
    await handle.signal('settled', { callback_id: 7 });
    await handle.signal('settled');
    await act('cancel', { by: 'customer' });
    expect(await handle.result()).toMatchObject({ status: 'cancelled' });
    expect(await stored()).toMatchObject({
      attention: 'malformed_callback',
      failure: { code: 'cancelled_by_customer' },
    });
  });
});

test('a cancel request from the Temporal UI ends nothing, and updates are still answered', async () => {
  await withPayment(scriptedBank(), async ({ id, handle, signal, becomes, act, endBy }) => {
    await handle.cancel();
    const open = await handle.executeUpdate('open');
    expect(open).toMatchObject({ payment_id: id, status: 'awaiting_customer', version: 2 });
    await signal('authorized');
    await becomes({ status: 'authorized' });
    const state = { payment_id: id, status: 'authorized', version: 3 };
    expect(await act('snooze', { ...ACT, hours: 1 })).toEqual(state);
    expect(await endBy('settled')).toMatchObject({ status: 'settled' });
    await saveHistory(handle, 'payment-ui-cancel');
  });
});

test('bank details of a slow bank are stored in place of a page', async () => {
  let isAway = true;
  const instructions = {
    ...{ iban: 'DE89370400440532013000', account_holder: 'ACME', bic: null, amount: 1_050 },
    reference: 'RF18539007547034',
  };
  const bank = scriptedBank({
    openSession: async () => {
      if (isAway) throw new Error('the bank is away');
      return { outcome: 'opened', bank_reference: 'B-77', instructions };
    },
  });
  await withPayment(bank, async ({ opened, stored, endBy }) => {
    expect(opened).toMatchObject({ status: 'created' });
    isAway = false;
    await setting.env.sleep('5m');
    const facts = { status: 'awaiting_customer', session_url: null, instructions };
    expect(await stored()).toMatchObject(facts);
    await endBy('settled');
  });
});

test('a session that comes after the authorization keeps its reference for refunds', async () => {
  let isAway = true;
  const bank = scriptedBank({
    openSession: async () => {
      if (isAway) throw new Error('the bank is away');
      return { outcome: 'opened', bank_reference: 'B-77', session_url: 'https://bank.example' };
    },
  });
  await withPayment(bank, async ({ signal, becomes, endBy, stored }) => {
    await signal('authorized');
    await becomes({ status: 'authorized' });
    isAway = false;
    await setting.env.sleep('5m');
    await endBy('settled');
    expect(await stored()).toMatchObject({ status: 'settled', bank_reference: 'B-77' });
  });
});

test('a payment that was opened before, while the bank was slow, gets its session', async () => {
  await withBank(setting, scriptedBank(), async (connector) => {
    const input = paymentInput(connector);
    await recordPaymentKey(setting, input);
    const { expires_in_seconds, ...facts } = input;
    const created_at = new Date().toISOString();
    const before = { ...facts, created_at, expires_at: created_at, session: null };
    await activitiesBehind().openPayment(before);
    const { handle, opened } = await openPayment(setting, input);
    const { stored, endBy, eventTypes } = trackPayment(setting, input, handle);
    expect(opened).toMatchObject({ status: 'created', version: 1 });
    await eventually('the session', async () => (await stored()).session_url !== null);
    expect(await endBy('settled')).toMatchObject({ status: 'settled', version: 4 });
    expect(await eventTypes()).toHaveLength(3);
    await saveHistory(handle, 'payment-opened-before');
  });
});

test('one without a session, whose workflow was ended from outside, asks the bank for it again', async () => {
  let isAway = true;
  const bank = scriptedBank({
    openSession: async ({ payment_id, return_url }) => {
      if (isAway) throw new Error('the bank is away');
      return { outcome: 'opened', bank_reference: payment_id, session_url: return_url };
    },
  });
  await withPayment(bank, async ({ input, handle, opened, becomes, restart, endBy }) => {
    expect(opened).toMatchObject({ status: 'created' });
    await terminateIdle(handle);
    isAway = false;
    await restart();
    const { session_url } = await becomes({ status: 'awaiting_customer' });
    expect(session_url).toBe(input.return_url);
    expect(await endBy('settled')).toMatchObject({ status: 'settled' });
    await saveHistory(handle, 'payment-resumed-created');
  });
});

test('a settlement is due from the authorisation, not from a new start', async () => {
  await withPayment(scriptedBank(), async (payment) => {
    const { id, handle, becomes } = payment;
    await payment.signal('authorized');
    await becomes({ status: 'authorized' });
    await terminateIdle(handle);
    const { dbName } = setting.stores.ledger.collections.books;
    const payments = setting.mongo.db(dbName).collection<{ _id: string }>('payments');
    const longAgo = { authorized_at: '2026-01-01T00:00:00.000Z' };
    await payments.updateOne({ _id: id }, { $set: longAgo });
    await payment.restart();
    await becomes({ attention: 'settlement_overdue' });
    expect(await payment.endBy('settled')).toMatchObject({ status: 'settled' });
    expect(await payment.attention()).toBeNull();
  });
});

/** Writes to the record behind a workflow's back. */
function activitiesBehind() {
  const { mongo, stores, env } = setting;
  return createPaymentActivities({
    mongo,
    stores,
    temporal: env.client,
    webhookQueue: 'unused',
    payTokenKey: randomBytes(32),
    log: createLogger('behind', 'silent'),
  });
}

describe('a record that is ahead of its workflow, as after an older backup of Temporal', () => {
  /** Changes the status behind the workflow's back. */
  const changeBehind = async (
    id: string,
    to: PaymentStatus,
    from: PaymentTransition['from'] = { status: 'awaiting_customer', version: 2 },
  ) => {
    await activitiesBehind().recordPaymentMove({
      resource_id: id,
      account_id: `acct_${id}`,
      livemode: false,
      from,
      to: [to],
      at: new Date().toISOString(),
      attention: null,
      change: {},
      request_id: 'before the restore',
    });
  };

  test('by the first of two transitions: the rest follows, each with one event', async () => {
    await withPayment(scriptedBank(), async ({ id, endBy, eventTypes }) => {
      await changeBehind(id, 'authorized');
      expect(await endBy('settled')).toEqual({ payment_id: id, status: 'settled', version: 4 });
      // In any order: the transition from behind has the time of another clock.
      expect((await eventTypes()).toSorted()).toEqual(ALL_EVENTS.toSorted());
    });
  });

  test('on another path: the callback is decided on the state that the record says', async () => {
    await withPayment(scriptedBank(), async ({ id, handle, endBy, told, attention }) => {
      await changeBehind(id, 'expired');
      expect(await endBy('settled')).toEqual({ payment_id: id, status: 'expired', version: 3 });
      expect(told.at(-1)).toBe(`reversePayment reversal:${id}`);
      expect(await attention()).toBe('late_settlement_reversed');
      await saveHistory(handle, 'payment-record-ahead');
    });
  });

  test('a cancel is answered by the state that the record says', async () => {
    await withPayment(scriptedBank(), async ({ id, refusal, endBy }) => {
      await changeBehind(id, 'authorized');
      expect(await refusal('cancel', { by: 'merchant' })).toMatchObject({ code: 'cannot_cancel' });
      expect(await endBy('settled')).toMatchObject({ status: 'settled', version: 4 });
    });
  });

  test('an act that changes only the attention is refused in the words of the record', async () => {
    await withPayment(scriptedBank(), async (payment) => {
      const { id, handle, refusal, stored } = payment;
      await payment.signal('authorized');
      await payment.becomes({ status: 'authorized' });
      await changeBehind(id, 'settled', { status: 'authorized', version: 3 });
      const refused = await refusal('snooze', { ...ACT, hours: 1 });
      expect(refused).toMatchObject({ code: 'wrong_state' });
      expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
      expect((await stored()).audit).toEqual([]);
      await saveHistory(handle, 'payment-act-record-ahead');
    });
  });
});
