import { ApplicationFailure, defineSearchAttributeKey } from '@temporalio/common';
import { createPaymentActivities, type PaymentTransition } from '../../../activities/payments';
import type {
  CloseAnswer,
  ConnectorActivities,
  SessionAnswer,
  SessionInstruction,
} from '../../../connectors/contract/activities';
import type { PaymentCallbackName } from '../../../src/domain/banks/callback';
import type { PaymentStatus } from '../../../src/domain/payment/payment';
import type { Stores } from '../../../src/store';
import { createTemporalClient } from '../../../src/temporal/client';
import { eventually } from '../../support/eventually';
import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { terminateIdle } from '../../support/skipping-server';
import {
  callback,
  openPayment,
  openRefund,
  paymentInput,
  recordPaymentKey,
  refundInput,
  scriptedBank,
  settledPayment,
  withBank,
} from '../../support/workflow-setting';
import {
  ACT,
  readRefunded,
  refusalOf,
  type TrackedPayment,
  trackPayment,
  trackRefund,
  unlessUnavailable,
} from '../lifecycles';
import { type Row, useMovementStories } from '../movement-stories';

const { setting, buildDeps, withStatus, playFrom, ...stories } = useMovementStories();
const { withPayment, withPaymentOn, withRefund } = stories;

// A machine that stalls for the 4 s of a session, or the 3 s of a cancellation, has the bank asked
// for a session twice, or the payment cancelled.
jest.retryTimes(3, { logErrorsBeforeRetry: true });

const MERCHANT = { by: 'merchant' };
const ALL_EVENTS = ['payment.awaiting_customer', 'payment.authorized', 'payment.settled'];

/** Opens the database's payments to a write that the workflow does not make. */
const openPayments = () =>
  setting.mongo.db(setting.database).collection<{ _id: string }>('payments');

test('a payment is opened, authorized and settled', () =>
  withPayment(scriptedBank(), async ({ id, handle, opened, signal, endBy, eventTypes }) => {
    const opening = { status: 'awaiting_customer', failure: null, created_at: expect.any(String) };
    const state = { payment_id: id, status: 'awaiting_customer', version: 2 };
    expect(opened).toEqual({ ...state, opening });
    await signal('authorized');
    const facts = { amount: 1_050, currency: 'EUR', value_date: '2026-02-27' };
    const result = await endBy('settled', facts);
    expect(result).toEqual({ payment_id: id, status: 'settled', version: 4 });
    expect(await eventTypes()).toEqual(ALL_EVENTS);
    const { value_date } = facts;
    expect(await setting.stores.ledger.forResource(id)).toMatchObject([{ value_date }]);
    await saveHistory(handle, 'payment-settled');
  }));

test('a payment expires by its timer, after the bank has closed its session', () =>
  withPayment(scriptedBank(), async ({ handle, stored, told }) => {
    expect(await handle.result()).toMatchObject({ status: 'expired' });
    const { created_at, updated_at, failure } = await stored();
    const open_ms = Date.parse(updated_at) - Date.parse(created_at);
    expect(open_ms).toBeGreaterThanOrEqual(1_800_000);
    expect(open_ms).toBeLessThan(1_860_000);
    expect(failure).toBeNull();
    expect(told).toEqual(['openSession', 'closeSession']);
    await saveHistory(handle, 'payment-expired');
  }));

const REFERENCE = { outcome: 'opened', bank_reference: 'B-77' } as const;
const PAGE = { session_url: 'https://bank.example' };
const instructions = {
  ...{ iban: 'DE89370400440532013000', account_holder: 'ACME', bic: null, amount: 1_050 },
  reference: 'RF18539007547034',
};

/** Runs a story in which the bank answers once it is back. */
function withSlowBank(
  story: (payment: TrackedPayment & { returnBank: () => void }) => Promise<void>,
  answer: (instruction: SessionInstruction) => SessionAnswer = () => ({ ...REFERENCE, ...PAGE }),
) {
  let isAway = true;
  const openSession = async (instruction: SessionInstruction) => {
    if (isAway) throw new Error('the bank is away');
    return answer(instruction);
  };
  const returnBank = () => {
    isAway = false;
  };
  return withPayment(scriptedBank({ openSession }), async (payment) => {
    expect(payment.opened).toMatchObject({ status: 'created', version: 1 });
    await story({ ...payment, returnBank });
  });
}

describe('a payment whose bank opens no session within 4 s', () => {
  test.each([
    ['the address of its page', PAGE],
    ['the bank details that replace a page', { instructions }],
  ])('is created, and gets %s when the bank answers', (_what, session) =>
    withSlowBank(
      async ({ handle, returnBank, stored, endBy, eventTypes }) => {
        expect(await eventTypes()).toEqual([]);
        returnBank();
        await setting.env.sleep('5m');
        const awaiting = { status: 'awaiting_customer', session_url: null, ...session };
        expect(await stored()).toMatchObject({ ...awaiting, bank_reference: 'B-77' });
        expect(await eventTypes()).toEqual(['payment.awaiting_customer']);
        const facts = { code: 'declined_by_bank', reason: 'No.' };
        expect(await endBy('failed', facts)).toMatchObject({ status: 'failed' });
        expect((await stored()).failure).toEqual({ code: 'declined_by_bank', message: 'No.' });
        await saveHistory(handle, 'payment-slow-bank-failed');
      },
      () => ({ ...REFERENCE, ...session }),
    ),
  );

  test('gets its session when it is opened again', () =>
    withBank(setting, scriptedBank(), async (connector) => {
      const input = paymentInput(connector);
      await recordPaymentKey(setting, input);
      const { expires_in_seconds, ...facts } = input;
      const created_at = new Date().toISOString();
      const before = { ...facts, created_at, expires_at: created_at, session: null };
      await createPaymentActivities(buildDeps()).openPayment(before);
      const { handle, opened } = await openPayment(setting, input);
      const { stored, endBy, eventTypes } = trackPayment(setting, input, handle);
      expect(opened).toMatchObject({ status: 'created', version: 1 });
      await eventually('the session', async () => (await stored()).session_url !== null);
      expect(await endBy('settled')).toMatchObject({ status: 'settled', version: 4 });
      expect(await eventTypes()).toHaveLength(3);
      await saveHistory(handle, 'payment-opened-before');
    }));
});

/** Fails whenever it is asked to close a session, and reports once of each payment meanwhile. */
function reportInstead(name: PaymentCallbackName) {
  const reported = new Set<string>();
  const closeSession: ConnectorActivities['closeSession'] = async ({ payment_id: id }) => {
    const { workflow } = setting.env.client;
    const isNew = !reported.has(id);
    reported.add(id);
    if (isNew) await workflow.getHandle(`payment:${id}`).signal(name, callback());
    throw new Error('the bank is away');
  };
  return closeSession;
}

const answerAuthorized = async () => ({ outcome: 'already_authorized' }) as const;

test.each([
  ['cancelled', 'authorized', 'by the answer of', answerAuthorized, 'cancel-refused'],
  ['cancelled', 'settled', 'in spite of', reportInstead('settled'), 'paid-before-cancelled'],
  ['expired', 'authorized', 'in spite of', reportInstead('authorized'), 'paid-before-expired'],
] as const)('a payment is not %s but %s %s a bank that does not close its session', (...row) => {
  const [end, status, , closeSession, history] = row;
  return withPayment(scriptedBank({ closeSession }), async (payment) => {
    const { handle, refusal, stored } = payment;
    if (end === 'expired') await setting.env.sleep('40m');
    else expect(await refusal('cancel', MERCHANT)).toMatchObject({ code: 'cannot_cancel' });
    if (status === 'settled') await handle.result();
    expect(await stored()).toMatchObject({ status, attention: null });
    if (status === 'authorized') await payment.signal('settled');
    expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
    await saveHistory(handle, `payment-${history}`);
  });
});

/** Closes a session once the bank `isBack`. */
const closeSlowly = (isBack: (requests: number) => boolean, answer: CloseAnswer) => {
  let requests = 0;
  return async () => {
    requests += 1;
    if (!isBack(requests)) throw new Error('the bank is away');
    return answer;
  };
};

const VOIDED = 'late_authorization_voided';

test.each<Row>([
  {
    title: 'a cancelled payment has its session closed later, and what is authorized voided',
    steps: [['save', 'payment-closed-later']],
    bank: { closeSession: closeSlowly((n) => n > 12, { outcome: 'already_authorized' }) },
    stored: { attention: VOIDED },
    instructions: ['void'],
  },
  {
    title: 'an authorization after the end is voided at the bank, under one instruction id',
    steps: [
      ['authorized', {}, VOIDED],
      ['save', 'payment-resumed-void'],
      ['authorized', {}, VOIDED],
    ],
    instructions: ['void', 'void'],
  },
])('$title', playFrom('cancelled'));

test.each<Row>([
  {
    title: 'a payment by another card brand is settled, and operators see it',
    steps: [['settled', { code: 'method_differs' }, 'settled method_differs']],
  },
])('$title', playFrom('awaiting_customer'));

describe('a cancelled payment whose session the bank does not close', () => {
  test('needs attention, and late funds are returned meanwhile', () => {
    let isBack = false;
    const closeSession = closeSlowly(() => isBack, { outcome: 'closed' });
    return withPayment(scriptedBank({ closeSession }), async (payment) => {
      const { handle, act, refusal, signal, becomes, attention } = payment;
      await act('cancel', MERCHANT);
      await becomes({ attention: 'session_not_closed' });
      await signal('settled');
      await becomes({ attention: 'late_settlement_reversed' });
      expect(await refusal('cancel', MERCHANT)).toMatchObject({ code: 'cannot_cancel' });
      isBack = true;
      expect(await handle.result()).toMatchObject({ status: 'cancelled' });
      expect(await attention()).toBe('late_settlement_reversed');
      await saveHistory(handle, 'payment-session-not-closed');
    });
  });

  test('ends when an operator gives up closing it', () => {
    const closeSession = () => Promise.reject(new Error('the bank is away'));
    return withPayment(scriptedBank({ closeSession }), async (payment) => {
      const { handle, act, refusal, becomes, stored, refusalAfterEnd } = payment;
      const message = 'The payment is awaiting_customer; it has not ended.';
      expect(await refusal('give_up_closing')).toEqual({ code: 'wrong_state', message });
      await act('cancel', MERCHANT);
      await becomes({ attention: 'session_not_closed' });
      await act('give_up_closing');
      expect(await handle.result()).toMatchObject({ status: 'cancelled' });
      const audit = [{ what: 'give_up_closing' }];
      expect(await stored()).toMatchObject({ attention: null, audit });
      expect(await refusalAfterEnd('give_up_closing')).toMatchObject({ code: 'wrong_state' });
      await saveHistory(handle, 'payment-closing-given-up');
    });
  });

  test('still shows late funds when an operator gives up closing it', () => {
    const closeSession = () => Promise.reject(new Error('the bank is away'));
    const reversePayment = () => Promise.reject(ApplicationFailure.nonRetryable('not possible'));
    return withPayment(scriptedBank({ closeSession, reversePayment }), async (payment) => {
      const { handle, act, signal, becomes, attention } = payment;
      await act('cancel', MERCHANT);
      await becomes({ attention: 'session_not_closed' });
      await signal('settled');
      await becomes({ attention: 'late_settlement_not_reversed' });
      await act('give_up_closing');
      expect(await handle.result()).toMatchObject({ status: 'cancelled' });
      expect(await attention()).toBe('late_settlement_not_reversed');
    });
  });
});

test('a callback counts once, and one out of order is stored as unapplied', () =>
  withPayment(scriptedBank(), async ({ handle, eventTypes, unapplied }) => {
    const [settled, late] = [callback(), callback()];
    await handle.signal('settled', settled);
    await handle.signal('settled', settled);
    await handle.signal('authorized', late);
    expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
    expect(await eventTypes()).toHaveLength(3);
    expect(await unapplied()).toEqual([expect.stringMatching(/^authorized: .*settled already/)]);
    await saveHistory(handle, 'payment-out-of-order');
  }));

test('a payment fails at once, with its event, when the bank declines to open a session', () => {
  const failure = { code: 'closed', message: 'Not today.' };
  const bank = scriptedBank({ openSession: async () => ({ outcome: 'declined', ...failure }) });
  return withPayment(bank, async ({ handle, opened, stored, eventTypes }) => {
    expect(opened).toMatchObject({ status: 'failed', version: 2 });
    expect(await handle.result()).toMatchObject({ status: 'failed' });
    expect(await eventTypes()).toEqual(['payment.failed']);
    expect((await stored()).failure).toEqual(failure);
  });
});

describe('a workflow whose state is stale, as after a restore of Temporal', () => {
  const changeRecord = (
    id: string,
    to: PaymentStatus,
    from: PaymentTransition['from'] = {
      ...{ status: 'awaiting_customer', version: 2, transition: 2 },
    },
  ) =>
    createPaymentActivities(buildDeps()).recordPaymentMove({
      ...{ resource_id: id, account_id: `acct_${id}`, livemode: false, from, to: [to] },
      ...{ at: new Date().toISOString(), attention: null, change: {} },
      request_id: 'before the restore',
    });

  test('decides about a callback by the state in the database', () =>
    withPayment(scriptedBank(), async ({ id, handle, endBy, told, attention }) => {
      await changeRecord(id, 'expired');
      expect(await endBy('settled')).toMatchObject({ payment_id: id, status: 'expired' });
      expect(told.at(-1)).toBe(`reversePayment reversal:${id}`);
      expect(await attention()).toBe('late_settlement_reversed');
      await saveHistory(handle, 'payment-record-ahead');
    }));

  test.each([
    ['cancel', MERCHANT, 'cannot_cancel', 'awaiting_customer', 2, 'authorized'],
    ['snooze', { ...ACT, hours: 1 }, 'wrong_state', 'authorized', 3, 'settled'],
  ] as const)('refuses the update %s by the state in the database', async (...row) => {
    const [update, args, code, status, version, to] = row;
    await withStatus[status](async ({ id, handle, refusal, signal, stored }) => {
      await changeRecord(id, to, { status, version, transition: version });
      expect(await refusal(update, args)).toMatchObject({ code });
      if (to === 'authorized') await signal('settled');
      expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
      expect((await stored()).audit).toEqual([]);
      if (update === 'snooze') await saveHistory(handle, 'payment-act-record-ahead');
    });
  });
});

test('a callback is given up and an update refused where another writer changes the payment before each write', async () => {
  const { payments } = setting.stores;
  let isCalm = false;
  const raiseVersion = (id: string) =>
    openPayments().updateOne({ _id: id }, { $inc: { version: 1 } });
  const update: Stores['payments']['update'] = async (id, version, ...rest) => {
    if (!isCalm && version > 2) await raiseVersion(id);
    return await payments.update(id, version, ...rest);
  };
  const setAttention: Stores['payments']['setAttention'] = async (id, change, session) => {
    if (change.audit !== null) await raiseVersion(id);
    return await payments.setAttention(id, change, session);
  };
  const raced = { ...setting.stores, payments: { ...payments, update, setAttention } };
  await withPaymentOn(raced, async (payment) => {
    await payment.signal('authorized');
    await payment.becomes({ status: 'authorized' });
    await payment.signal('settled', { callback_id: 'lost-one' });
    await payment.becomes({ attention: 'message_given_up' });
    await payment.shows('changed each time: callback settled (lost-one)');
    const refusal = await payment.refusal('acknowledge');
    expect(refusal).toMatchObject({ code: 'temporarily_unavailable' });
    isCalm = true;
    const unchanged = { status: 'authorized', attention: 'message_given_up', audit: [] };
    expect(await payment.stored()).toMatchObject(unchanged);
    expect(await payment.endBy('settled')).toMatchObject({ status: 'settled' });
  });
});

/** Last: an activity that its workflow has left may keep this server from skipping time. */
describe('a payment whose workflow was ended from outside and is started again', () => {
  test('gets a session, where it has none', () =>
    withSlowBank(
      async ({ input, handle, returnBank, becomes, restart, endBy }) => {
        await terminateIdle(handle);
        returnBank();
        await restart();
        const { session_url } = await becomes({ status: 'awaiting_customer' });
        expect(session_url).toBe(input.return_url);
        expect(await endBy('settled')).toMatchObject({ status: 'settled' });
        await saveHistory(handle, 'payment-resumed-created');
      },
      ({ return_url }) => ({ ...REFERENCE, session_url: return_url }),
    ));

  test('is overdue by its authorization, not by its new start', () =>
    withStatus.authorized(async (payment) => {
      const { id, handle, becomes } = payment;
      await terminateIdle(handle);
      const longAgo = { authorized_at: '2026-01-01T00:00:00.000Z' };
      await openPayments().updateOne({ _id: id }, { $set: longAgo });
      await payment.restart();
      await becomes({ attention: 'settlement_overdue' });
      expect(await payment.endBy('settled')).toMatchObject({ status: 'settled' });
      expect(await payment.attention()).toBeNull();
    }));
});

const AMOUNT = defineSearchAttributeKey('ServiceAmount', 'INT');
const STATUS = defineSearchAttributeKey('ServiceStatus', 'KEYWORD');

const REFUNDED = { refunded: 1_050, available: 0 };
const UNREFUNDED = { refunded: 0, available: 1_050 };

test('a refund reserves its money, is sent by the bank and settles once', () =>
  withRefund(scriptedBank(), async (refund) => {
    const { id, handle, payment, opened, money, told } = refund;
    expect(opened).toEqual({ refund_id: id, status: 'processing', version: 1 });
    expect(await money()).toEqual(REFUNDED);
    await refund.shows('instruction at the bank: accepted');
    // An operator who asks the bank needs its name for the refund.
    await refund.becomes({ status: 'processing', bank_reference: `ref-${id}` });
    expect(told).toEqual(['openSession', `sendRefund ${id}`]);
    const settled = callback();
    await handle.signal('settled', settled);
    await handle.signal('settled', settled).catch(() => 'it has ended already');
    expect(await handle.result()).toMatchObject({ refund_id: id, status: 'settled' });
    const payment_bank_reference = `ref-${payment.payment_id}`;
    const times = { settled_at: expect.any(String), failure: null };
    expect(await refund.stored()).toMatchObject({ payment_bank_reference, ...times });
    expect(await refund.eventTypes()).toEqual(['refund.settled']);
    expect(await refund.entryKinds()).toEqual(['refund_accepted', 'refund_settled']);
    expect(await money()).toEqual(REFUNDED);
    await saveHistory(handle, 'refund-settled');
  }));

const AT_BANK = { bank_reference: 'b-7' };
const CLOSED = { code: 'closed', reason: 'No.', ...AT_BANK };
const TOO_OLD = { code: 'too_old', message: 'Too old.' };

test.each([
  ['reports its failure', CLOSED, { ...AT_BANK, failure: { code: 'closed', message: 'No.' } }],
  ['refuses the instruction', null, { failure: TOO_OLD }],
])('a refund gives its amount back when the bank %s', (_what, report, failed) => {
  const sendRefund = async () => ({ outcome: 'refused', ...TOO_OLD }) as const;
  return withRefund(scriptedBank(report === null ? { sendRefund } : {}), async (refund) => {
    const { handle, shows, signal, stored } = refund;
    if (report !== null) {
      await shows('instruction at the bank: accepted');
      await signal('failed', report);
    }
    expect(await handle.result()).toMatchObject({ status: 'failed' });
    expect(await stored()).toMatchObject({ ...failed, settled_at: null });
    expect(await refund.eventTypes()).toEqual(['refund.failed']);
    expect(await refund.entryKinds()).toEqual(['refund_accepted', 'refund_failed']);
    expect(await refund.money()).toEqual(UNREFUNDED);
    await saveHistory(handle, report === null ? 'refund-refused-by-bank' : 'refund-failed');
  });
});

test('a refund without an amount is of all that remains, and operators find it by that', () =>
  withBank(setting, scriptedBank(), async (connector) => {
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
    const { typedSearchAttributes } = await handle.describe();
    expect(typedSearchAttributes.get(AMOUNT)).toBe(750);
    expect(await money()).toEqual({ refunded: 750, available: 300 });
    await saveHistory(handle, 'refund-whole-remainder');
  }));

test('a refund of more than an earlier one has left is refused, and stores nothing', () => {
  const bank = scriptedBank();
  return withBank(setting, bank, async (connector) => {
    const payment = await settledPayment(setting, connector);
    await openRefund(setting, refundInput(payment, { amount: 600 }));
    const input = refundInput(payment, { amount: 600 });
    const code = 'refund_amount_exceeds_balance';
    expect(await refusalOf(openRefund(setting, input))).toMatchObject({ code });
    const { refund_id } = input;
    const { env, stores } = setting;
    const handle = env.client.workflow.getHandle(`refund:${refund_id}`);
    expect(await handle.result()).toMatchObject({ refund_id, status: 'refused' });
    const { typedSearchAttributes } = await handle.describe();
    expect(typedSearchAttributes.get(STATUS)).toBe('refused');
    // Asked again after the end, the answer is the same.
    const client = createTemporalClient(buildDeps());
    const again = unlessUnavailable(() => client.openRefund(input));
    await expect(again).rejects.toMatchObject({ code });
    expect(await stores.refunds.get(refund_id)).toBeNull();
    expect(await stores.idempotency.forResource(refund_id)).toBeNull();
    expect(await readRefunded(setting, payment)).toEqual({ refunded: 600, available: 450 });
    expect(bank.told).not.toContain(`sendRefund ${refund_id}`);
    await saveHistory(handle, 'refund-refused');
  });
});

/** Last: an activity under way, even one left by its workflow, keeps this server from skipping time. */
describe('a refund that ends before the bank has answered', () => {
  test('does not wait for the answer after a callback', () => {
    const { opened, release } = gate();
    const bank = scriptedBank({
      sendRefund: async () => {
        await opened;
        return { outcome: 'accepted', bank_reference: 'late' };
      },
    });
    return withRefund(bank, async ({ id, handle, signal, becomes, stored, told }) => {
      await eventually('the instruction', async () => told.includes(`sendRefund ${id}`));
      const facts = { bank_reference: 'from-callback' };
      await signal('settled', facts);
      await becomes({ status: 'settled' });
      release();
      await handle.result();
      expect(await stored()).toMatchObject({ status: 'settled', ...facts });
      await saveHistory(handle, 'refund-callback-first');
    });
  });

  test('is not sent by a connector that was down until an operator marked it as failed', async () => {
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
