import type { PaymentCallbackName } from '../../../src/domain/callback/callback';
import { createTemporalClient } from '../../../src/temporal/client';
import { saveHistory } from '../../support/histories';
import { terminateIdle } from '../../support/skipping-server';
import { callback, scriptedBank } from '../../support/workflow-setting';
import { useLifecycles } from '../lifecycles';

const { setting, withPayment } = useLifecycles();

// A cancellation waits three seconds for the bank, which a busy machine may exceed: the payment is
// cancelled then.
jest.retryTimes(3, { logErrorsBeforeRetry: true });

const MERCHANT = { by: 'merchant' };

test('a cancellation that meets an authorisation at the bank is refused', async () => {
  const bank = scriptedBank({ closeSession: async () => ({ outcome: 'already_authorized' }) });
  await withPayment(bank, async ({ handle, refusal, stored, endBy }) => {
    expect(await refusal('cancel', MERCHANT)).toMatchObject({ code: 'cannot_cancel' });
    expect((await stored()).status).toBe('authorized');
    await endBy('settled');
    await saveHistory(handle, 'payment-cancel-refused');
  });
});

describe('the customer pays while a bank that can not be asked to close is asked', () => {
  /** Away whenever it is asked, and meanwhile its callback comes. */
  const payingBank = (name: PaymentCallbackName, facts: object = {}) => {
    let requests = 0;
    return scriptedBank({
      closeSession: async ({ payment_id: id }) => {
        requests += 1;
        const { workflow } = setting.env.client;
        if (requests === 1) await workflow.getHandle(`payment:${id}`).signal(name, callback(facts));
        throw new Error('the bank is away');
      },
    });
  };

  test('the cancellation is refused, and the payment settles', async () => {
    await withPayment(payingBank('settled'), async ({ handle, refusal, attention }) => {
      expect(await refusal('cancel', MERCHANT)).toMatchObject({ code: 'cannot_cancel' });
      expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
      expect(await attention()).toBeNull();
      await saveHistory(handle, 'payment-paid-before-cancelled');
    });
  });

  test('the payment does not expire', async () => {
    await withPayment(payingBank('authorized'), async ({ handle, stored, endBy }) => {
      await setting.env.sleep('40m');
      expect(await stored()).toMatchObject({ status: 'authorized', attention: null });
      expect(await endBy('settled')).toMatchObject({ status: 'settled', version: 4 });
      await saveHistory(handle, 'payment-paid-before-expired');
    });
  });

  test('what says another amount is in suspense, and the payment is cancelled once it went back', async () => {
    const bank = payingBank('settled', { amount: 7 });
    await withPayment(bank, async ({ id, handle, act, becomes, stored }) => {
      const { env, queues, stores } = setting;
      const now = () => new Date();
      const deps = { client: env.client, lifecycleQueue: queues.lifecycle, stores, now };
      const cancel = async () => {
        const payment = await stores.payments.get(id);
        if (payment !== null) await createTemporalClient(deps).cancelPayment(payment, 'merchant');
      };
      await cancel();
      await becomes({ attention: 'amount_differs' });
      await cancel();
      expect(await stored()).toMatchObject({ status: 'awaiting_customer' });
      await act('mark_reversed');
      await cancel();
      expect(await stored()).toMatchObject({ status: 'cancelled' });
      await terminateIdle(handle);
    });
  });
});
