import { defineSearchAttributeKey } from '@temporalio/common';
import { createTemporalClient } from '../../../src/temporal/client';
import { saveHistory } from '../../support/histories';
import {
  callback,
  eventTypes,
  scriptedBank,
  useWorkflowSetting,
  withBank,
} from '../../support/workflow-setting';
import {
  ACT,
  answered,
  fund,
  handleOf,
  MONEY,
  moneyOf,
  openPayout,
  payingOut,
  payoutInput,
  postingsOf,
  refusalOf,
  storedPayout,
  unawaited,
} from './setting';

const setting = useWorkflowSetting();

const STATUS = defineSearchAttributeKey('ServiceStatus', 'KEYWORD');

const submitting = () =>
  scriptedBank({ sendPayout: async () => ({ outcome: 'submitted', bank_reference: 'queue-1' }) });

test('a payout is accepted with its money reserved, sent by the bank and completed', async () => {
  const bank = scriptedBank();
  await payingOut(setting, bank, async ({ handle, opened, id, input }) => {
    expect(opened).toEqual({ payout_id: id, status: 'sent', version: 3 });
    expect(await moneyOf(setting, input)).toEqual(MONEY.captured);
    await handle.signal('completed', callback());
    expect(await handle.result()).toEqual({ payout_id: id, status: 'completed', version: 4 });
    expect(await storedPayout(setting, id)).toMatchObject({
      reference: 'order-7',
      metadata: '{}',
      recipient_id: input.recipient_id,
      fee: 25,
      bank_reference: `ref-${id}`,
      failure: null,
      returned: null,
      attention: null,
      sent_at: expect.any(String),
      completed_at: expect.any(String),
    });
    expect(await eventTypes(setting, id)).toEqual([
      'payout.submitted',
      'payout.sent',
      'payout.completed',
    ]);
    expect(await postingsOf(setting, id)).toEqual(['payout_reserved', 'payout_captured']);
    expect(await moneyOf(setting, input)).toEqual(MONEY.captured);
    expect(bank.told).toEqual([`sendPayout ${id}`]);
    expect((await handle.describe()).typedSearchAttributes.get(STATUS)).toBe('completed');
    await saveHistory(handle, 'payout-completed');
  });
});

test('a bank that only queues it: the API is answered after 5 s, each step is recorded', async () => {
  await payingOut(setting, submitting(), async ({ handle, opened, id, input }) => {
    expect(opened).toEqual({ payout_id: id, status: 'submitted', version: 2 });
    expect(await moneyOf(setting, input)).toEqual(MONEY.reserved);
    await handle.signal('sent', callback());
    await handle.signal('completed', callback({ bank_reference: 'from-callback' }));
    expect(await handle.result()).toMatchObject({ status: 'completed', version: 4 });
    expect((await storedPayout(setting, id)).bank_reference).toBe('from-callback');
    await saveHistory(handle, 'payout-queued-first');
  });
});

test('a callback that jumps: no state is skipped in the record', async () => {
  await unawaited(setting, submitting(), async ({ handle, id, input }) => {
    await answered(handle, 'submitted');
    await handle.signal('completed', callback());
    expect(await handle.result()).toEqual({ payout_id: id, status: 'completed', version: 4 });
    expect(await eventTypes(setting, id)).toEqual([
      'payout.submitted',
      'payout.sent',
      'payout.completed',
    ]);
    const { sent_at, completed_at, bank_reference } = await storedPayout(setting, id);
    expect(sent_at).toBe(completed_at);
    expect(bank_reference).toBe('queue-1');
    expect(await moneyOf(setting, input)).toEqual(MONEY.captured);
    await saveHistory(handle, 'payout-jumped');
  });
});

test.each([
  [
    { code: 'AC01', reason: 'No such account.' },
    { code: 'AC01', message: 'No such account.' },
  ],
  [{}, { code: 'payout_rejected', message: 'The bank rejected the payout.' }],
])('failed before it was sent, with %j: amount and fee are given back', async (words, failure) => {
  await unawaited(setting, submitting(), async ({ handle, id, input }) => {
    await answered(handle, 'submitted');
    expect(await moneyOf(setting, input)).toEqual(MONEY.reserved);
    await handle.signal('failed', callback(words));
    expect(await handle.result()).toEqual({ payout_id: id, status: 'failed', version: 3 });
    const stored = await storedPayout(setting, id);
    expect(stored).toMatchObject({ failure, returned: null, sent_at: null, completed_at: null });
    expect(await eventTypes(setting, id)).toEqual(['payout.submitted', 'payout.failed']);
    expect(await postingsOf(setting, id)).toEqual(['payout_reserved', 'payout_released']);
    expect(await moneyOf(setting, input)).toEqual(MONEY.untouched);
    if ('code' in words) await saveHistory(handle, 'payout-failed-before-sent');
  });
});

test('failed after it was sent: the money never left, amount and fee are given back', async () => {
  await payingOut(setting, scriptedBank(), async ({ handle, id, input }) => {
    expect(await moneyOf(setting, input)).toEqual(MONEY.captured);
    await handle.signal('failed', callback());
    expect(await handle.result()).toMatchObject({ status: 'failed', version: 4 });
    expect(await postingsOf(setting, id)).toEqual([
      'payout_reserved',
      'payout_captured',
      'payout_reversed',
    ]);
    expect(await moneyOf(setting, input)).toEqual(MONEY.untouched);
    await saveHistory(handle, 'payout-failed-after-sent');
  });
});

test('the bank refuses the instruction: the payout fails, the API is told so', async () => {
  const bank = scriptedBank({
    sendPayout: async () => ({ outcome: 'refused', code: 'blocked', message: 'Blocked.' }),
  });
  await payingOut(setting, bank, async ({ handle, opened, id, input }) => {
    expect(opened).toEqual({ payout_id: id, status: 'failed', version: 2 });
    const failure = { code: 'blocked', message: 'Blocked.' };
    expect(await storedPayout(setting, id)).toMatchObject({ failure });
    expect(await eventTypes(setting, id)).toEqual(['payout.failed']);
    expect(await moneyOf(setting, input)).toEqual(MONEY.untouched);
    await handle.result();
    await saveHistory(handle, 'payout-refused-by-bank');
  });
});

test('without a fee, only the amount moves', async () => {
  const story = async ({ input }: { input: ReturnType<typeof payoutInput> }) => {
    const money = { available: 9_000, reserved: 0, fees: 0, atBank: 1_000 };
    expect(await moneyOf(setting, input)).toEqual(money);
  };
  await payingOut(setting, scriptedBank(), story, { fee: 0 });
});

test('a cancel request from the Temporal UI ends nothing, and updates are still answered', async () => {
  await unawaited(setting, submitting(), async ({ handle, id }) => {
    const opening = handle.executeUpdate('open');
    await answered(handle, 'submitted');
    await handle.cancel();
    const marked = await handle.executeUpdate<unknown, [object]>('mark_completed', { args: [ACT] });
    expect(marked).toEqual({ payout_id: id, status: 'completed', version: 4 });
    expect(await opening).toEqual({ payout_id: id, status: 'completed', version: 4 });
    expect(await handle.result()).toMatchObject({ status: 'completed' });
    await saveHistory(handle, 'payout-ui-cancel');
  });
});

describe('refused for lack of money', () => {
  test.each([
    ['insufficient_balance', 'main', 1_024],
    ['insufficient_balance', 'main', 0],
    ['balance_account_not_found', 'marketing', 10_000],
  ])('%s: on %s, with %i on main; its key is free', async (code, balance_account, amount) => {
    const bank = scriptedBank();
    await withBank(setting, bank, async (connector) => {
      const input = payoutInput(connector, { balance_account });
      if (amount > 0) await fund(setting, input, amount);
      const { payout_id } = input;
      expect(await refusalOf(openPayout(setting, input))).toMatchObject({ code });
      const handle = handleOf(setting, payout_id);
      expect(await handle.result()).toMatchObject({ payout_id, status: 'refused', code });
      expect((await handle.describe()).typedSearchAttributes.get(STATUS)).toBe('refused');
      const { stores } = setting;
      expect(await stores.payouts.get(payout_id)).toBeNull();
      expect(await stores.idempotency.forResource(payout_id)).toBeNull();
      expect(await postingsOf(setting, payout_id)).toEqual([]);
      expect((await moneyOf(setting, input)).available).toBe(amount);
      expect(bank.told).toEqual([]);
      // Asked again after the end, the answer is the same.
      const { env, queues } = setting;
      const door = createTemporalClient({
        client: env.client,
        lifecycleQueue: queues.lifecycle,
        stores,
        now: () => new Date(),
      });
      await expect(door.openPayout(input)).rejects.toMatchObject({ code });
      if (amount === 1_024) await saveHistory(handle, 'payout-insufficient-balance');
    });
  });
});
