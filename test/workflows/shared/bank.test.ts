import { randomUUID } from 'node:crypto';
import { Worker } from '@temporalio/worker';
import { createPayoutActivities, type PayoutChange } from '../../../activities/payouts';
import type { ConnectorActivities, PayoutLookup } from '../../../connectors/contract/activities';
import type { CryptoConnectorActivities } from '../../../connectors/contract/crypto';
import {
  PAYOUT_FAILURES,
  type PayoutInput,
  type PayoutState,
  type PayoutStatus,
} from '../../../src/domain/payout/payout';
import { questionQueue } from '../../../src/domain/task-queues';
import { bookId } from '../../../src/ledger/entries';
import { withLock } from '../../../src/ledger/locks';
import { eventually } from '../../support/eventually';
import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { withHeldUpdates } from '../../support/hold-updates';
import { runWhile } from '../../support/run-while';
import { scriptedChain } from '../../support/scripted-chain';
import {
  fund,
  openPayout,
  openRefund,
  payoutInput,
  refundInput,
  scriptedBank,
  settledPayment,
  withBank,
} from '../../support/workflow-setting';
import { openSettlement } from '../crypto/setting';
import { instructions, PAYOUTS, REFUNDS } from '../instructed';
import {
  ACT,
  MONEY,
  refusalOf,
  shows,
  type TrackedPayout,
  trackPayout,
  unlessUnreachable,
  useLifecycles,
} from '../lifecycles';

// The time-skipping server loses an activity that ends while its cancellation is under way.
const { setting, buildDeps, withRefund, withPayout, withUnsentPayout } = useLifecycles('real');

// A machine that stalls while the bank is asked uses up the seconds that an operator waits.
jest.retryTimes(3, { logErrorsBeforeRetry: true });

type Story = (payout: TrackedPayout) => Promise<void>;

const NOT_FOUND = { outcome: 'not_found' } as const;
const REFUSED = { outcome: 'refused', code: 'closed', message: 'Closed.' } as const;
const QUEUED = { outcome: 'submitted', bank_reference: 'queue-1' } as const;
const SENT = { outcome: 'sent', bank_reference: 'queue-1' } as const;

const CONFIRMED = { ...ACT, bank_confirmed_not_executed: true };

const loseConnection = () => Promise.reject(new Error('connection reset'));

/** A bank that has queued a payout; with `cancel` it can cancel one. */
function queueingBank(
  changes: Partial<ConnectorActivities>,
  cancel?: 'cancelled' | 'too_late' | 'unknown',
) {
  const bank = scriptedBank({ sendPayout: async () => QUEUED, ...changes });
  const cancelPayout = async ({ payout_id }: { payout_id: string }) => {
    bank.told.push(`cancelPayout ${payout_id}`);
    return { outcome: cancel };
  };
  const activities = { ...bank.activities, ...(cancel === undefined ? {} : { cancelPayout }) };
  return { ...bank, activities };
}

/** Serves the questions of operators on a queue of their own, as the kit does. */
const withQueued = (bank: ReturnType<typeof queueingBank>, story: Story) =>
  withUnsentPayout(bank, async (payout) => {
    await payout.becomes({ status: 'submitted' });
    const questions = await Worker.create({
      connection: setting.env.nativeConnection,
      taskQueue: questionQueue(payout.input.connector),
      activities: bank.activities,
    });
    await runWhile(questions, () => story(payout));
  });

const countSends = ({ told }: Pick<TrackedPayout, 'told'>) =>
  told.filter((line) => line.startsWith('sendPayout')).length;

const markFailed = ({ act }: TrackedPayout, params: object = ACT) =>
  unlessUnreachable(() => act('mark_failed', params));

/** Changes the status in the database alone, as a workflow did whose task was lost. */
async function changeRecord(
  id: string,
  to: PayoutStatus[],
  change: Partial<PayoutChange> = {},
): Promise<void> {
  await createPayoutActivities(buildDeps()).recordPayoutMove({
    ...{ resource_id: id, request_id: randomUUID(), account_id: `acct_${id}`, livemode: false },
    ...{ from: { status: 'created', version: 1, transition: 1 }, to, change },
    ...{ at: new Date().toISOString(), attention: null },
  });
}

describe('mark_failed on a payout that a bank has queued', () => {
  test.each<[string, PayoutLookup, Parameters<typeof queueingBank>[1], string]>([
    ['does not know it', NOT_FOUND, undefined, 'failed'],
    ['has refused it', REFUSED, undefined, 'failed'],
    ['cancels it', QUEUED, 'cancelled', 'failed'],
    ['does not know it, nor whether it is cancelled', NOT_FOUND, 'unknown', 'failed'],
    ['has it in its queue', QUEUED, undefined, 'submitted'],
    ['has sent it on', SENT, undefined, 'sent'],
    ['is too late to cancel it', NOT_FOUND, 'too_late', 'submitted'],
    ['has it, and cannot cancel it', QUEUED, 'unknown', 'submitted'],
  ])('asks a bank that %s', (_which, known, cancel, status) =>
    withQueued(queueingBank({ lookUpPayout: async () => known }, cancel), async (payout) => {
      const isHeld = status !== 'failed';
      if (isHeld) {
        const unconfirmed = { ...ACT, bank_confirmed_not_executed: false };
        expect(await refusalOf(markFailed(payout, unconfirmed))).toEqual({
          code: 'held_by_bank',
          message: expect.stringMatching(/^The bank holds the payout.*bank_confirmed_not_executed/),
        });
        expect(await payout.stored()).toMatchObject({ status, audit: [] });
        expect(countSends(payout)).toBe(1);
        const money = status === 'sent' ? MONEY.captured : MONEY.reserved;
        expect(await payout.money()).toEqual(money);
      }
      const version = status === 'sent' ? 4 : 3;
      const failed = { status: 'failed', version };
      expect(await markFailed(payout, isHeld ? CONFIRMED : ACT)).toMatchObject(failed);
      expect(await payout.handle.result()).toMatchObject(failed);
      expect(await payout.money()).toEqual(MONEY.untouched);
      const { audit, attention } = await payout.stored();
      expect(audit).toMatchObject([{ who: 'ada', what: 'mark_failed', after: 'failed' }]);
      expect('bank_confirmed_not_executed' in Object(audit[0])).toBe(isHeld);
      expect(attention).toBeNull();
    }),
  );

  test('asks no bank when the operator has its confirmation, and audits that', () => {
    const bank = queueingBank({ lookUpPayout: async () => QUEUED }, 'too_late');
    return withQueued(bank, async (payout) => {
      const code = 'invalid_request';
      const invalid = { ...ACT, bank_confirmed_not_executed: 'yes' };
      expect(await payout.refusal('mark_failed', invalid)).toMatchObject({ code });
      expect(await payout.refusal('mark_completed', CONFIRMED)).toMatchObject({ code });
      expect(await payout.act('mark_failed', CONFIRMED)).toMatchObject({ status: 'failed' });
      await payout.handle.result();
      expect(bank.told).toEqual([`sendPayout ${payout.id}`]);
      const { account_id } = await payout.stored();
      const lines = await setting.stores.auditLog.list({ account_id, limit: 10 });
      const act = { what: 'mark_failed', bank_confirmed_not_executed: true };
      expect(lines).toMatchObject([{ after: act }]);
    });
  });

  test('needs the confirmation of a bank that calls it a duplicate, whatever the connector knows', () =>
    withQueued(
      queueingBank({ lookUpPayout: async () => NOT_FOUND }, 'cancelled'),
      async (payout) => {
        await payout.signal('called_duplicate');
        await payout.becomes({ attention: 'called_duplicate' });
        expect(await refusalOf(markFailed(payout))).toMatchObject({ code: 'held_by_bank' });
        expect(await payout.stored()).toMatchObject({ status: 'submitted', audit: [] });
        expect(await payout.money()).toEqual(MONEY.reserved);
        expect(await markFailed(payout, CONFIRMED)).toMatchObject({ status: 'failed' });
        await payout.handle.result();
        expect(await payout.stored()).toMatchObject({ attention: null });
        expect(await payout.money()).toEqual(MONEY.untouched);
        await saveHistory(payout.handle, 'payout-called-duplicate');
      },
    ));

  test('needs that confirmation also after a snooze and a restart', () =>
    withQueued(
      queueingBank({ lookUpPayout: async () => NOT_FOUND }, 'cancelled'),
      async (payout) => {
        await payout.signal('called_duplicate');
        await payout.becomes({ attention: 'called_duplicate' });
        await payout.act('snooze', { ...ACT, hours: 24 });
        expect(await refusalOf(markFailed(payout))).toMatchObject({ code: 'held_by_bank' });
        await payout.handle.terminate('by mistake');
        await payout.restart();
        await payout.shows('Started again in flight');
        expect(await refusalOf(markFailed(payout))).toMatchObject({ code: 'held_by_bank' });
        const kept = { status: 'submitted', attention: 'called_duplicate' };
        expect(await payout.stored()).toMatchObject(kept);
        await markFailed(payout, CONFIRMED);
        await payout.handle.result();
      },
    ));

  test('is sent by its connector after a release, where its recipient is not verified', () =>
    withQueued(queueingBank({}), async (payout) => {
      const verify = (result: string, second: number) =>
        payout.signal('payee_verified', { occurred_at: `2026-11-20T10:00:0${second}Z`, result });
      const release = () => payout.refusal('release_unverified', ACT);
      const isStored = (result: string) =>
        eventually(`the result ${result}`, async () => {
          const { verification, ...stored } = await payout.stored();
          return verification?.result === result && stored;
        });
      expect(await release()).toMatchObject({ code: 'wrong_state' });
      await verify('no_match', 1);
      await payout.becomes({ attention: 'payee_not_verified' });
      const { version, transition } = await payout.stored();
      await verify('match', 0);
      for (const _time of ['once', 'again']) await verify('close_match', 2);
      expect(await isStored('close_match')).toMatchObject({ version: version + 1, transition });
      expect(await payout.act('release_unverified', ACT)).toMatchObject({ status: 'submitted' });
      const released = { result: 'close_match', released: true };
      expect(await payout.stored()).toMatchObject({
        ...{ verification: released, attention: null, version: version + 2 },
        audit: [{ what: 'release_unverified', who: 'ada' }],
      });
      expect(await release()).toMatchObject({ code: 'wrong_state' });
      await verify('not_possible', 3);
      await payout.becomes({ attention: 'payee_not_verified' });
      await verify('match', 4);
      expect(await isStored('match')).toMatchObject({ status: 'submitted', attention: null });
      expect(await release()).toMatchObject({ code: 'wrong_state' });
      await payout.signal('payee_verified', { result: undefined });
      await payout.becomes({ attention: 'malformed_callback' });
      await payout.endBy('failed');
    }));

  test('asks once for two operators, while callbacks are applied that decide instead', () => {
    const { opened, release } = gate();
    const bank = queueingBank({ lookUpPayout: () => opened.then(() => NOT_FOUND) });
    return withQueued(bank, async ({ id, handle, refusal, signal, becomes, endBy }) => {
      const refusals = [refusal('mark_failed'), refusal('mark_failed')];
      await eventually('the question', async () => bank.told.includes(`lookUpPayout ${id}`));
      await signal('sent');
      await becomes({ status: 'sent' });
      release();
      const held = {
        code: 'held_by_bank',
        message: expect.stringMatching(/became sent meanwhile/),
      };
      expect(await Promise.all(refusals)).toMatchObject([held, held]);
      expect(bank.told.filter((line) => line.startsWith('lookUpPayout'))).toHaveLength(1);
      expect(await endBy('completed')).toMatchObject({ status: 'completed' });
      await saveHistory(handle, 'payout-mark-failed-held');
    });
  });
});

test('mark_failed is refused while the bank is away, and the instruction goes on', () => {
  let isAway = true;
  const lookUpPayout = async () => (isAway ? await loseConnection() : SENT);
  const bank = queueingBank({ sendPayout: loseConnection, lookUpPayout });
  return withUnsentPayout(bank, async (payout) => {
    const { id, handle, stored, becomes } = payout;
    await eventually('a look-up', async () => bank.told.includes(`lookUpPayout ${id}`));
    expect(await payout.refusal('mark_failed')).toEqual({
      code: 'bank_unreachable',
      message: expect.stringMatching(/did not answer in time.*bank_confirmed_not_executed/),
    });
    expect(await stored()).toMatchObject({ status: 'created', audit: [] });
    isAway = false;
    await becomes({ status: 'sent' });
    expect(countSends(payout)).toBe(1);
    await payout.endBy('completed');
    expect(await payout.money()).toEqual(MONEY.captured);
    await saveHistory(handle, 'payout-mark-failed-unreachable');
  });
});

test('the reference that a bank answers to mark_failed is stored as an identifier', () => {
  const { opened, release } = gate();
  let questions = 0;
  const lookUpPayout = async () => {
    questions += 1;
    if (questions === 1) await opened;
    return { ...SENT, bank_reference: 'A&B 50%' };
  };
  const bank = queueingBank({ sendPayout: loseConnection, lookUpPayout });
  return withUnsentPayout(bank, async (payout) => {
    await eventually('a look-up', async () => questions === 1);
    const refused = await refusalOf(markFailed(payout));
    release();
    expect(refused).toMatchObject({ code: 'held_by_bank' });
    const bank_reference = 'A%26B 50%25';
    expect(await payout.stored()).toMatchObject({ status: 'sent', bank_reference });
    const movements = await setting.stores.movements.forResource(payout.id);
    expect(movements).toMatchObject([{ bank_reference }]);
    await payout.endBy('completed');
    expect(await payout.money()).toEqual(MONEY.captured);
  });
});

test('mark_failed is refused after a restart while the earlier instruction may still arrive', () => {
  const { opened, release } = gate();
  const sendPayout = () => opened.then(() => QUEUED);
  const bank = queueingBank({ sendPayout, lookUpPayout: async () => NOT_FOUND });
  return withUnsentPayout(bank, async (payout) => {
    await eventually('the connector to begin', async () => bank.told.length === 1);
    await payout.handle.terminate('by mistake');
    await payout.restart();
    await payout.shows('restarted_in_flight');
    expect(await refusalOf(markFailed(payout))).toMatchObject({
      code: 'wrong_state',
      message: expect.stringMatching(/an earlier instruction may still arrive/),
    });
    release();
    await markFailed(payout, CONFIRMED);
    await payout.handle.result();
  });
});

test('each resubmit cancels the look-up of the one before', () => {
  const bank = queueingBank({ sendPayout: loseConnection, lookUpPayout: loseConnection });
  return withUnsentPayout(bank, async (payout) => {
    const { handle, act, stored } = payout;
    const untilOneLookUp = () =>
      eventually('one look-up', async () => {
        const { pendingActivities } = (await handle.describe()).raw;
        const names = (pendingActivities ?? []).map(({ activityType }) => activityType?.name);
        return names.filter((name) => name === 'lookUpPayout').length === 1;
      });
    await untilOneLookUp();
    const resubmits = Promise.all([act('resubmit'), act('resubmit')]);
    await eventually('both acts', async () => (await stored()).audit.length === 2);
    await untilOneLookUp();
    await markFailed(payout, CONFIRMED);
    expect(await resubmits).toMatchObject([{ status: 'failed' }, { status: 'failed' }]);
    await handle.result();
  });
});

test('a resubmit during an instruction waits for it, and sends nothing when the payout fails meanwhile', () => {
  const { opened, release } = gate();
  const lost = () => opened.then(() => 'loses the connection' as const);
  const bank = PAYOUTS.bank({ send: [lost, 'taken'] });
  return withUnsentPayout(bank, async (payout) => {
    const { handle, act, shows, stored, money } = payout;
    await eventually('the connector to begin', async () => countSends(payout) === 1);
    const resubmitted = act('resubmit');
    await shows('resubmit');
    const marked = act('mark_failed');
    await shows('mark_failed');
    expect(countSends(payout)).toBe(1);
    release();
    expect(await marked).toMatchObject({ status: 'failed' });
    expect(await resubmitted).toMatchObject({ status: 'failed' });
    await handle.result();
    expect(countSends(payout)).toBe(1);
    expect(await money()).toMatchObject({ reserved: 0 });
    expect(await stored()).toMatchObject({ status: 'failed', attention: null });
  });
});

describe('an instruction whose payout fails by a callback', () => {
  test.each([
    ['and its answer is applied before the run ends', [], 'moved_after_failed'],
    // A worker that dies writes it in a task that it does not complete.
    ['and moves nothing when a dying worker has written its answer', ['submitted', 'sent'], null],
  ] as const)('is waited for, %s', (_what, written, attention) => {
    const { opened, release } = gate();
    const bank = PAYOUTS.bank({ send: [() => opened.then(() => 'taken')] });
    return withUnsentPayout(bank, async (payout) => {
      const { id, handle, signal, shows } = payout;
      await eventually('the connector to begin', async () => instructions(bank).length === 1);
      if (written.length > 0) await changeRecord(id, [...written]);
      await signal('failed');
      await shows('**failed**');
      expect((await handle.describe()).status.name).toBe('RUNNING');
      release();
      await handle.result();
      expect(await payout.stored()).toMatchObject({ status: 'failed', attention });
      expect(await payout.differences()).toEqual([]);
      if (attention !== null) return;
      expect(await payout.money()).toMatchObject(MONEY.untouched);
      expect(await payout.entryKinds()).not.toContain('payout_held');
    });
  });
});

test.each([
  ['again after a look-up', ['send', 'lookUp', 'send'], 'payout-outdated'],
  ['when its instruction arrives late', ['send'], null],
])('a payout that failed in the database meanwhile is not sent %s', (_when, calls, history) => {
  const failInRecord = (id: string) =>
    changeRecord(id, ['failed'], { failure: PAYOUT_FAILURES.operator });
  let sends = 0;
  const bank = scriptedBank({
    sendPayout: async ({ payout_id, version }) => {
      sends += 1;
      if (calls.length > 1 && sends === 1) return await loseConnection();
      if (calls.length === 1) await failInRecord(payout_id);
      // As the guard of a connector does.
      const stored = await setting.stores.payouts.get(payout_id);
      return stored?.transition === version ? SENT : { outcome: 'outdated' };
    },
    lookUpPayout: async ({ payout_id }) => {
      await failInRecord(payout_id);
      return NOT_FOUND;
    },
  });
  return withPayout(bank, async ({ id, handle, money, told }) => {
    expect(await handle.result()).toMatchObject({ status: 'failed', version: 2 });
    expect(told).toEqual(calls.map((call) => `${call}Payout ${id}`));
    expect(await money()).toEqual(MONEY.untouched);
    if (history !== null) await saveHistory(handle, history);
  });
});

test('a refund that finds its book locked frees its slot, and is accepted soon afterwards', () =>
  withBank(setting, scriptedBank(), async (connector) => {
    const payment = await settledPayment(setting, connector);
    const { opened: unlocked, release } = gate();
    const lock = withLock({ book: bookId(payment), by: 0 }, () => unlocked);
    const input = refundInput(payment);
    const opening = openRefund(setting, input);
    const handle = setting.env.client.workflow.getHandle(`refund:${input.refund_id}`);
    const delay = await eventually('the delay of the next attempt', async () => {
      const { raw } = await handle.describe().catch(() => ({ raw: {} }));
      const [first] = ('pendingActivities' in raw && raw.pendingActivities) || [];
      const failure = first?.lastFailure?.applicationFailureInfo;
      return failure?.type === 'no_lock' && failure.nextRetryDelay;
    });
    // Not with a back-off that grows to half a minute.
    expect(Number(delay.seconds)).toBeLessThan(25);
    release();
    await lock;
    expect((await opening).opened).toMatchObject({ status: 'processing', version: 1 });
  }));

test.each([
  [{ outcome: 'accepted', bank_reference: 'late' } as const, 'moved_after_failed'],
  [{ outcome: 'refused', code: 'closed', message: 'Closed.' } as const, null],
])('a refund that is being marked as failed while the bank answers %j: %s', (answer, attention) => {
  const { opened, release } = gate();
  const bank = scriptedBank({
    sendRefund: () => Promise.reject(new Error('connection reset')),
    lookUpRefund: () => opened.then(() => answer),
  });
  return withRefund(bank, async ({ handle, id, act, shows, stored, told }) => {
    await eventually('the look-up', async () => told.includes(`lookUpRefund ${id}`));
    const readPending = async () => (await handle.describe()).raw.pendingActivities ?? [];
    // While its updates are held, the transition is under way.
    const { marked } = await withHeldUpdates(setting.stores.refunds, async (reached) => {
      const sent = { marked: act('mark_failed') };
      try {
        await shows('operator ada: mark_failed');
        await eventually('the transition', async () =>
          (await readPending()).some(
            ({ activityType }) => activityType?.name === 'recordRefundMove',
          ),
        );
        await reached;
      } finally {
        release();
      }
      await eventually('the answer', async () => (await readPending()).length === 1);
      return sent;
    });
    expect(await marked).toMatchObject({ status: 'failed' });
    expect(await handle.result()).toMatchObject({ status: 'failed' });
    expect(await stored()).toMatchObject({ status: 'failed', attention });
    if (attention !== null) await saveHistory(handle, 'refund-accepted-after-marked-failed');
  });
});

test('mark_failed on a refund that a connector is sending is refused when the bank accepts it', () => {
  const { opened, release } = gate();
  const bank = REFUNDS.bank({ send: [() => opened.then(() => 'taken')] });
  return withRefund(bank, async (refund) => {
    await eventually('the instruction', async () => instructions(bank).length === 1);
    const marked = refund.refusal('mark_failed');
    await refund.shows('mark_failed');
    release();
    const message = expect.stringMatching(/just taken/);
    expect(await marked).toMatchObject({ code: 'wrong_state', message });
    await refund.endBy('settled');
    expect(await refund.stored()).toMatchObject({ status: 'settled', failure: null });
    expect(await refund.money()).toEqual(REFUNDS.money.taken);
  });
});

describe('mark_failed on a settlement that is pending at its connector', () => {
  const PENDING = { outcome: 'pending' } as const;
  const BACK = { available: `${10n ** 18n}`, reserved: '0' };

  test.each<[string, Partial<CryptoConnectorActivities>]>([
    ['is refused while the connector may broadcast it, unless an operator confirms', {}],
    [
      'releases the balance when the connector cancels it',
      { cancelSettlement: async () => ({ outcome: 'cancelled' }) },
    ],
  ])('%s', (_title, cancel) => {
    const pending = { sendSettlement: async () => PENDING, lookUpSettlement: async () => PENDING };
    return withBank(setting, scriptedChain({ ...pending, ...cancel }), async (connector) => {
      const settlement = await openSettlement(setting, connector);
      await shows(settlement.handle, 'instruction at the connector: pending');
      const mark = (more: object = {}) =>
        unlessUnreachable(() => settlement.act('mark_failed', more));
      const isHeld = !('cancelSettlement' in cancel);
      const confirmed = isHeld ? { bank_confirmed_not_executed: true } : {};
      if (isHeld) {
        expect(await refusalOf(mark())).toEqual({
          code: 'held_by_bank',
          message: expect.stringMatching(/^The bank holds the settlement/),
        });
        const reserved = { available: '0', reserved: BACK.available };
        expect(await settlement.balance()).toEqual(reserved);
      }
      expect(await mark(confirmed)).toMatchObject({ status: 'failed' });
      await settlement.handle.result();
      const audit = [{ what: 'mark_failed', ...confirmed }];
      expect(await settlement.stored()).toMatchObject({ audit });
      expect(await settlement.balance()).toEqual(BACK);
    });
  });
});

describe('the acceptance of payouts', () => {
  const NOT_ACCEPTED = 'temporarily_unavailable';

  type Payout = ReturnType<typeof trackPayout>;

  async function fundPayout(connector: string): Promise<Payout> {
    const input = payoutInput(connector);
    await fund(setting, input);
    return trackPayout(setting, input);
  }

  /** The workflow ends, and leaves no payout, no key and no journal entry; the bank was sent nothing. */
  async function expectRefused(
    { id, handle, entryKinds, money }: Payout,
    { told }: ReturnType<typeof scriptedBank>,
  ): Promise<void> {
    const refused = { payout_id: id, status: 'refused', code: NOT_ACCEPTED };
    expect(await handle.result()).toMatchObject(refused);
    expect(await setting.stores.payouts.get(id)).toBeNull();
    expect(await setting.stores.idempotency.forResource(id)).toBeNull();
    expect(await entryKinds()).toEqual([]);
    expect(await money()).toEqual(MONEY.untouched);
    expect(told).toEqual([]);
  }

  /** Runs a story while workers serve one more queue, on these stores. */
  async function withQueue(
    queue: string,
    story: () => Promise<void>,
    stores: typeof setting.stores = setting.stores,
  ): Promise<void> {
    const stopWorkers = await setting.startWorkers(queue, stores);
    await story().finally(stopWorkers);
  }

  test.concurrent.each([
    ['accept', 'payout-not-accepted-in-time', 5_000, /no money moves|not known yet/, false],
    ['refuse', 'payout-not-known-in-time', 6_000, /not known yet/, true],
  ])(
    'a payout that the database is too slow to %s is refused, and the API is answered in time',
    (_what, history, answered_ms, words, isSlowToRefuse) => {
      const { idempotency } = setting.stores;
      const { opened, release: resume } = gate();
      const delay =
        <Args extends unknown[], T>(act: (...args: Args) => Promise<T>) =>
        (...args: Args): Promise<T> =>
          opened.then(() => act(...args));
      const slow = { ...idempotency, clearRequest: delay(idempotency.clearRequest) };
      const release = isSlowToRefuse ? delay(idempotency.release) : idempotency.release;
      const stores = { ...setting.stores, idempotency: { ...slow, release } };
      const bank = scriptedBank();
      return withBank(setting, bank, async (connector) => {
        const queue = `slow-${randomUUID()}`;
        const story = async () => {
          const payout = await fundPayout(connector);
          const began = Date.now();
          const message = expect.stringMatching(words);
          const refusal = await refusalOf(openPayout(setting, payout.input, queue));
          expect(refusal).toEqual({ code: NOT_ACCEPTED, message });
          const took_ms = Date.now() - began;
          expect(took_ms).toBeGreaterThanOrEqual(answered_ms - 200);
          // A request may take 8 s; the rest is for a busy machine.
          expect(took_ms).toBeLessThan(60_000);
          resume();
          await expectRefused(payout, bank);
          await saveHistory(payout.handle, history);
        };
        await withQueue(queue, () => story().finally(resume), stores);
      });
    },
  );

  describe('a payout that no worker accepts in time', () => {
    /** Opens a payout on a queue that a worker serves only once its time is over. */
    const withLateWorker = (
      meanwhile: (input: PayoutInput) => Promise<unknown>,
      story: (
        payout: Payout,
        bank: ReturnType<typeof scriptedBank>,
        opening: ReturnType<typeof openPayout>,
      ) => Promise<void>,
    ) => {
      const bank = scriptedBank();
      return withBank(setting, bank, async (connector) => {
        const payout = await fundPayout(connector);
        const queue = `away-${randomUUID()}`;
        const opening = openPayout(setting, payout.input, queue);
        const refusal = refusalOf(opening);
        await eventually('the start', () => payout.handle.describe().catch(() => null));
        await setting.env.sleep('6s');
        await meanwhile(payout.input);
        await withQueue(queue, () => story(payout, bank, opening).finally(() => refusal));
      });
    };

    test.concurrent('is refused for good', () =>
      withLateWorker(
        async () => undefined,
        async (payout, bank, opening) => {
          expect(await refusalOf(opening)).toMatchObject({ code: NOT_ACCEPTED });
          await expectRefused(payout, bank);
          await saveHistory(payout.handle, 'payout-no-worker-in-time');
        },
      ));

    /** Asks again once it is sent: a busy machine may not know in its last second what was accepted. */
    async function readOpened(
      { handle, becomes }: Payout,
      opening: ReturnType<typeof openPayout>,
    ): Promise<PayoutState> {
      const refusal = await refusalOf(opening);
      if (refusal?.code !== NOT_ACCEPTED) return (await opening).opened;
      expect(refusal.message).toMatch(/not known yet/i);
      await becomes({ status: 'sent' });
      return await handle.executeUpdate<PayoutState, []>('open');
    }

    test.concurrent('is sent when an attempt whose answer got lost has accepted it', () =>
      withLateWorker(
        async (input) => {
          const created_at = new Date().toISOString();
          const accept_by_ms = Date.now() + 60_000;
          const activities = createPayoutActivities(buildDeps());
          await activities.openPayout({ ...input, created_at, accept_by_ms });
        },
        async (payout, { told }, opening) => {
          const { id: payout_id, handle, becomes, money } = payout;
          const status = expect.stringMatching(/created|sent/);
          expect(await readOpened(payout, opening)).toMatchObject({ payout_id, status });
          await becomes({ status: 'sent' });
          expect(await money()).toEqual(MONEY.captured);
          expect(told).toEqual([`sendPayout ${payout_id}`]);
          await saveHistory(handle, 'payout-accepted-behind');
        },
      ));
  });
});
