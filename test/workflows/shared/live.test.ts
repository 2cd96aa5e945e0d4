import { WorkflowNotFoundError } from '@temporalio/client';
import { type ConnectorKey, signCallback } from '../../../connectors/contract/callbacks';
import { inTransaction } from '../../../src/base/mongo';
import { deliverCallback } from '../../../src/callbacks/deliver';
import type {
  CallbackName,
  CallbackResource,
  SignedCallback,
} from '../../../src/domain/banks/callback';
import type { PaymentInput } from '../../../src/domain/payment/payment';
import { Encrypted } from '../../../src/encryption/encrypter';
import type { Resource } from '../../../src/lifecycles';
import { readTimeline } from '../../../src/service/money/resources/read';
import { requestForMany } from '../../../src/service/operators/act';
import { decide } from '../../../src/service/operators/approvals/decide';
import { callbackKey } from '../../../src/store/callbacks';
import { createTemporalClient } from '../../../src/temporal/client';
import { asOperator, commandsIn } from '../../cli/cli';
import { operatorsAudit } from '../../support/audit';
import { eventually, retryUntilDone } from '../../support/eventually';
import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { scriptedChain } from '../../support/scripted-chain';
import { LONG_HISTORY, mongodbUri, temporalAddress } from '../../support/servers';
import {
  callback,
  openRefund,
  paymentInput,
  recordPaymentKey,
  refundInput,
  type ScriptedBank,
  scriptedBank,
  withBank,
} from '../../support/workflow-setting';
import { openMerchant, settle } from '../crypto/setting';
import {
  ACT,
  isAt,
  refusalOf,
  shows,
  type Tracked,
  type TrackedPayment,
  trackPayment,
  trackRefund,
  useLifecycles,
} from '../lifecycles';

/** Rules of live. Only this server says that a history is long. */
const { setting, withPayment, withPayout } = useLifecycles('real', ['sandbox', 'live']);

const LIVE = { livemode: true };

/** Resource whose connector and others report about it. */
type Reported = Pick<Tracked, 'id' | 'handle'> & {
  becomes: (values: Parameters<Tracked['becomes']>[0]) => Promise<unknown>;
  act: (update: string, args: object) => Promise<object>;
  stored: () => Promise<Resource>;
};

/** Builds callbacks about a resource, sends them, and waits until they are refused. */
function trackCallbacks<R extends Reported>(
  subject: R,
  connector: string,
  resource: CallbackResource,
) {
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

type Callbacks<R extends Reported = Reported> = ReturnType<typeof trackCallbacks<R>>;

/** Runs the story of a payment that waits for its customer. */
const withCallbacks = (
  story: (callbacks: Callbacks<TrackedPayment>, input: PaymentInput) => Promise<unknown>,
  changes: Partial<PaymentInput> = LIVE,
) =>
  withPayment(
    scriptedBank(),
    async (payment) => {
      await payment.becomes({ status: 'awaiting_customer' });
      await story(trackCallbacks(payment, payment.input.connector, 'payment'), payment.input);
    },
    changes,
  );

test('a live payment ignores seven forged callbacks, and applies the genuine one of the same id', () =>
  withCallbacks(async ({ connector, handle, stored, becomes, build, send, waitForRefused }) => {
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
    expect(await handle.result()).toMatchObject({ status: 'settled' });
    const { callback_id } = settled.callback;
    expect(await stored()).toMatchObject({ applied_callbacks: [callback_id], transition: 4 });
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
    expect(row).toMatchObject({ key_id: key.key_id, unapplied: null, parked: null });
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
      expect(await handle.result()).toMatchObject({ status: 'settled' });
    },
    { livemode: false },
  ));

type Story = (callbacks: Callbacks) => Promise<unknown>;

const withRefund = (story: Story, changes: Partial<PaymentInput> = LIVE) =>
  withCallbacks(async ({ connector, handle: paid, build, deliver }, payment) => {
    await deliver(build('settled'), await setting.connectorKey(connector));
    await paid.result();
    const { handle, opened } = await openRefund(setting, refundInput(payment));
    const refund = trackRefund(setting, opened.refund_id, payment, handle);
    await story(trackCallbacks(refund, connector, 'refund'));
  }, changes);

const withSentPayout = (story: Story) =>
  withPayout(
    scriptedBank(),
    (payout) => story(trackCallbacks(payout, payout.input.connector, 'payout')),
    LIVE,
  );

const withSettlement = (story: Story) =>
  withBank(setting, scriptedChain(), async (connector) => {
    const owner = await openMerchant(setting, true);
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

/** Any amount of a currency that the limits do not name needs a second operator. */
const LARGE = { livemode: true, currency: 'KWD' };
const WHY = ['--reason', 'Ticket 42'];
const CONFIRMED = { bank_confirmed_not_executed: true };

type Commands = Awaited<ReturnType<typeof asOperator>>;
let [mia, bo]: Commands[] = [];
beforeAll(async () => {
  const commands = commandsIn({
    DATA_DIR: 'none',
    MONGODB_URI: mongodbUri(),
    MONGODB_DB: setting.database,
    TEMPORAL_ADDRESS: temporalAddress(),
  });
  mia = await asOperator(commands, 'mia', 'approver');
  bo = await asOperator(commands, 'bo', 'approver');
});

const APPROVER = { operator_id: 'op_1', name: 'mia', role: 'approver' } as const;
const buildDeps = () => {
  const { mongo, stores } = setting;
  return { mongo, stores, now: () => new Date(), audit: operatorsAudit(stores) };
};

type Acted = Pick<Reported, 'id' | 'handle' | 'stored' | 'act' | 'becomes'>;
type ActStory = (subject: Acted) => Promise<unknown>;

const update = ({ act }: Acted, what: string, more: object = {}) => act(what, { ...ACT, ...more });
const readRequest = (answer: unknown): string => {
  const approval_id = expect.stringMatching(/^appr_/);
  expect(answer).toEqual({ status: 'approval_required', approval_id });
  return Object(answer).approval_id;
};
/** Updates without proof. @returns id of the approval that it needs */
const request = async (subject: Acted, what: string, more: object = {}) =>
  readRequest(await update(subject, what, more));
const approve = (by: Commands | undefined, id: string) =>
  by?.json('approval', 'approve', id, ...WHY);
const refuseApproval = (by: Commands | undefined, id: string) =>
  by?.refusal('approval', 'approve', id, ...WHY);
const readAvailable = async ({ stored }: Acted) => {
  const [row] = await setting.stores.ledger.balances((await stored()).account_id, true);
  return row?.available ?? 0;
};

const withLargePayment = (story: ActStory) => withCallbacks(story, LARGE);
const withLargeRefund = (story: ActStory) => withRefund(story, LARGE);
const withLargePayout = (story: ActStory, bank: ScriptedBank = scriptedBank()) =>
  withPayout(bank, story, LARGE);

test.each([
  ['payment', withLargePayment, 'mark_settled', {}, 'settled'],
  ['refund', withLargeRefund, 'mark_settled', { amount: 1 }, 'settled'],
  ['refund', withLargeRefund, 'mark_failed', {}, 'failed'],
  ['payout', withLargePayout, 'mark_failed', CONFIRMED, 'failed'],
  ['payout', withLargePayout, 'mark_returned', { amount: 900 }, 'returned'],
] as const)(
  'an update without proof on a live %s waits for two operators, and moves money once: %#',
  (kind, withResource, what, more, end) =>
    withResource(async (subject) => {
      const { handle, stored } = subject;
      // The bank's name for a refund is stored in a write of its own.
      if (kind === 'refund') await subject.becomes({ bank_reference: `ref-${subject.id}` });
      const before = await stored();
      const money = await readAvailable(subject);
      const id = await request(subject, what, { ...more, approved_by: 'bo' });
      expect(await request(subject, what, more)).toBe(id);
      const requested = { state: 'requested', requested_by: 'mia', requester_verified: true };
      expect(await approve(mia, id)).toMatchObject(requested);
      expect((await refuseApproval(mia, id))?.code).toBe('same_operator');
      expect(await stored()).toEqual(before);
      expect(await approve(bo, id)).toMatchObject({ state: 'done' });
      const after = await stored();
      expect(after.status).toBe(end);
      expect(after.audit.at(-1)).toMatchObject({
        ...{ who: 'mia', what, why: ACT.reason, approved_by: 'bo', approval_id: id },
      });
      expect(await approve(bo, id)).toMatchObject({ state: 'done' });
      if (end !== 'settled') {
        await eventually('the credit', async () => (await readAvailable(subject)) > money);
      }
      await handle.result();
      await saveHistory(handle, `${kind}-${what.replace('_', '-')}-approved`);
    }),
);

test('accepting a live dispute above the limit waits for a second operator, and tells the bank once', () =>
  withCallbacks(async ({ id, told, build, deliver, ...payment }, { connector }) => {
    const key = await setting.connectorKey(connector);
    await deliver(build('settled'), key);
    await payment.becomes({ status: 'settled' });
    await deliver(build('dispute_opened', { dispute_id: 'D-1' }), key);
    const read = async () => (await setting.stores.disputes.forPayment(id))[0];
    const { _id = '' } = await eventually('the dispute', read);
    const accept = ['dispute', 'accept', _id, ...WHY];
    const approval_id = readRequest(await mia?.json(...accept));
    expect((await refuseApproval(mia, approval_id))?.code).toBe('same_operator');
    expect(await read()).toMatchObject({ status: 'needs_response', audit: [] });
    expect(await approve(bo, approval_id)).toMatchObject({ state: 'done' });
    await eventually('the acceptance', async () => (await read())?.status === 'accepted');
    const act = { who: 'mia', what: 'accept', why: 'Ticket 42', approved_by: 'bo', approval_id };
    expect(await read()).toMatchObject({ audit: [act] });
    const answers = told.filter((line) => line.startsWith('acceptDispute'));
    expect(answers).toEqual([`acceptDispute acceptance:${_id}`]);
    expect((await mia?.refusal(...accept))?.code).toBe('wrong_state');
  }, LARGE));

test('of two updates at once that pass alone and not together, one needs a second operator', async () => {
  const answer = gate();
  let questions = 0;
  const bank = scriptedBank({
    lookUpPayout: async () => {
      questions += 1;
      await answer.opened;
      return { outcome: 'not_found' };
    },
  });
  const now = new Date();
  const before = { amount: 98_500, at: now, now };
  await inTransaction(setting.mongo, (session) =>
    setting.stores.approvals.addToSum('operator:tom GBP', before, session),
  );
  const act = { ...ACT, operator: 'Tom', credited: { amount: 0, currency: 'GBP' } };
  const pounds = { livemode: true, currency: 'GBP' };
  const story = async (one: Acted, other: Acted) => {
    const both = Promise.all([one, other].map((each) => each.act('mark_failed', act)));
    await eventually('both questions', async () => questions === 2);
    answer.release();
    const statuses = (await both).map((result) => Object(result).status);
    expect(statuses.toSorted()).toEqual(['approval_required', 'failed']);
    const left = statuses[0] === 'failed' ? other : one;
    expect(await left.stored()).toMatchObject({ status: 'sent', audit: [] });
    await update(left, 'mark_completed');
  };
  await withPayout(bank, (one) => withPayout(bank, (other) => story(one, other), pounds), pounds);
});

describe('acts on many', () => {
  const operator = { operator_id: 'op_leo', name: 'leo', role: 'operator' } as const;
  const requestMany = async (payouts: readonly Acted[]) => {
    const about = { what: 'mark_returned', reason: 'Ticket 42', verified: operator };
    const ids = payouts.map(({ id }) => id);
    return readRequest(await requestForMany(buildDeps(), 'payout', ids, about));
  };
  /** Runs the story of two payouts in a currency without a limit. */
  const withTwo = (story: (one: Acted, other: Acted) => Promise<unknown>) =>
    withLargePayout((one) => withLargePayout((other) => story(one, other)));

  test('are one request, and done once each when it is approved', () =>
    withTwo(async (one, other) => {
      const approval_id = await requestMany([one, other]);
      expect(await requestMany([one, other])).toBe(approval_id);
      const plan = [one, other].map(({ id }) => ({ id, status: 'sent', amount: 1000 }));
      const { data } = Object(await mia?.json('approval', 'list'));
      const listed = data.filter((row: { approval_id: string }) => row.approval_id === approval_id);
      const whole = { resource_id: null, amount: 2000, currency: 'KWD', plan };
      expect(listed).toMatchObject([whole]);
      await decide(buildDeps(), approval_id, { to: 'approved', operator: APPROVER, reason: 'Why' });
      // The command that approved it was killed after the first act.
      await update(one, 'mark_returned', { approval_id });
      const done = { state: 'done', plan: plan.map((act) => ({ ...act, done: true })) };
      const twice = await Promise.all([approve(bo, approval_id), approve(mia, approval_id)]);
      expect(twice).toMatchObject([done, done]);
      for (const { stored } of [one, other]) {
        const audit = [{ who: 'leo', approved_by: 'mia', approval_id }];
        expect(await stored()).toMatchObject({ status: 'returned', audit });
      }
    }));

  test('are refused as a whole when one is not as it was planned', () =>
    withTwo(async (one, other) => {
      const approval_id = await requestMany([one, other]);
      await update(other, 'mark_completed');
      const message = expect.stringContaining(other.id);
      expect(await refuseApproval(bo, approval_id)).toEqual({ code: 'approval_differs', message });
      expect(await one.stored()).toMatchObject({ status: 'sent', audit: [] });
      expect(await requestMany([one])).not.toBe(approval_id);
    }));
});

test('an approval is valid for its own act, amount and time only', () =>
  withLargePayout(async (payout) => {
    const id = await request(payout, 'mark_returned', { amount: 900 });
    const readRefusal = async (what: string, more: object) =>
      (await refusalOf(update(payout, what, more)))?.code;
    const same = ['mark_returned', { amount: 900, approval_id: id }] as const;
    const unknown = { approval_id: 'appr_1' };
    expect(await readRefusal('mark_returned', unknown)).toBe('approval_not_found');
    expect(await readRefusal(...same)).toBe('approval_decided');
    await approve(mia, id);
    expect(await readRefusal(...same)).toBe('approval_decided');
    const approvals = setting.mongo.db(setting.database).collection<{ _id: string }>('approvals');
    const change = (values: Record<string, string>) =>
      approvals.updateOne({ _id: id }, { $set: values });
    await change({ state: 'approved' });
    for (const [what, more] of [
      ['mark_returned', {}],
      ['mark_returned', { amount: 901 }],
      ['mark_failed', {}],
    ] as const) {
      expect(await readRefusal(what, { ...more, approval_id: id })).toBe('approval_differs');
    }
    await change({ amount: '899' });
    expect(await readRefusal(...same)).toBe('approval_differs');
    await change({ amount: '900', expires_at: '2020-01-01' });
    expect(await readRefusal(...same)).toBe('approval_expired');
    expect((await payout.stored()).audit).toEqual([]);
  }));

test('an approval that ends while the bank is queried moves no money', async () => {
  const [query, answer] = [gate(), gate()];
  const bank = scriptedBank({
    lookUpPayout: async () => {
      query.release();
      await answer.opened;
      return { outcome: 'not_found' };
    },
  });
  const story: ActStory = async (payout) => {
    const id = await request(payout, 'mark_failed');
    await approve(mia, id);
    const approved = bo?.cli('approval', 'approve', id, ...WHY, '--json');
    await query.opened;
    const refusal = { code: 'wrong_state', message: 'Another command was refused.' };
    expect(await setting.stores.approvals.refuse(id, refusal)).toBe(true);
    answer.release();
    expect(await approved).toMatchObject({ exit: 1 });
    expect(await payout.stored()).toMatchObject({ status: 'sent', audit: [] });
    expect(await update(payout, 'mark_completed')).toMatchObject({ status: 'completed' });
    await saveHistory(payout.handle, 'payout-approval-ended');
  };
  await withLargePayout(story, bank);
});

const readQueue = async (workflowId: string) =>
  (await setting.env.client.workflow.getHandle(workflowId).describe()).taskQueue;

/** Opens a payment as the API does, and waits for the session. */
async function openByApi(input: PaymentInput) {
  await recordPaymentKey(setting, input);
  const { stores, env, queues } = setting;
  const deps = { stores, now: () => new Date(), lifecycleQueue: queues.lifecycle };
  const api = createTemporalClient({ ...deps, client: env.client });
  await retryUntilDone(() => api.openPayment(input));
  const handle = env.client.workflow.getHandle(`payment:${input.payment_id}`);
  const payment = trackPayment(setting, input, handle);
  await payment.becomes({ status: 'awaiting_customer' });
  return payment;
}

test('a live payment, its deliveries and its late callbacks run on the queues of live', () =>
  withBank(setting, scriptedBank(), async (connector) => {
    const { stores, queues } = setting;
    const input = paymentInput(connector, LIVE);
    const { account_id, livemode } = input;
    const key = { account_id, livemode, endpoint_id: `we_${account_id}` };
    const ciphertext = Encrypted.parse('a.a.a.a.a');
    const url = 'https://shop.example/';
    await stores.endpoints.set({ ...key, url, ciphertext, now: new Date(0) });
    const payment = trackCallbacks(await openByApi(input), connector, 'payment');
    const { workflowId } = payment.handle;
    expect(await readQueue(workflowId)).toBe(`${queues.lifecycle}-live`);
    const deliveryQueue = await eventually('the delivery', async () => {
      const [event] = await stores.events.list({ account_id, livemode, limit: 1 });
      // A delivery starts after its event is stored.
      return event && (await readQueue(`webhook:${event._id}`).catch(nullIfMissing));
    });
    expect(deliveryQueue).toBe(`${queues.webhooks}-live`);
    for (const _ of ['settlement', 'repeat after the end']) {
      await payment.deliver(payment.build('settled'), await setting.connectorKey(connector));
      await payment.handle.result();
    }
    expect(await readQueue(workflowId)).toBe(`${queues.lifecycle}-live`);
  }));

function nullIfMissing(error: unknown): null {
  if (error instanceof WorkflowNotFoundError) return null;
  throw error;
}
