import { saveHistory } from '../../support/histories';
import { scriptedBank } from '../../support/workflow-setting';
import { useLifecycles } from '../lifecycles';

const { withPayment } = useLifecycles();

const MERCHANT = { by: 'merchant' };

/** A bank that cannot be asked to close the first twelve times. */
function awayBank(outcome: 'closed' | 'already_authorized') {
  let requests = 0;
  return scriptedBank({
    closeSession: async () => {
      requests += 1;
      if (requests <= 12) throw new Error('the bank is away');
      return { outcome };
    },
  });
}

test('a bank that cannot be asked to close is asked again after the cancellation', async () => {
  await withPayment(
    awayBank('already_authorized'),
    async ({ id, handle, act, told, attention }) => {
      expect(await act('cancel', MERCHANT)).toMatchObject({ status: 'cancelled' });
      expect(await handle.result()).toMatchObject({ status: 'cancelled' });
      expect(told.at(-1)).toBe(`voidPayment void:${id}`);
      expect(await attention()).toBe('late_authorization_voided');
      await saveHistory(handle, 'payment-closed-later');
    },
  );
});

test('a session that the bank closes later needs no attention', async () => {
  await withPayment(awayBank('closed'), async ({ handle, act, attention }) => {
    await act('cancel', MERCHANT);
    expect(await handle.result()).toMatchObject({ status: 'cancelled' });
    expect(await attention()).toBeNull();
  });
});

test('a session that cannot be closed is shown, and money that comes meanwhile is sent back', async () => {
  let isAway = true;
  const bank = scriptedBank({
    closeSession: async () => {
      if (isAway) throw new Error('the bank is away');
      return { outcome: 'closed' };
    },
  });
  await withPayment(bank, async ({ handle, act, refusal, signal, becomes, attention }) => {
    await act('cancel', MERCHANT);
    await becomes({ attention: 'session_not_closed' });
    await signal('settled');
    await becomes({ attention: 'late_settlement_reversed' });
    expect(await refusal('cancel', MERCHANT)).toMatchObject({ code: 'cannot_cancel' });
    isAway = false;
    expect(await handle.result()).toMatchObject({ status: 'cancelled' });
    expect(await attention()).toBe('late_settlement_reversed');
    await saveHistory(handle, 'payment-session-not-closed');
  });
});

test('an operator gives up closing at a retired bank, and the run ends', async () => {
  const bank = scriptedBank({ closeSession: () => Promise.reject(new Error('the bank is away')) });
  await withPayment(bank, async ({ handle, act, refusal, becomes, stored, refusalAfterEnd }) => {
    expect(await refusal('give_up_closing')).toMatchObject({
      code: 'wrong_state',
      message: 'The payment is awaiting_customer; it has not ended.',
    });
    await act('cancel', MERCHANT);
    await becomes({ attention: 'session_not_closed' });
    await act('give_up_closing');
    expect(await handle.result()).toMatchObject({ status: 'cancelled' });
    expect(await stored()).toMatchObject({ attention: null, audit: [{ what: 'give_up_closing' }] });
    expect(await refusalAfterEnd('give_up_closing')).toMatchObject({ code: 'wrong_state' });
    await saveHistory(handle, 'payment-closing-given-up');
  });
});

test.each([{ by: 'ops' }, null])('a cancel with %j is refused in words', async (args) => {
  await withPayment(scriptedBank(), async ({ act, refusal }) => {
    expect(await refusal('cancel', args)).toMatchObject({ code: 'invalid_request' });
    await act('cancel', MERCHANT);
  });
});

test('a payment is still cancelled after a cancel request from the Temporal UI', async () => {
  await withPayment(scriptedBank(), async ({ id, handle, act }) => {
    await handle.cancel();
    const state = { payment_id: id, status: 'cancelled', version: 3 };
    expect(await act('cancel', MERCHANT)).toEqual(state);
  });
});

describe('authorised after the end', () => {
  test('of a cancelled payment: voided at the bank, under one instruction id', async () => {
    await withPayment(scriptedBank(), async (payment) => {
      const { id, handle, signalAfterEnd } = payment;
      await payment.act('cancel', MERCHANT);
      await handle.result();
      await signalAfterEnd('authorized');
      expect(await handle.result()).toMatchObject({ status: 'cancelled', version: 3 });
      await saveHistory(handle, 'payment-resumed-void');
      await signalAfterEnd('authorized');
      await handle.result();
      const voids = payment.told.filter((line) => line.startsWith('voidPayment'));
      expect(voids).toEqual([`voidPayment void:${id}`, `voidPayment void:${id}`]);
      expect(await payment.attention()).toBe('late_authorization_voided');
    });
  });

  test('the money moved already: it is sent back at the bank and shown', async () => {
    const settled = { outcome: 'already_settled', amount: 1_050, currency: 'EUR' } as const;
    const bank = scriptedBank({ voidPayment: async () => settled });
    await withPayment(bank, async ({ id, handle, signalAfterEnd, told, stored }) => {
      await handle.result();
      await signalAfterEnd('authorized');
      await handle.result();
      expect(told.slice(-2)).toEqual([`voidPayment void:${id}`, `reversePayment reversal:${id}`]);
      expect(await stored()).toMatchObject({
        status: 'expired',
        attention: 'late_settlement_reversed',
      });
    });
  });
});
