import type { Stores } from '../../../src/store';
import { messages } from '../../../workflows/payment/messages';
import {
  callback,
  open,
  paymentInput,
  recordPaymentKey,
  scriptedBank,
  withBank,
} from '../../support/workflow-setting';
import { trackPayment, useLifecycles } from '../lifecycles';

const { setting } = useLifecycles();

/** Stores in which another write always comes before that of an attention reason. */
function overtaken(): Stores {
  const { payments } = setting.stores;
  const setAttention: Stores['payments']['setAttention'] = async (id, update, session) => {
    if (update.audit === null) return await payments.setAttention(id, update, session);
    const { dbName } = setting.stores.ledger.collections.books;
    const rows = setting.mongo.db(dbName).collection<{ _id: string }>('payments');
    await rows.updateOne({ _id: id }, { $inc: { version: 1 } });
    return await payments.setAttention(id, update, session);
  };
  return { ...setting.stores, payments: { ...payments, setAttention } };
}

/** Stores in which another write always comes before a transition, until told otherwise. */
function alwaysMoved(until: { calm: boolean }): Stores {
  const { payments } = setting.stores;
  const update: Stores['payments']['update'] = async (id, version, ...rest) => {
    if (!until.calm && version > 2) {
      const { dbName } = setting.stores.ledger.collections.books;
      const rows = setting.mongo.db(dbName).collection<{ _id: string }>('payments');
      await rows.updateOne({ _id: id }, { $inc: { version: 1 } });
    }
    return await payments.update(id, version, ...rest);
  };
  return { ...setting.stores, payments: { ...payments, update } };
}

test('a callback that is given up is named and marked', async () => {
  const queue = `${setting.queues.lifecycle}-moved`;
  const until = { calm: false };
  const stop = await setting.startWorkers(queue, alwaysMoved(until));
  await withBank(setting, scriptedBank(), async (connector) => {
    const input = paymentInput(connector);
    const { payment_id: id } = input;
    await recordPaymentKey(setting, input);
    const { handle } = await open(setting, 'payment', id, input, messages.open, queue);
    const { becomes, shows, signal } = trackPayment(setting, input, handle);
    await signal('authorized');
    await becomes({ status: 'authorized' });
    await handle.signal('settled', callback({ callback_id: 'lost-one' }));
    await becomes({ attention: 'message_given_up' });
    await shows('changed each time: callback `settled` (lost-one)');
    until.calm = true;
    expect(await handle.query('state')).toMatchObject({ status: 'authorized' });
    await signal('settled');
    expect(await handle.result()).toMatchObject({ status: 'settled' });
  });
  await stop();
});

test('an update whose state never stands still is refused, and the payment goes on', async () => {
  const queue = `${setting.queues.lifecycle}-overtaken`;
  const stop = await setting.startWorkers(queue, overtaken());
  await withBank(setting, scriptedBank(), async (connector) => {
    const input = paymentInput(connector);
    const { payment_id: id } = input;
    await recordPaymentKey(setting, input);
    const { handle } = await open(setting, 'payment', id, input, messages.open, queue);
    const { refusal, stored, act } = trackPayment(setting, input, handle);
    await handle.signal('settled', { unreadable: true });
    expect(await refusal('acknowledge')).toMatchObject({ code: 'temporarily_unavailable' });
    expect(await stored()).toMatchObject({ attention: 'malformed_callback', audit: [] });
    await act('mark_failed');
    expect(await handle.result()).toMatchObject({ status: 'failed' });
  });
  await stop();
});
