import { defineSearchAttributeKey } from '@temporalio/common';
import { createTemporalClient } from '../../../src/temporal/client';
import { saveHistory } from '../../support/histories';
import {
  callback,
  fund,
  openPayout,
  payoutInput,
  scriptedBank,
  withBank,
} from '../../support/workflow-setting';
import {
  MONEY,
  refusalOf,
  submittingBank,
  trackPayout,
  unlessUnavailable,
  useLifecycles,
} from '../lifecycles';

const { setting, withPayout, withUnsentPayout, withStatus } = useLifecycles();

const STATUS = defineSearchAttributeKey('ServiceStatus', 'KEYWORD');
const ALL_EVENTS = ['payout.submitted', 'payout.sent', 'payout.completed'];

test('a payout is accepted with its money reserved, sent by the bank and completed', async () => {
  await withPayout(scriptedBank(), async (payout) => {
    const { id, handle, opened, input, money } = payout;
    expect(opened).toEqual({ payout_id: id, status: 'sent', version: 3 });
    expect(await money()).toEqual(MONEY.captured);
    const result = await payout.endBy('completed');
    expect(result).toEqual({ payout_id: id, status: 'completed', version: 4 });
    expect(await payout.stored()).toMatchObject({
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
    expect(await payout.eventTypes()).toEqual(ALL_EVENTS);
    expect(await payout.entryKinds()).toEqual(['payout_reserved', 'payout_captured']);
    expect(await money()).toEqual(MONEY.captured);
    expect(payout.told).toEqual([`sendPayout ${id}`]);
    expect((await handle.describe()).typedSearchAttributes.get(STATUS)).toBe('completed');
    await saveHistory(handle, 'payout-completed');
  });
});

test('a bank that only queues it: the API is answered after 5 s, each step is recorded', async () => {
  await withPayout(
    submittingBank(),
    async ({ id, handle, opened, signal, endBy, stored, money }) => {
      expect(opened).toEqual({ payout_id: id, status: 'submitted', version: 2 });
      expect(await money()).toEqual(MONEY.reserved);
      await signal('sent');
      const facts = { bank_reference: 'from-callback' };
      expect(await endBy('completed', facts)).toMatchObject({ status: 'completed', version: 4 });
      expect(await stored()).toMatchObject(facts);
      await saveHistory(handle, 'payout-queued-first');
    },
  );
});

test('a callback that jumps: no state is skipped in the record', async () => {
  await withStatus.submitted(async ({ id, handle, endBy, eventTypes, stored, money }) => {
    const state = { payout_id: id, status: 'completed', version: 4 };
    expect(await endBy('completed')).toEqual(state);
    expect(await eventTypes()).toEqual(ALL_EVENTS);
    const { sent_at, completed_at, bank_reference } = await stored();
    expect(sent_at).toBe(completed_at);
    expect(bank_reference).toBe('queue-1');
    expect(await money()).toEqual(MONEY.captured);
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
  await withStatus.submitted(async (payout) => {
    const { id, handle, money } = payout;
    expect(await money()).toEqual(MONEY.reserved);
    const result = await payout.endBy('failed', words);
    expect(result).toEqual({ payout_id: id, status: 'failed', version: 3 });
    const nothing = { returned: null, sent_at: null, completed_at: null };
    expect(await payout.stored()).toMatchObject({ failure, ...nothing });
    expect(await payout.eventTypes()).toEqual(['payout.submitted', 'payout.failed']);
    expect(await payout.entryKinds()).toEqual(['payout_reserved', 'payout_released']);
    expect(await money()).toEqual(MONEY.untouched);
    if ('code' in words) await saveHistory(handle, 'payout-failed-before-sent');
  });
});

test('failed after it was sent: the money never left, amount and fee are given back', async () => {
  await withStatus.sent(async ({ handle, endBy, entryKinds, money }) => {
    expect(await money()).toEqual(MONEY.captured);
    expect(await endBy('failed')).toMatchObject({ status: 'failed', version: 4 });
    const kinds = ['payout_reserved', 'payout_captured', 'payout_reversed'];
    expect(await entryKinds()).toEqual(kinds);
    expect(await money()).toEqual(MONEY.untouched);
    await saveHistory(handle, 'payout-failed-after-sent');
  });
});

test('the bank refuses the instruction: the payout fails, the API is told so', async () => {
  const failure = { code: 'blocked', message: 'Blocked.' };
  const bank = scriptedBank({ sendPayout: async () => ({ outcome: 'refused', ...failure }) });
  await withPayout(bank, async ({ id, handle, opened, stored, eventTypes, money }) => {
    expect(opened).toEqual({ payout_id: id, status: 'failed', version: 2 });
    expect(await stored()).toMatchObject({ failure });
    expect(await eventTypes()).toEqual(['payout.failed']);
    expect(await money()).toEqual(MONEY.untouched);
    await handle.result();
    await saveHistory(handle, 'payout-refused-by-bank');
  });
});

test('without a fee, only the amount moves', async () => {
  const moved = { available: 9_000, reserved: 0, fees: 0, atBank: 1_000 };
  await withPayout(scriptedBank(), async ({ money }) => expect(await money()).toEqual(moved), {
    fee: 0,
  });
});

test('a cancel request from the Temporal UI ends nothing, and updates are still answered', async () => {
  await withUnsentPayout(
    submittingBank(),
    async ({ id, handle, shows, act }) => {
      const opening = handle.executeUpdate('open');
      await shows('instruction at the bank: submitted');
      await handle.cancel();
      const state = { payout_id: id, status: 'completed', version: 4 };
      expect(await act('mark_completed')).toEqual(state);
      expect(await opening).toEqual(state);
      expect(await handle.result()).toMatchObject({ status: 'completed' });
      await saveHistory(handle, 'payout-ui-cancel');
    },
    // Otherwise `open` answers 5 s after the start, before a busy machine has done all this.
    { caller_waits: true },
  );
});

test('duplicates: the same callback_id counts once, the same news is kept and moves nothing', async () => {
  await withStatus.sent(async (payout) => {
    const { id, handle, signal } = payout;
    const sent = callback();
    await handle.signal('sent', sent);
    await handle.signal('sent', sent);
    await signal('submitted');
    await payout.endBy('completed');
    await payout.signalAfterEnd('completed');
    expect(await handle.result()).toEqual({ payout_id: id, status: 'completed', version: 4 });
    expect((await payout.unapplied()).sort()).toEqual([
      'completed: the payout has passed this state already',
      'sent: the payout has passed this state already',
      'submitted: the payout has passed this state already',
    ]);
    expect(await payout.attention()).toBeNull();
    expect(await payout.eventTypes()).toHaveLength(3);
    expect(await payout.money()).toEqual(MONEY.captured);
  });
});

const PAYOUTS_MAX = 20;

/** Opens a payout, and another where a busy machine has not looked at it in its 5 s. */
async function openInTime(connector: string, balance_account: string, amount: number) {
  for (let left = PAYOUTS_MAX; ; left -= 1) {
    const input = payoutInput(connector, { balance_account });
    if (amount > 0) await fund(setting, input, amount);
    const refusal = await refusalOf(openPayout(setting, input));
    if (refusal?.code !== 'temporarily_unavailable' || left === 1) return { input, refusal };
    // What was not known in time is refused as well.
    const result = await trackPayout(setting, input).handle.result();
    expect(result).toMatchObject({ status: 'refused' });
  }
}

test.each([
  ['insufficient_balance', 'main', 1_024],
  ['insufficient_balance', 'main', 0],
  ['balance_account_not_found', 'marketing', 10_000],
])('refused with %s: on %s, with %i on main; its key is free', async (code, account, amount) => {
  const bank = scriptedBank();
  await withBank(setting, bank, async (connector) => {
    const { input, refusal } = await openInTime(connector, account, amount);
    const { payout_id } = input;
    expect(refusal).toMatchObject({ code });
    const { handle, entryKinds, money } = trackPayout(setting, input);
    expect(await handle.result()).toMatchObject({ payout_id, status: 'refused', code });
    expect((await handle.describe()).typedSearchAttributes.get(STATUS)).toBe('refused');
    const { stores, env, queues } = setting;
    expect(await stores.payouts.get(payout_id)).toBeNull();
    expect(await stores.idempotency.forResource(payout_id)).toBeNull();
    expect(await entryKinds()).toEqual([]);
    expect((await money()).available).toBe(amount);
    expect(bank.told).toEqual([]);
    // Asked again after the end, the answer is the same.
    const client = createTemporalClient({
      client: env.client,
      lifecycleQueue: queues.lifecycle,
      stores,
      now: () => new Date(),
    });
    const again = unlessUnavailable(() => client.openPayout(input));
    await expect(again).rejects.toMatchObject({ code });
    if (amount === 1_024) await saveHistory(handle, 'payout-insufficient-balance');
  });
});
