import { defineSearchAttributeKey } from '@temporalio/common';
import { createTemporalClient } from '../../../src/temporal/client';
import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import {
  callback,
  openRefund,
  refundInput,
  scriptedBank,
  settledPayment,
  withBank,
} from '../../support/workflow-setting';
import {
  readRefunded,
  refusalOf,
  trackRefund,
  unlessUnavailable,
  useLifecycles,
} from '../lifecycles';

const { setting, buildDeps, withRefund } = useLifecycles();

// A machine that stalls for the 4 s of a session has the bank asked for it twice.
jest.retryTimes(3, { logErrorsBeforeRetry: true });

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
