import { type ConnectorKey, signCallback } from '../../../connectors/contract/callbacks';
import { deliverCallback } from '../../../src/callbacks/deliver';
import type { CallbackName, CallbackResource } from '../../../src/domain/callback/callback';
import type { SignedCallback } from '../../../src/domain/callback/signature';
import { LIFECYCLES } from '../../../src/lifecycles';
import { readTimeline } from '../../../src/service/resources/read';
import { callbackKey } from '../../../src/store/callbacks';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { scriptedChain } from '../../support/scripted-chain';
import {
  callback,
  openPayment,
  openRefund,
  paymentInput,
  refundInput,
  scriptedBank,
  withBank,
} from '../../support/workflow-setting';
import { openBalance, registerWallet, settle, WALLET } from '../crypto/setting';
import { isAt, shows, useLifecycles } from '../lifecycles';

/** Callbacks on live, where each has to prove who sends it. */
const { setting, withPayout } = useLifecycles('real', ['sandbox', 'live']);

/** Messages about a resource at its connector, and what becomes of them. */
function sending(connector: string, resource: CallbackResource, resource_id: string) {
  const { stores, env, queues } = setting;
  const told = (name: CallbackName, more: object = {}): SignedCallback => ({
    ...{ connector, resource, resource_id, name },
    callback: callback(more),
  });
  const handle = env.client.workflow.getHandle(LIFECYCLES[resource].workflowId(resource_id));
  const inbox = { stores, temporal: env.client, lifecycleQueue: queues.lifecycle };
  const document = async () => {
    const found = await LIFECYCLES[resource].get(stores, resource_id);
    if (found === null) throw new Error('not stored');
    return found;
  };
  return {
    told,
    handle,
    document,
    /** Signals past the inbox. */
    signal: async ({ name, callback: facts }: SignedCallback, mac?: object) =>
      await handle.signal(name, mac === undefined ? facts : { ...facts, mac }),
    /** Signals as the kit does, under a key or under none. */
    deliver: (about: SignedCallback, key?: ConnectorKey) =>
      deliverCallback({ ...inbox, now: () => new Date(), key }, about),
    /** Waits until so many were refused; their reasons, in order. */
    refused: (count: number) =>
      eventually(`${count} refused`, async () => {
        const rows = await stores.callbacks.forResource(resource_id);
        const reasons = rows.filter((row) => row.refused).map((row) => row.unapplied);
        return reasons.length === count && reasons.map((reason) => reason?.split(': ').at(-1));
      }),
    /** Waits until it has a mark, which comes behind what was kept. */
    marked: (mark: string) =>
      eventually(mark, async () => {
        const found = await document();
        return found.attention === mark && found;
      }),
    stands: (status: string) =>
      eventually(status, async () => {
        const found = await document();
        return found.status === status && found;
      }),
  };
}

const revoke = ({ key_id }: ConnectorKey) =>
  setting.stores.connectorKeys.revoke(key_id, new Date().toISOString());

test('a live payment heeds none of seven false callbacks, and then the true one of their id', () =>
  withBank(setting, scriptedBank(), async (connector) => {
    const input = paymentInput(connector, { livemode: true });
    const { handle } = await openPayment(setting, input);
    await isAt(handle, 'awaiting_customer');
    const payment = sending(connector, 'payment', input.payment_id);
    const { told, signal, refused, marked, document } = payment;
    const [ours, old, theirs] = [
      await setting.connectorKey(connector),
      await setting.connectorKey(connector),
      await setting.connectorKey('other-bank'),
    ];
    await revoke(old);
    const settled = told('settled');
    const mac = signCallback(ours, settled);
    await signal(settled);
    await shows(handle, 'is ignored: it has no signature');
    expect((await marked('sender_not_known')).status).toBe('awaiting_customer');
    await signal(settled, signCallback(theirs, settled));
    await signal(settled, { ...mac, key_id: 'cnkey_none' });
    await signal(settled, signCallback(old, settled));
    await signal(settled, signCallback({ ...ours, secret: `${ours.secret}x` }, settled));
    await signal({ ...settled, callback: { ...settled.callback, bank_reference: 'B-2' } }, mac);
    await signal({ ...settled, name: 'authorized' }, mac);
    expect((await refused(7)).sort()).toEqual([
      'it has no signature',
      'its connector has no such key',
      'its connector has no such key',
      'its key is revoked',
      'its signature does not match the report or the secret',
      'its signature does not match the report or the secret',
      'its signature does not match the report or the secret',
    ]);
    await signal(settled, { key_id: ours.key_id });
    await shows(handle, 'mac: v1: must be 64 hexadecimal digits');
    expect((await document()).status).toBe('awaiting_customer');

    await signal(settled, mac);
    await signal(settled, mac);
    expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
    const { callback_id } = settled.callback;
    expect((await setting.stores.payments.get(input.payment_id))?.applied_callbacks).toEqual([
      callback_id,
    ]);
    const { stores } = setting;
    expect(await stores.callbacks.get(callbackKey(connector, callback_id))).toBeNull();
    const timeline = await readTimeline({ stores }, 'payment', await document());
    expect(timeline.map(({ kind }) => kind)).not.toContain('callback');
    await saveHistory(handle, 'payment-senders-not-known');
  }));

test('the kit signs: what went out without a key counts once it comes again under one', () =>
  withBank(setting, scriptedBank(), async (connector) => {
    const input = paymentInput(connector, { livemode: true });
    const { handle } = await openPayment(setting, input);
    await isAt(handle, 'awaiting_customer');
    const payment = sending(connector, 'payment', input.payment_id);
    const { told, deliver, refused, marked, document } = payment;
    const settled = told('settled');
    expect(await deliver(settled)).toBe('delivered');
    expect(await refused(1)).toEqual(['it has no signature']);
    const key = await setting.connectorKey(connector);
    expect(await deliver(settled, key)).toBe('duplicate');
    expect(await handle.result()).toMatchObject({ status: 'settled' });
    expect((await document()).attention).toBeNull();
    const row = await setting.stores.callbacks.get(
      callbackKey(connector, settled.callback.callback_id),
    );
    expect(row).toMatchObject({ signed_by: key.key_id, unapplied: null, parked: null });
    expect(row).not.toHaveProperty('refused');
    expect(await deliver(settled, key)).toBe('duplicate');

    // After the end, in a run that starts again.
    expect(await deliver(told('clawed_back'))).toBe('delivered');
    await refused(1);
    await marked('sender_not_known');
    expect(await deliver(told('clawed_back'), key)).toBe('delivered');
    await marked('clawed_back');
    await handle.result();
    await saveHistory(handle, 'payment-resumed-signed');
  }));

test('in the sandbox a callback counts without a mac, and not with a false one', () =>
  withBank(setting, scriptedBank(), async (connector) => {
    const input = paymentInput(connector);
    const { handle } = await openPayment(setting, input);
    const { told, signal, refused } = sending(connector, 'payment', input.payment_id);
    const key = await setting.connectorKey(connector);
    const authorized = told('authorized');
    await signal(authorized, signCallback({ ...key, secret: 'cnsec_guessed' }, authorized));
    expect(await refused(1)).toHaveLength(1);
    await signal(authorized);
    const settled = told('settled');
    await signal(settled, signCallback(key, settled));
    expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
  }));

test('a live refund heeds its connector alone', () =>
  withBank(setting, scriptedBank(), async (connector) => {
    const key = await setting.connectorKey(connector);
    const payment = paymentInput(connector, { livemode: true });
    const opened = await openPayment(setting, payment);
    const paid = sending(connector, 'payment', payment.payment_id);
    await paid.deliver(paid.told('settled'), key);
    await opened.handle.result();

    const input = refundInput(payment);
    const { handle } = await openRefund(setting, input);
    const refund = sending(connector, 'refund', input.refund_id);
    await refund.signal(refund.told('failed'));
    await refund.refused(1);
    await refund.marked('sender_not_known');
    await refund.deliver(refund.told('settled'), key);
    expect(await handle.result()).toMatchObject({ status: 'settled' });
    expect((await refund.document()).attention).toBeNull();
    await saveHistory(handle, 'refund-sender-not-known');
  }));

test('a live payout fails for nobody but its connector', () =>
  withPayout(
    scriptedBank(),
    async ({ handle, id, input }) => {
      const key = await setting.connectorKey(input.connector);
      const payout = sending(input.connector, 'payout', id);
      await payout.signal(payout.told('returned'));
      await payout.refused(1);
      expect((await payout.marked('sender_not_known')).status).toBe('sent');
      await payout.deliver(payout.told('completed'), key);
      expect(await handle.result()).toMatchObject({ status: 'completed' });
      expect((await payout.document()).attention).toBeNull();
      await saveHistory(handle, 'payout-sender-not-known');
    },
    { livemode: true },
  ));

test('a live settlement of coins completes for nobody but its connector', () =>
  withBank(setting, scriptedChain(), async (connector) => {
    const key = await setting.connectorKey(connector);
    const owner = await openBalance(setting, true);
    await registerWallet(setting, owner, WALLET, new Date(0));
    const { id, handle } = await settle(setting, connector, owner);
    const settlement = sending(connector, 'crypto_settlement', id);
    await settlement.stands('sent');
    const completed = settlement.told('completed', { transaction_id: 'tx' });
    await settlement.signal(completed);
    await settlement.refused(1);
    await settlement.marked('sender_not_known');
    await settlement.deliver(completed, key);
    expect(await handle.result()).toMatchObject({ status: 'completed' });
    await saveHistory(handle, 'crypto-settlement-sender-not-known');
  }));
