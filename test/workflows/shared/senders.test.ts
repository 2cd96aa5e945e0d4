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
import { LONG_HISTORY } from '../../support/servers';
import {
  callback,
  openRefund,
  refundInput,
  scriptedBank,
  withBank,
} from '../../support/workflow-setting';
import { openBalance, registerWallet, settle, WALLET } from '../crypto/setting';
import { isAt, shows, type TrackedPayment, useLifecycles } from '../lifecycles';

/** On live each callback proves who sends it. Only this server says that a history is long. */
const { setting, withPayment, withPayout } = useLifecycles('real', ['sandbox', 'live']);

const LIVE = { livemode: true };

/** Builds callbacks about a resource at its connector, sends them, and waits for their effects. */
function trackCallbacks(connector: string, resource: CallbackResource, resource_id: string) {
  const { stores, env, queues } = setting;
  const { get, workflowId } = LIFECYCLES[resource];
  const handle = env.client.workflow.getHandle(workflowId(resource_id));
  const inbox = { stores, temporal: env.client, lifecycleQueue: queues.lifecycle };
  const stored = async () => {
    const document = await get(stores, resource_id);
    if (document === null) throw new Error('not stored');
    return document;
  };
  return {
    handle,
    stored,
    build: (name: CallbackName, more: object = {}): SignedCallback => ({
      ...{ connector, resource, resource_id, name },
      callback: callback(more),
    }),
    /** Signals past the inbox, with a signature if one is named. */
    signal: ({ name, callback: facts }: SignedCallback, signature?: object) =>
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
    becomes: (values: { status?: string; attention?: string }) =>
      eventually(JSON.stringify(values), async () => {
        const document = await stored();
        return Object.entries(values).every(
          ([name, value]) => Reflect.get(document, name) === value,
        );
      }),
  };
}

type Callbacks = ReturnType<typeof trackCallbacks>;

/** Runs the story of a payment that waits for its customer. */
const withCallbacks = (
  story: (callbacks: Callbacks, payment: TrackedPayment) => Promise<unknown>,
  changes = LIVE,
) =>
  withPayment(
    scriptedBank(),
    async (payment) => {
      await isAt(payment.handle, 'awaiting_customer');
      await story(trackCallbacks(payment.input.connector, 'payment', payment.id), payment);
    },
    changes,
  );

test('a live payment ignores seven forged callbacks, and applies the genuine one of the same id', () =>
  withCallbacks(async ({ build, handle, signal, waitForRefused, becomes, stored }, { input }) => {
    const { connector } = input;
    const [ours, old, theirs] = [
      await setting.connectorKey(connector),
      await setting.connectorKey(connector),
      await setting.connectorKey('other-bank'),
    ];
    const { stores } = setting;
    await stores.connectorKeys.revoke(old.key_id, new Date().toISOString());
    const settled = build('settled');
    const signature = signCallback(ours, settled);
    await signal(settled);
    await shows(handle, 'is ignored: it has no signature');
    await becomes({ status: 'awaiting_customer', attention: 'sender_not_known' });
    await signal(settled, signCallback(theirs, settled));
    await signal(settled, { ...signature, key_id: 'cnkey_none' });
    await signal(settled, signCallback(old, settled));
    await signal(settled, signCallback({ ...ours, secret: `${ours.secret}x` }, settled));
    const changed = { ...settled.callback, bank_reference: 'B-2' };
    await signal({ ...settled, callback: changed }, signature);
    await signal({ ...settled, name: 'authorized' }, signature);
    expect((await waitForRefused(7)).sort()).toEqual([
      'it has no signature',
      'its connector has no such key',
      'its connector has no such key',
      'its key is revoked',
      ...Array(3).fill('its signature does not match the report or the secret'),
    ]);
    await signal(settled, { key_id: ours.key_id });
    await shows(handle, 'v1: must be 64 hexadecimal digits');
    expect((await stored()).status).toBe('awaiting_customer');

    await signal(settled, signature);
    await signal(settled, signature);
    expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
    const { callback_id } = settled.callback;
    const { applied_callbacks } = (await stores.payments.get(input.payment_id)) ?? {};
    expect(applied_callbacks).toEqual([callback_id]);
    expect(await stores.callbacks.get(callbackKey(connector, callback_id))).toBeNull();
    const timeline = await readTimeline({ stores }, 'payment', await stored());
    expect(timeline.map(({ kind }) => kind)).not.toContain('callback');
    await saveHistory(handle, 'payment-senders-not-known');
  }));

test('a live payment applies a callback that was sent without a key once it is sent under one', () =>
  withCallbacks(async ({ build, handle, deliver, waitForRefused, becomes, stored }, { input }) => {
    const settled = build('settled');
    expect(await deliver(settled)).toBe('delivered');
    expect(await waitForRefused(1)).toEqual(['it has no signature']);
    const key = await setting.connectorKey(input.connector);
    expect(await deliver(settled, key)).toBe('duplicate');
    expect(await handle.result()).toMatchObject({ status: 'settled' });
    expect((await stored()).attention).toBeNull();
    const row = await setting.stores.callbacks.get(
      callbackKey(input.connector, settled.callback.callback_id),
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
    async ({ build, handle, signal, waitForRefused }, { input }) => {
      const key = await setting.connectorKey(input.connector);
      const authorized = build('authorized');
      await signal(authorized, signCallback({ ...key, secret: 'cnsec_guessed' }, authorized));
      expect(await waitForRefused(1)).toHaveLength(1);
      await signal(authorized);
      const settled = build('settled');
      await signal(settled, signCallback(key, settled));
      expect(await handle.result()).toMatchObject({ status: 'settled', version: 4 });
    },
    { livemode: false },
  ));

type Story = (callbacks: Callbacks, key: ConnectorKey) => Promise<unknown>;

const withRefund = (story: Story) =>
  withCallbacks(async ({ build, handle, deliver }, { input: payment }) => {
    const { connector } = payment;
    const key = await setting.connectorKey(connector);
    await deliver(build('settled'), key);
    await handle.result();
    const { opened } = await openRefund(setting, refundInput(payment));
    await story(trackCallbacks(connector, 'refund', opened.refund_id), key);
  });

const withSentPayout = (story: Story) =>
  withPayout(
    scriptedBank(),
    async ({ id, input: { connector } }) => {
      const key = await setting.connectorKey(connector);
      await story(trackCallbacks(connector, 'payout', id), key);
    },
    LIVE,
  );

const withSettlement = (story: Story) =>
  withBank(setting, scriptedChain(), async (connector) => {
    const owner = await openBalance(setting, true);
    await registerWallet(setting, owner, WALLET);
    const { id, becomes } = await settle(setting, connector, owner);
    await becomes({ status: 'sent' });
    const key = await setting.connectorKey(connector);
    await story(trackCallbacks(connector, 'crypto_settlement', id), key);
  });

test.each([
  ['refund', withRefund, 'failed', 'settled', 'processing', {}],
  ['payout', withSentPayout, 'returned', 'completed', 'sent', {}],
  ['crypto settlement', withSettlement, 'completed', 'completed', 'sent', { transaction_id: 'tx' }],
] as const)(
  'a live %s applies the signed callback of its connector, and no unsigned one',
  (noun, withResource, forged, genuine, status, facts) =>
    withResource(async ({ build, handle, signal, deliver, stored, ...callbacks }, key) => {
      await signal(build(forged, facts));
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
