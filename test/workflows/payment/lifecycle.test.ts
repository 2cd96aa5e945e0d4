import { randomBytes } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { createPaymentActivities, type PaymentTransition } from '../../../activities/payments';
import { createLogger } from '../../../src/base/log';
import type { PaymentCallbackName } from '../../../src/domain/callback/callback';
import type { PaymentStatus } from '../../../src/domain/payment/payment';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import {
  callback,
  eventTypes,
  openPayment,
  paymentInput,
  recordPaymentKey,
  type ScriptedBank,
  scriptedBank,
  useWorkflowSetting,
  withBank,
} from '../../support/workflow-setting';

const setting = useWorkflowSetting();

/** Opens a payment at `bank` and runs `story` with it. */
function paying(
  bank: ScriptedBank,
  story: (opened: Awaited<ReturnType<typeof openPayment>> & { id: string }) => Promise<void>,
  changes: Parameters<typeof paymentInput>[1] = {},
) {
  return withBank(setting, bank, async (connector) => {
    const input = paymentInput(connector, changes);
    await story({ ...(await openPayment(setting, input)), id: input.payment_id });
  });
}

const stored = async (id: string) => {
  const payment = await setting.stores.payments.get(id);
  if (payment === null) throw new Error('not stored');
  return payment;
};

test('a payment is opened, authorised and settled', async () => {
  await paying(scriptedBank(), async ({ handle, opened, id }) => {
    const opening = { status: 'awaiting_customer', failure: null, created_at: expect.any(String) };
    const state = { payment_id: id, status: 'awaiting_customer', version: 2 };
    expect(opened).toEqual({ ...state, opening });
    await handle.signal('authorized', callback());
    await handle.signal('settled', callback());
    expect(await handle.result()).toEqual({ payment_id: id, status: 'settled', version: 4 });
    expect(await eventTypes(setting, id)).toEqual([
      'payment.awaiting_customer',
      'payment.authorized',
      'payment.settled',
    ]);
    await saveHistory(handle, 'payment-settled');
  });
});

test('nobody pays: it expires by its timer, the bank is asked to close first', async () => {
  const bank = scriptedBank();
  await paying(bank, async ({ handle, id }) => {
    expect(await handle.result()).toMatchObject({ status: 'expired' });
    const payment = await stored(id);
    const lived = Date.parse(payment.updated_at) - Date.parse(payment.created_at);
    expect(lived).toBeGreaterThanOrEqual(1_800_000);
    expect(lived).toBeLessThan(1_860_000);
    expect(payment.failure).toBeNull();
    expect(bank.told).toEqual(['openSession', 'closeSession']);
    await saveHistory(handle, 'payment-expired');
  });
});

test('a cash-machine reference lives for three days', async () => {
  await paying(
    scriptedBank(),
    async ({ handle, id }) => {
      await setting.env.sleep('71h');
      expect((await stored(id)).status).toBe('awaiting_customer');
      expect(await handle.result()).toMatchObject({ status: 'expired' });
    },
    { method: 'multibanco', expires_in_seconds: 259_200 },
  );
});

test('at expiry the customer was faster: it is authorised instead', async () => {
  const bank = scriptedBank({ closeSession: async () => ({ outcome: 'already_authorized' }) });
  await paying(bank, async ({ handle, id }) => {
    await setting.env.sleep('31m');
    expect((await stored(id)).status).toBe('authorized');
    await handle.signal('settled', callback());
    expect(await handle.result()).toMatchObject({ status: 'settled' });
  });
});

test('an authorised payment never expires; overdue, it is shown to operators', async () => {
  await paying(scriptedBank(), async ({ handle, id }) => {
    await handle.signal('authorized', callback());
    await setting.env.sleep('25h');
    expect(await stored(id)).toMatchObject({
      status: 'authorized',
      attention: 'settlement_overdue',
    });
    const act = { operator: 'ada', reason: 'confirmed by telephone' };
    await handle.executeUpdate('snooze', { args: [{ ...act, hours: 2 }] });
    expect((await stored(id)).attention).toBeNull();
    await setting.env.sleep('3h');
    expect((await stored(id)).attention).toBe('settlement_overdue');
    await handle.executeUpdate('mark_settled', { args: [act] });
    expect(await handle.result()).toMatchObject({ status: 'settled' });
    const payment = await stored(id);
    expect(payment.attention).toBeNull();
    expect(payment.audit).toMatchObject([
      { who: 'ada', what: 'snooze', before: 'settlement_overdue', after: 'no attention' },
      { who: 'ada', what: 'mark_settled', before: 'authorized', after: 'settled' },
    ]);
    await saveHistory(handle, 'payment-overdue-marked-settled');
  });
});

test('operator updates are refused in words: wrong state, no reason, unknown shape', async () => {
  await paying(scriptedBank(), async ({ handle }) => {
    const act = { operator: 'ada', reason: 'to see' };
    const refusal = async (update: string, act: unknown) => {
      const sent = handle.executeUpdate<unknown, [unknown]>(update, { args: [act] });
      const failure = await sent.catch((e: Error) => e.cause);
      return failure instanceof Error ? failure.message : 'accepted';
    };
    expect(await refusal('snooze', { ...act, hours: 1 })).toMatch(/Only an authorised payment/);
    expect(await refusal('mark_failed', { operator: 'ada' })).toMatch(/reason/);
    expect(await refusal('mark_settled', null)).toMatch(/must be an object/);
    await handle.executeUpdate('mark_failed', { args: [act] });
    expect(await handle.result()).toMatchObject({ status: 'failed' });
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
  await paying(bank, async ({ handle, opened, id }) => {
    expect(opened).toMatchObject({ status: 'created', version: 1 });
    expect(await eventTypes(setting, id)).toEqual([]);
    isAway = false;
    await setting.env.sleep('5m');
    expect(await stored(id)).toMatchObject({
      status: 'awaiting_customer',
      session_url: 'https://bank.example',
    });
    expect(await eventTypes(setting, id)).toEqual(['payment.awaiting_customer']);
    await handle.signal('failed', callback({ code: 'declined_by_bank', reason: 'No.' }));
    expect(await handle.result()).toMatchObject({ status: 'failed' });
    expect((await stored(id)).failure).toEqual({ code: 'declined_by_bank', message: 'No.' });
    await saveHistory(handle, 'payment-slow-bank-failed');
  });
});

test('the bank declines to open: the payment fails at once, with its event', async () => {
  const bank = scriptedBank({
    openSession: async () => ({ outcome: 'declined', code: 'closed', message: 'Not today.' }),
  });
  await paying(bank, async ({ handle, opened, id }) => {
    expect(opened).toMatchObject({ status: 'failed', version: 2 });
    expect(await handle.result()).toMatchObject({ status: 'failed' });
    expect(await eventTypes(setting, id)).toEqual(['payment.failed']);
    expect((await stored(id)).failure).toEqual({ code: 'closed', message: 'Not today.' });
  });
});

test('the same callback_id counts once; an out-of-order one is kept as unapplied', async () => {
  await paying(scriptedBank(), async ({ handle, id }) => {
    const settled = callback();
    const late = callback();
    await handle.signal('settled', settled);
    await handle.signal('settled', settled);
    await handle.signal('authorized', late);
    expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
    expect(await eventTypes(setting, id)).toHaveLength(3);
    const kept = await setting.stores.callbacks.forResource(id);
    expect(kept).toMatchObject([
      { name: 'authorized', unapplied: expect.stringMatching(/settled already/) },
    ]);
    await saveHistory(handle, 'payment-out-of-order');
  });
});

test('a malformed callback never throws: it is shown, and the payment goes on', async () => {
  await paying(scriptedBank(), async ({ handle, id }) => {
    await handle.signal('settled', { callback_id: 7 });
    await handle.signal('settled');
    await handle.executeUpdate('cancel', { args: [{ by: 'customer' }] });
    expect(await handle.result()).toMatchObject({ status: 'cancelled' });
    expect(await stored(id)).toMatchObject({
      attention: 'malformed_callback',
      failure: { code: 'cancelled_by_customer' },
    });
  });
});

test('a cancellation that meets an authorisation at the bank is refused', async () => {
  const bank = scriptedBank({ closeSession: async () => ({ outcome: 'already_authorized' }) });
  await paying(bank, async ({ handle, id }) => {
    const refused = handle.executeUpdate('cancel', { args: [{ by: 'merchant' }] });
    await expect(refused).rejects.toMatchObject({ cause: { type: 'cannot_cancel' } });
    expect((await stored(id)).status).toBe('authorized');
    await handle.signal('settled', callback());
    await handle.result();
    await saveHistory(handle, 'payment-cancel-refused');
  });
});

test('a bank that cannot be asked to close is asked again after the cancellation', async () => {
  let asked = 0;
  const bank = scriptedBank({
    closeSession: async () => {
      asked += 1;
      if (asked <= 12) throw new Error('the bank is away');
      return { outcome: 'already_authorized' };
    },
  });
  await paying(bank, async ({ handle, id }) => {
    const cancelled = await handle.executeUpdate<unknown, [unknown]>('cancel', {
      args: [{ by: 'merchant' }],
    });
    expect(cancelled).toMatchObject({ status: 'cancelled' });
    expect(await handle.result()).toMatchObject({ status: 'cancelled' });
    expect(bank.told.at(-1)).toBe(`voidPayment void:${id}`);
    expect((await stored(id)).attention).toBe('late_authorization_voided');
    await saveHistory(handle, 'payment-closed-later');
  });
});

test('a session that cannot be closed is marked, and money that comes meanwhile is sent back', async () => {
  let isAway = true;
  const bank = scriptedBank({
    closeSession: async () => {
      if (isAway) throw new Error('the bank is away');
      return { outcome: 'closed' };
    },
  });
  await paying(bank, async ({ handle, id }) => {
    const args: [unknown] = [{ by: 'merchant' }];
    await handle.executeUpdate<unknown, [unknown]>('cancel', { args });
    await eventually('the mark', async () => {
      return (await stored(id)).attention === 'session_not_closed';
    });
    await handle.signal('settled', callback());
    await eventually('the money to be sent back', async () => {
      return (await stored(id)).attention === 'late_settlement_reversed';
    });
    const again = handle.executeUpdate<unknown, [unknown]>('cancel', { args });
    await expect(again).rejects.toMatchObject({ cause: { type: 'cannot_cancel' } });
    isAway = false;
    expect(await handle.result()).toMatchObject({ status: 'cancelled' });
    expect((await stored(id)).attention).toBe('late_settlement_reversed');
    await saveHistory(handle, 'payment-session-not-closed');
  });
});

describe('the customer pays while a bank that can not be asked to close is asked', () => {
  /** Away whenever it is asked, and meanwhile its callback comes. */
  const payingBank = (name: PaymentCallbackName, more: object = {}) => {
    let asked = 0;
    return scriptedBank({
      closeSession: async ({ payment_id: id }) => {
        asked += 1;
        const { workflow } = setting.env.client;
        if (asked === 1) await workflow.getHandle(`payment:${id}`).signal(name, callback(more));
        throw new Error('the bank is away');
      },
    });
  };
  const cancelled = (handle: WorkflowHandle) =>
    handle.executeUpdate<unknown, [unknown]>('cancel', { args: [{ by: 'merchant' }] });

  test('the cancellation is refused, and the payment settles', async () => {
    await paying(payingBank('settled'), async ({ handle, id }) => {
      await expect(cancelled(handle)).rejects.toMatchObject({ cause: { type: 'cannot_cancel' } });
      expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
      expect((await stored(id)).attention).toBeNull();
      await saveHistory(handle, 'payment-paid-before-cancelled');
    });
  });

  test('the payment does not expire', async () => {
    await paying(payingBank('authorized'), async ({ handle, id }) => {
      await setting.env.sleep('40m');
      expect(await stored(id)).toMatchObject({ status: 'authorized', attention: null });
      await handle.signal('settled', callback());
      expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
      await saveHistory(handle, 'payment-paid-before-expired');
    });
  });

  test('what says another amount moves nothing, and the payment is cancelled', async () => {
    await paying(payingBank('settled', { amount: 7 }), async ({ handle, id }) => {
      expect(await cancelled(handle)).toMatchObject({ status: 'cancelled' });
      await eventually('the mark', async () => {
        return (await stored(id)).attention === 'session_not_closed';
      });
      await handle.terminate('the bank never answers');
    });
  });
});

test('a session that the bank closes later leaves no mark', async () => {
  let asked = 0;
  const bank = scriptedBank({
    closeSession: async () => {
      asked += 1;
      if (asked <= 12) throw new Error('the bank is away');
      return { outcome: 'closed' };
    },
  });
  await paying(bank, async ({ handle, id }) => {
    const args: [unknown] = [{ by: 'merchant' }];
    await handle.executeUpdate<unknown, [unknown]>('cancel', { args });
    expect(await handle.result()).toMatchObject({ status: 'cancelled' });
    expect((await stored(id)).attention).toBeNull();
  });
});

test('a cancel from nobody is refused in words', async () => {
  await paying(scriptedBank(), async ({ handle }) => {
    for (const args of [[{ by: 'ops' }], [null]] as const) {
      const refused = handle.executeUpdate<unknown, [unknown]>('cancel', { args: [...args] });
      await expect(refused).rejects.toMatchObject({ cause: { type: 'invalid_request' } });
    }
    await handle.executeUpdate('cancel', { args: [{ by: 'merchant' }] });
  });
});

test('a cancel request from the Temporal UI ends nothing, and updates are still answered', async () => {
  await paying(scriptedBank(), async ({ handle, id }) => {
    await handle.cancel();
    const open = await handle.executeUpdate('open');
    expect(open).toMatchObject({ payment_id: id, status: 'awaiting_customer', version: 2 });
    await handle.signal('authorized', callback());
    await eventually('the authorisation', async () => (await stored(id)).status === 'authorized');
    const args: [object] = [{ operator: 'ada', reason: 'asked the bank', hours: 1 }];
    const snoozed = await handle.executeUpdate<unknown, [object]>('snooze', { args });
    expect(snoozed).toEqual({ payment_id: id, status: 'authorized', version: 3 });
    await handle.signal('settled', callback());
    expect(await handle.result()).toMatchObject({ status: 'settled' });
    await saveHistory(handle, 'payment-ui-cancel');
  });
});

test('a mark that says more than lateness stays, and lateness is told once', async () => {
  await paying(scriptedBank(), async ({ handle, id }) => {
    await handle.signal('authorized', callback());
    await setting.env.sleep('25h');
    expect((await stored(id)).attention).toBe('settlement_overdue');
    await handle.signal('settled', { occurred_at: 'yesterday' });
    await setting.env.sleep('1h');
    expect((await stored(id)).attention).toBe('malformed_callback');
    const events = (await handle.fetchHistory()).events?.length;
    await setting.env.sleep('24h');
    expect((await stored(id)).attention).toBe('malformed_callback');
    expect((await handle.fetchHistory()).events).toHaveLength(events ?? 0);
    await handle.signal('settled', callback());
    expect(await handle.result()).toMatchObject({ status: 'settled' });
  });
});

test('a payment is still cancelled after a cancel request from the Temporal UI', async () => {
  await paying(scriptedBank(), async ({ handle, id }) => {
    await handle.cancel();
    const cancelled = await handle.executeUpdate('cancel', { args: [{ by: 'merchant' }] });
    expect(cancelled).toEqual({ payment_id: id, status: 'cancelled', version: 3 });
  });
});

test('a payment that was opened before, while the bank was slow, gets its session', async () => {
  await withBank(setting, scriptedBank(), async (connector) => {
    const input = paymentInput(connector);
    await recordPaymentKey(setting, input);
    const { payment_id: id, expires_in_seconds, ...facts } = input;
    const created_at = new Date().toISOString();
    const before = { ...facts, payment_id: id, created_at, expires_at: created_at, session: null };
    await activitiesBehind().openPayment(before);
    const { handle, opened } = await openPayment(setting, input);
    expect(opened).toMatchObject({ status: 'created', version: 1 });
    await eventually('the session', async () => (await stored(id)).session_url !== null);
    await handle.signal('settled', callback());
    expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
    expect(await eventTypes(setting, id)).toHaveLength(3);
    await saveHistory(handle, 'payment-opened-before');
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
  /** Moves the document behind the workflow's back. */
  const moveBehind = async (
    id: string,
    to: PaymentStatus[],
    from: PaymentTransition['from'] = { status: 'awaiting_customer', version: 2 },
  ) => {
    await activitiesBehind().recordPaymentMove({
      resource_id: id,
      account_id: `acct_${id}`,
      livemode: false,
      from,
      to,
      at: new Date().toISOString(),
      attention: null,
      change: {},
      request_id: 'before the restore',
    });
  };

  test('by the first of two moves: the rest follows, each with one event', async () => {
    await paying(scriptedBank(), async ({ handle, id }) => {
      await moveBehind(id, ['authorized']);
      await handle.signal('settled', callback());
      expect(await handle.result()).toEqual({ payment_id: id, status: 'settled', version: 4 });
      // In any order: the move from behind has the time of another clock.
      expect((await eventTypes(setting, id)).toSorted()).toEqual([
        'payment.authorized',
        'payment.awaiting_customer',
        'payment.settled',
      ]);
    });
  });

  test('in another way: the callback is decided on the state that the record says', async () => {
    const bank = scriptedBank();
    await paying(bank, async ({ handle, id }) => {
      await moveBehind(id, ['expired']);
      await handle.signal('settled', callback());
      expect(await handle.result()).toEqual({ payment_id: id, status: 'expired', version: 3 });
      expect(bank.told.at(-1)).toBe(`reversePayment reversal:${id}`);
      expect((await stored(id)).attention).toBe('late_settlement_reversed');
      await saveHistory(handle, 'payment-record-ahead');
    });
  });

  test('a cancel is answered by the state that the record says', async () => {
    await paying(scriptedBank(), async ({ handle, id }) => {
      await moveBehind(id, ['authorized']);
      const args: [unknown] = [{ by: 'merchant' }];
      const refused = handle.executeUpdate<unknown, [unknown]>('cancel', { args });
      await expect(refused).rejects.toMatchObject({ cause: { type: 'cannot_cancel' } });
      await handle.signal('settled', callback());
      expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
    });
  });

  test('an act that changes the mark only is refused in the words of the record', async () => {
    await paying(scriptedBank(), async ({ handle, id }) => {
      await handle.signal('authorized', callback());
      await eventually('the authorisation', async () => (await stored(id)).status === 'authorized');
      await moveBehind(id, ['settled'], { status: 'authorized', version: 3 });
      const args: [object] = [{ operator: 'ada', reason: 'asked the bank', hours: 1 }];
      const refused = handle.executeUpdate<unknown, [object]>('snooze', { args });
      await expect(refused).rejects.toMatchObject({ cause: { type: 'wrong_state' } });
      expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
      expect((await stored(id)).audit).toEqual([]);
      await saveHistory(handle, 'payment-act-record-ahead');
    });
  });
});

describe('a callback after the end', () => {
  const reopen = (id: string, signal: string) =>
    setting.env.client.workflow.signalWithStart('payment', {
      workflowId: `payment:${id}`,
      taskQueue: setting.queues.lifecycle,
      signal,
      signalArgs: [callback()],
      args: [{ payment_id: id, resume: true, request_id: 'late' }],
    });

  test('authorised after the cancellation: voided at the bank, under one instruction id', async () => {
    const bank = scriptedBank();
    await paying(bank, async ({ handle, id }) => {
      await handle.executeUpdate('cancel', { args: [{ by: 'merchant' }] });
      await handle.result();
      const late = await reopen(id, 'authorized');
      expect(await late.result()).toMatchObject({ status: 'cancelled', version: 3 });
      await (await reopen(id, 'authorized')).result();
      const told = bank.told.filter((line) => line.startsWith('voidPayment'));
      expect(told).toEqual([`voidPayment void:${id}`, `voidPayment void:${id}`]);
      expect((await stored(id)).attention).toBe('late_authorization_voided');
      await saveHistory(late, 'payment-resumed-void');
    });
  });

  test('the money moved already: it is sent back at the bank and shown', async () => {
    const bank = scriptedBank({ voidPayment: async () => ({ outcome: 'already_settled' }) });
    await paying(bank, async ({ handle, id }) => {
      await handle.result();
      await (await reopen(id, 'authorized')).result();
      expect(bank.told.slice(-2)).toEqual([
        `voidPayment void:${id}`,
        `reversePayment reversal:${id}`,
      ]);
      expect(await stored(id)).toMatchObject({
        status: 'expired',
        attention: 'late_settlement_reversed',
      });
    });
  });

  test('failed after settled: nothing is downgraded, operators see it', async () => {
    await paying(scriptedBank(), async ({ handle, id }) => {
      await handle.signal('settled', callback());
      await handle.result();
      await (await reopen(id, 'failed')).result();
      expect(await stored(id)).toMatchObject({
        status: 'settled',
        attention: 'failed_after_settled',
      });
    });
  });
});
