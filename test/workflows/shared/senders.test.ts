import { type ConnectorKey, signCallback } from '../../../connectors/contract/callbacks';
import { deliverCallback } from '../../../src/callbacks/deliver';
import type { CallbackName, CallbackResource } from '../../../src/domain/callback/callback';
import type { SignedCallback } from '../../../src/domain/callback/signature';
import type { PaymentInput } from '../../../src/domain/payment/workflow';
import type { Resource } from '../../../src/lifecycles';
import { readTimeline } from '../../../src/service/resources/read';
import { callbackKey } from '../../../src/store/callbacks';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { scriptedChain } from '../../support/scripted-chain';
import { LONG_HISTORY } from '../../support/servers';
import {
  callback,
  openRefund,
  refundInput,
  scriptedBank,
  withBank,
} from '../../support/workflow-setting';
import { openBalance, registerWallet, settle, WALLET } from '../crypto/setting';
import { isAt, shows, type Tracked, trackRefund, useLifecycles } from '../lifecycles';

/** On live each callback proves who sends it. Only this server says that a history is long. */
const { setting, withPayment, withPayout } = useLifecycles('real', ['sandbox', 'live']);

const LIVE = { livemode: true };

/** Resource whose connector and others report about it. */
type Subject = Pick<Tracked, 'id' | 'handle'> & {
  stored: () => Promise<Resource>;
  becomes: (values: { status?: string; attention?: string }) => Promise<unknown>;
};

/** Builds callbacks about a resource, sends them, and waits until they are refused. */
function trackCallbacks(subject: Subject, connector: string, resource: CallbackResource) {
  const { stores, env, queues } = setting;
  const { id: resource_id, handle } = subject;
  const inbox = { stores, temporal: env.client, lifecycleQueue: queues.lifecycle };
  return {
    ...subject,
    connector,
    build: (name: CallbackName, more: object = {}): SignedCallback => ({
      ...{ connector, resource, resource_id, name },
      callback: callback(more),
    }),
    /** Signals past the inbox, with a signature if one is named. */
    send: ({ name, callback: facts }: SignedCallback, signature?: object) =>
      handle.signal(name, signature === undefined ? facts : { ...facts, mac: signature }),
    /** Signals as the kit does, under a key or under none. */
    deliver: (report: SignedCallback, key?: ConnectorKey) =>
      deliverCallback({ ...inbox, now: () => new Date(), key }, report),
    /** Waits until as many are refused, and returns the reasons in order. */
    waitForRefused: (count: number) =>
      eventually(`${count} refused`, async () => {
        const rows = await stores.callbacks.forResource(resource_id);
        const reasons = rows.filter((row) => row.refused).map((row) => row.unapplied);
        return reasons.length === count && reasons.map((reason) => reason?.split(': ').at(-1));
      }),
  };
}

type Callbacks = ReturnType<typeof trackCallbacks>;

/** Runs the story of a payment that waits for its customer. */
const withCallbacks = (
  story: (callbacks: Callbacks, input: PaymentInput) => Promise<unknown>,
  changes = LIVE,
) =>
  withPayment(
    scriptedBank(),
    async (payment) => {
      await isAt(payment.handle, 'awaiting_customer');
      await story(trackCallbacks(payment, payment.input.connector, 'payment'), payment.input);
    },
    changes,
  );

test('a live payment ignores seven forged callbacks, and applies the genuine one of the same id', () =>
  withCallbacks(async ({ id, connector, handle, stored, becomes, build, send, waitForRefused }) => {
    const [ours, old, theirs] = [
      await setting.connectorKey(connector),
      await setting.connectorKey(connector),
      await setting.connectorKey('other-bank'),
    ];
    const { stores } = setting;
    await stores.connectorKeys.revoke(old.key_id, new Date().toISOString());
    const settled = build('settled');
    const signature = signCallback(ours, settled);
    await send(settled);
    await shows(handle, 'is ignored: it has no signature');
    await becomes({ status: 'awaiting_customer', attention: 'sender_not_known' });
    await send(settled, signCallback(theirs, settled));
    await send(settled, { ...signature, key_id: 'cnkey_none' });
    await send(settled, signCallback(old, settled));
    await send(settled, signCallback({ ...ours, secret: `${ours.secret}x` }, settled));
    const changed = { ...settled.callback, bank_reference: 'B-2' };
    await send({ ...settled, callback: changed }, signature);
    await send({ ...settled, name: 'authorized' }, signature);
    expect((await waitForRefused(7)).sort()).toEqual([
      'it has no signature',
      'its connector has no such key',
      'its connector has no such key',
      'its key is revoked',
      ...Array(3).fill('its signature does not match the report or the secret'),
    ]);
    await send(settled, { key_id: ours.key_id });
    await shows(handle, 'v1: must be 64 hexadecimal digits');
    expect((await stored()).status).toBe('awaiting_customer');

    await send(settled, signature);
    await send(settled, signature);
    expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
    const { callback_id } = settled.callback;
    const { applied_callbacks } = (await stores.payments.get(id)) ?? {};
    expect(applied_callbacks).toEqual([callback_id]);
    expect(await stores.callbacks.get(callbackKey(connector, callback_id))).toBeNull();
    const timeline = await readTimeline({ stores }, 'payment', await stored());
    expect(timeline.map(({ kind }) => kind)).not.toContain('callback');
    await saveHistory(handle, 'payment-senders-not-known');
  }));

test('a live payment applies a callback that was sent without a key once it is sent under one', () =>
  withCallbacks(async ({ connector, handle, stored, becomes, build, deliver, waitForRefused }) => {
    const settled = build('settled');
    expect(await deliver(settled)).toBe('delivered');
    expect(await waitForRefused(1)).toEqual(['it has no signature']);
    const key = await setting.connectorKey(connector);
    expect(await deliver(settled, key)).toBe('duplicate');
    expect(await handle.result()).toMatchObject({ status: 'settled' });
    expect((await stored()).attention).toBeNull();
    const row = await setting.stores.callbacks.get(
      callbackKey(connector, settled.callback.callback_id),
    );
    expect(row).toMatchObject({ signed_by: key.key_id, unapplied: null, parked: null });
    expect(row).not.toHaveProperty('refused');
    expect(await deliver(settled, key)).toBe('duplicate');

    // After the end, in a run that starts again.
    expect(await deliver(build('clawed_back'))).toBe('delivered');
    await waitForRefused(1);
    await becomes({ attention: 'sender_not_known' });
    expect(await deliver(build('clawed_back'), key)).toBe('delivered');
    await becomes({ attention: 'clawed_back' });
    await handle.result();
    await saveHistory(handle, 'payment-resumed-signed');
  }));

test('a payment of the sandbox applies an unsigned callback, and none with a false signature', () =>
  withCallbacks(
    async ({ connector, handle, build, send, waitForRefused }) => {
      const key = await setting.connectorKey(connector);
      const authorized = build('authorized');
      await send(authorized, signCallback({ ...key, secret: 'cnsec_guessed' }, authorized));
      expect(await waitForRefused(1)).toHaveLength(1);
      await send(authorized);
      const settled = build('settled');
      await send(settled, signCallback(key, settled));
      expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
    },
    { livemode: false },
  ));

type Story = (callbacks: Callbacks) => Promise<unknown>;

const withRefund = (story: Story) =>
  withCallbacks(async ({ connector, handle: paid, build, deliver }, payment) => {
    await deliver(build('settled'), await setting.connectorKey(connector));
    await paid.result();
    const { handle, opened } = await openRefund(setting, refundInput(payment));
    const refund = trackRefund(setting, opened.refund_id, payment, handle);
    await story(trackCallbacks(refund, connector, 'refund'));
  });

const withSentPayout = (story: Story) =>
  withPayout(
    scriptedBank(),
    (payout) => story(trackCallbacks(payout, payout.input.connector, 'payout')),
    LIVE,
  );

const withSettlement = (story: Story) =>
  withBank(setting, scriptedChain(), async (connector) => {
    const owner = await openBalance(setting, true);
    await registerWallet(setting, owner, WALLET);
    const settlement = await settle(setting, connector, owner);
    await settlement.becomes({ status: 'sent' });
    await story(trackCallbacks(settlement, connector, 'crypto_settlement'));
  });

test.each([
  ['refund', withRefund, 'failed', 'settled', 'processing', {}],
  ['payout', withSentPayout, 'returned', 'completed', 'sent', {}],
  ['crypto settlement', withSettlement, 'completed', 'completed', 'sent', { transaction_id: 'tx' }],
] as const)(
  'a live %s applies the signed callback of its connector, and no unsigned one',
  (noun, withResource, forged, genuine, status, facts) =>
    withResource(async ({ connector, handle, stored, build, send, deliver, ...callbacks }) => {
      const key = await setting.connectorKey(connector);
      await send(build(forged, facts));
      await callbacks.waitForRefused(1);
      await callbacks.becomes({ status, attention: 'sender_not_known' });
      await deliver(build(genuine, facts), key);
      expect(await handle.result()).toMatchObject({ status: genuine });
      expect((await stored()).attention).toBeNull();
      await saveHistory(handle, `${noun.replace(' ', '-')}-sender-not-known`);
    }),
);

test('a payment whose bank repeats a callback hundreds of times continues in a new run', async () => {
  await withPayment(scriptedBank(), async ({ handle, stored, endBy }) => {
    const { runId } = await handle.describe();
    const report = callback();
    await handle.signal('authorized', report);
    // From now on the payment waits, and no repeat changes anything.
    await isAt(handle, 'authorized');
    const atOnce = 128;
    for (let sent = 0; sent < LONG_HISTORY; sent += atOnce) {
      const repeats = Array.from({ length: atOnce }, () => handle.signal('authorized', report));
      await Promise.all(repeats);
    }
    // One task applies signals by the hundred, and a busy machine may time out the first.
    await eventually('a new run', async () => (await handle.describe()).runId !== runId);
    expect(await stored()).toMatchObject({ status: 'authorized', version: 3 });
    expect(await endBy('settled')).toMatchObject({ status: 'settled', version: 4 });
    // The run that was continued is too long for the tree.
    await saveHistory(handle, 'payment-continued');
  });
});
