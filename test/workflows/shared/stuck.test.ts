import type { WorkflowHandle } from '@temporalio/client';
import { SEARCH_KEYS } from '../../../src/domain/search-attributes';
import type { Stores } from '../../../src/store';
import { messages } from '../../../workflows/payment/messages';
import {
  open,
  paymentInput,
  recordPaymentKey,
  scriptedBank,
  withBank,
} from '../../support/workflow-setting';
import { trackPayment, useLifecycles } from '../lifecycles';

const { setting } = useLifecycles();

const readAttention = async (handle: WorkflowHandle) =>
  (await handle.describe()).typedSearchAttributes.get(SEARCH_KEYS.attention) ?? null;

/** Stores that take no transition of an open payment while they are broken. */
function breakable(database: { isBroken: boolean }): Stores {
  const { payments } = setting.stores;
  const update: Stores['payments']['update'] = async (...args) => {
    if (database.isBroken) throw new Error('The database is away.');
    return await payments.update(...args);
  };
  return { ...setting.stores, payments: { ...payments, update } };
}

test('a write that fails for minutes is shown without the database, and the reason ends with it', async () => {
  const queue = `${setting.queues.lifecycle}-broken`;
  const database = { isBroken: false };
  const stop = await setting.startWorkers(queue, breakable(database));
  const story = withBank(setting, scriptedBank(), async (connector) => {
    const input = paymentInput(connector);
    await recordPaymentKey(setting, input);
    const { handle } = await open(
      setting,
      'payment',
      input.payment_id,
      input,
      messages.open,
      queue,
    );
    const { becomes, shows, signal } = trackPayment(setting, input, handle);
    await becomes({ status: 'awaiting_customer' });
    database.isBroken = true;
    await signal('authorized');
    await setting.env.sleep('3m');
    expect(await readAttention(handle)).toBeNull();
    await setting.env.sleep('9m');
    expect(await readAttention(handle)).toBe('record_stuck');
    await shows('`recordPaymentMove` fails again and again');
    database.isBroken = false;
    await setting.env.sleep('1m');
    await becomes({ status: 'authorized', attention: null });
    await shows('**authorized** since');
    expect(await readAttention(handle)).toBeNull();
    await signal('settled');
    expect(await handle.result()).toMatchObject({ status: 'settled' });
  });
  await story.finally(stop);
});

test('a late or foreign report that a step is stuck changes nothing', async () => {
  await withBank(setting, scriptedBank(), async (connector) => {
    const input = paymentInput(connector);
    await recordPaymentKey(setting, input);
    const { handle } = await open(setting, 'payment', input.payment_id, input, messages.open);
    const { becomes, signal } = trackPayment(setting, input, handle);
    await becomes({ status: 'awaiting_customer' });
    await handle.signal('step_stuck', 'recordPaymentMove');
    await signal('authorized');
    await becomes({ status: 'authorized' });
    expect(await readAttention(handle)).toBeNull();
    await signal('settled');
    expect(await handle.result()).toMatchObject({ status: 'settled' });
  });
});
