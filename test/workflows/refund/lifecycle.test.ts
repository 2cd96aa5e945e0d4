import { randomUUID } from 'node:crypto';
import { defineSearchAttributeKey } from '@temporalio/common';
import { inTransaction } from '../../../src/base/mongo';
import { ENTRY_LINES } from '../../../src/ledger/entry-lines';
import { createTemporalClient } from '../../../src/temporal/client';
import { saveHistory } from '../../support/histories';
import {
  callback,
  eventTypes,
  openRefund,
  refundInput,
  scriptedBank,
  settledPayment,
  useWorkflowSetting,
  withBank,
} from '../../support/workflow-setting';
import { accepted, moneyOf, postingsOf, refunding, refusalOf, storedRefund } from './setting';

const setting = useWorkflowSetting();

const AMOUNT = defineSearchAttributeKey('ServiceAmount', 'INT');
const STATUS = defineSearchAttributeKey('ServiceStatus', 'KEYWORD');

test('a refund is accepted with its money reserved, sent by the bank and settled', async () => {
  const bank = scriptedBank();
  await refunding(setting, bank, async ({ handle, opened, id, payment }) => {
    expect(opened).toEqual({ refund_id: id, status: 'processing', version: 1 });
    expect(await moneyOf(setting, payment)).toEqual({ refunded: 1_050, available: 0 });
    await accepted(handle);
    expect(bank.told).toEqual(['openSession', `sendRefund ${id}`]);
    await handle.signal('settled', callback());
    expect(await handle.result()).toEqual({ refund_id: id, status: 'settled', version: 2 });
    expect(await storedRefund(setting, id)).toMatchObject({
      reason: 'returned goods',
      bank_reference: `ref-${id}`,
      payment_bank_reference: `ref-${payment.payment_id}`,
      settled_at: expect.any(String),
      failure: null,
    });
    expect(await eventTypes(setting, payment.payment_id, id)).toEqual(['refund.settled']);
    expect(await postingsOf(setting, id)).toEqual(['refund_accepted', 'refund_settled']);
    expect(await moneyOf(setting, payment)).toEqual({ refunded: 1_050, available: 0 });
    await saveHistory(handle, 'refund-settled');
  });
});

test('a refund that fails at the bank later gives its amount back', async () => {
  await refunding(setting, scriptedBank(), async ({ handle, id, payment }) => {
    await accepted(handle);
    const failed = callback({ code: 'account_closed', reason: 'No.', bank_reference: 'b-7' });
    await handle.signal('failed', failed);
    expect(await handle.result()).toMatchObject({ status: 'failed', version: 2 });
    expect(await storedRefund(setting, id)).toMatchObject({
      failure: { code: 'account_closed', message: 'No.' },
      bank_reference: 'b-7',
      settled_at: null,
    });
    expect(await eventTypes(setting, payment.payment_id, id)).toEqual(['refund.failed']);
    expect(await moneyOf(setting, payment)).toEqual({ refunded: 0, available: 1_050 });
    await saveHistory(handle, 'refund-failed');
  });
});

test('a failure without words gets ours', async () => {
  await refunding(setting, scriptedBank(), async ({ handle, id }) => {
    await handle.signal('failed', callback());
    await handle.result();
    expect((await storedRefund(setting, id)).failure).toEqual({
      code: 'refund_refused',
      message: 'The bank refused the refund.',
    });
  });
});

test('the bank refuses the instruction: the refund fails and gives its amount back', async () => {
  const bank = scriptedBank({
    sendRefund: async () => ({ outcome: 'refused', code: 'too_old', message: 'Too old.' }),
  });
  await refunding(setting, bank, async ({ handle, id, payment }) => {
    expect(await handle.result()).toMatchObject({ status: 'failed', version: 2 });
    expect((await storedRefund(setting, id)).failure).toEqual({
      code: 'too_old',
      message: 'Too old.',
    });
    expect(await eventTypes(setting, payment.payment_id, id)).toEqual(['refund.failed']);
    expect(await moneyOf(setting, payment)).toEqual({ refunded: 0, available: 1_050 });
    await saveHistory(handle, 'refund-refused-by-bank');
  });
});

test('no amount is all that remains; operators find it by that amount', async () => {
  await withBank(setting, scriptedBank(), async (connector) => {
    const payment = await settledPayment(setting, connector);
    const part = await openRefund(setting, refundInput(payment, { amount: 300 }));
    const rest = refundInput(payment, { amount: null });
    const { handle } = await openRefund(setting, rest);
    expect((await storedRefund(setting, rest.refund_id)).amount).toBe(750);
    expect(await moneyOf(setting, payment)).toEqual({ refunded: 1_050, available: 0 });
    await part.handle.signal('failed', callback());
    await part.handle.result();
    await handle.signal('settled', callback());
    await handle.result();
    expect((await handle.describe()).typedSearchAttributes.get(AMOUNT)).toBe(750);
    expect(await moneyOf(setting, payment)).toEqual({ refunded: 750, available: 300 });
    await saveHistory(handle, 'refund-whole-remainder');
  });
});

describe('refused at the opening', () => {
  /** The money of the account, taken elsewhere. */
  const drain = (account_id: string, amount: number) =>
    inTransaction(setting.mongo, (session) =>
      setting.stores.ledger.post(
        {
          kind: 'funded',
          resource_id: randomUUID(),
          account_id,
          livemode: false,
          currency: 'EUR',
          at: new Date().toISOString(),
          legs: ENTRY_LINES.funded('main', -amount),
        },
        session,
      ),
    );

  test('a race for the remainder: the loser is told why, nothing is stored, its key is free', async () => {
    const bank = scriptedBank();
    await withBank(setting, bank, async (connector) => {
      const payment = await settledPayment(setting, connector);
      const first = refundInput(payment, { amount: 600 });
      const second = refundInput(payment, { amount: 600 });
      await openRefund(setting, first);
      expect(await refusalOf(openRefund(setting, second))).toEqual({
        code: 'refund_amount_exceeds_balance',
        message: '€4.50 of the payment can still be refunded.',
      });
      const { refund_id } = second;
      const handle = setting.env.client.workflow.getHandle(`refund:${refund_id}`);
      expect(await handle.result()).toMatchObject({ refund_id, status: 'refused' });
      expect((await handle.describe()).typedSearchAttributes.get(STATUS)).toBe('refused');
      expect(await setting.stores.refunds.get(refund_id)).toBeNull();
      expect(await setting.stores.idempotency.forResource(refund_id)).toBeNull();
      expect(await moneyOf(setting, payment)).toEqual({ refunded: 600, available: 450 });
      expect(bank.told).not.toContain(`sendRefund ${refund_id}`);
      await saveHistory(handle, 'refund-refused');
    });
  });

  test('the balance is empty: asked again after the end, the answer is the same', async () => {
    await withBank(setting, scriptedBank(), async (connector) => {
      const payment = await settledPayment(setting, connector);
      await drain(payment.account_id, 1);
      const input = refundInput(payment);
      expect(await refusalOf(openRefund(setting, input))).toMatchObject({
        code: 'insufficient_balance',
      });
      const { env, stores, queues } = setting;
      await env.client.workflow.getHandle(`refund:${input.refund_id}`).result();
      const door = createTemporalClient({
        client: env.client,
        lifecycleQueue: queues.lifecycle,
        stores,
        now: () => new Date(),
      });
      await expect(door.openRefund(input)).rejects.toMatchObject({ code: 'insufficient_balance' });
      expect(await stores.refunds.get(input.refund_id)).toBeNull();
      expect(await postingsOf(setting, input.refund_id)).toEqual([]);
      expect(await moneyOf(setting, payment)).toEqual({ refunded: 0, available: 1_049 });
    });
  });
});
