import { randomUUID } from 'node:crypto';
import { endOfNextBusinessDay } from '../../../src/domain/payout/rails';
import { SEARCH_KEYS } from '../../../src/domain/search-attributes';
import { createTemporalClient } from '../../../src/temporal/client';
import { assertNotBehind } from '../../../src/temporal/start';
import { eventually } from '../../support/eventually';
import { gate } from '../../support/gate';
import { saveHistory } from '../../support/histories';
import { terminateIdle } from '../../support/skipping-server';
import {
  fund,
  openPayout,
  payoutInput,
  scriptedBank,
  withBank,
} from '../../support/workflow-setting';
import { INSTRUCTED, instructions, PAYOUTS, REFUNDS } from '../instructed';
import {
  ACT,
  MONEY,
  refusalOf,
  submittingBank,
  type TrackedPayout,
  trackPayout,
  unlessUnavailable,
  useLifecycles,
} from '../lifecycles';

const lifecycles = useLifecycles();
const { setting, buildDeps, withPayout, withUnsentPayout, withStatus } = lifecycles;

const ALL_EVENTS = ['payout.submitted', 'payout.sent', 'payout.completed'];
const [RESERVED, CAPTURED] = ['payout_reserved', 'payout_captured'];

async function sleepUntil(time: string): Promise<void> {
  const left_ms = Date.parse(time) - (await setting.env.currentTimeMs());
  await setting.env.sleep(Math.max(0, left_ms));
}

// First: time never goes back, and the other tests let years pass.
test('an overdue payout by SEPA over Easter needs attention at 18:00 in Frankfurt on the next business day', async () => {
  await sleepUntil('2032-03-25T12:00:00.000Z');
  const due = '2032-03-30T16:00:00.000Z';
  await withPayout(
    scriptedBank(),
    async ({ handle, stored, shows, attention, becomes, endBy }) => {
      expect((await stored()).due_at).toBe(due);
      await shows(`due ${due}`);
      await sleepUntil('2032-03-30T15:59:00.000Z');
      expect(await attention()).toBeNull();
      await setting.env.sleep('2m');
      await becomes({ attention: 'not_completed' });
      await endBy('completed');
      await saveHistory(handle, 'payout-due-after-easter');
    },
    { method: 'sepa_credit_transfer' },
  );
});

test('an instant payout that its connector watches calls nobody before a transfer would', async () => {
  const bank_reference = 'ref';
  const answer = { outcome: 'submitted', bank_reference, watched: true } as const;
  const bank = scriptedBank({ sendPayout: async () => answer });
  await withUnsentPayout(
    bank,
    async ({ stored, attention, becomes, endBy }) => {
      await becomes({ status: 'submitted' });
      const due = endOfNextBusinessDay(Date.parse((await stored()).due_at));
      await sleepUntil(new Date(due - 60_000).toISOString());
      expect(await attention()).toBeNull();
      await setting.env.sleep('2m');
      await becomes({ attention: 'not_sent' });
      await endBy('completed');
    },
    { method: 'sepa_instant' },
  );
});

test.each([
  ['sepa_instant', 15, 40],
  ['sepa_credit_transfer', 5, 14],
] as const)(
  'by %s, waits between attempts end at a minute, or an hour',
  async (method, least, most) => {
    const lost = { sendPayout: () => Promise.reject(new Error('connection reset')) };
    const bank = scriptedBank({ ...lost, lookUpPayout: async () => ({ outcome: 'not_found' }) });
    await withUnsentPayout(
      bank,
      async ({ act, told }) => {
        await setting.env.sleep('20m');
        const sends = told.filter((line) => line.startsWith('sendPayout')).length;
        expect(sends).toBeGreaterThanOrEqual(least);
        expect(sends).toBeLessThanOrEqual(most);
        await act('mark_failed', { ...ACT, bank_confirmed_not_executed: true });
      },
      { method },
    );
  },
);

test('a payout reserves its money, is sent by the bank and completed', () =>
  withPayout(scriptedBank(), async (payout) => {
    const { id, handle, opened, money } = payout;
    expect(opened).toEqual({ payout_id: id, status: 'sent', version: 3 });
    expect(await money()).toEqual(MONEY.captured);
    const result = await payout.endBy('completed');
    expect(result).toEqual({ payout_id: id, status: 'completed', version: 4 });
    const times = { sent_at: expect.any(String), completed_at: expect.any(String) };
    const stored = { bank_reference: `ref-${id}`, failure: null, returned: null, ...times };
    expect(await payout.stored()).toMatchObject(stored);
    expect(await payout.eventTypes()).toEqual(ALL_EVENTS);
    expect(await payout.entryKinds()).toEqual([RESERVED, CAPTURED]);
    expect(payout.told).toEqual([`sendPayout ${id}`]);
    const { typedSearchAttributes } = await handle.describe();
    expect(typedSearchAttributes.get(SEARCH_KEYS.status)).toBe('completed');
    await saveHistory(handle, 'payout-completed');
  }));

test('a payout that the bank queues is answered as submitted, and each step is recorded', () =>
  withPayout(submittingBank(), async ({ id, handle, opened, signal, endBy, stored, money }) => {
    expect(opened).toEqual({ payout_id: id, status: 'submitted', version: 2 });
    expect(await money()).toEqual(MONEY.reserved);
    await signal('sent');
    const facts = { bank_reference: 'from-callback' };
    // The movement gets its name first.
    expect(await endBy('completed', facts)).toMatchObject({ status: 'completed', version: 5 });
    expect(await stored()).toMatchObject({ ...facts, transition: 4 });
    await saveHistory(handle, 'payout-queued-first');
  }));

test('a callback that skips a status has it recorded as well', () =>
  withStatus.submitted(async ({ id, handle, endBy, eventTypes, stored, money }) => {
    const state = { payout_id: id, status: 'completed', version: 4 };
    expect(await endBy('completed')).toEqual(state);
    expect(await eventTypes()).toEqual(ALL_EVENTS);
    const { sent_at, completed_at, bank_reference } = await stored();
    expect(sent_at).toBe(completed_at);
    expect(bank_reference).toBe('queue-1');
    expect(await money()).toEqual(MONEY.captured);
    await saveHistory(handle, 'payout-jumped');
  }));

const NO_REASON = { code: 'payout_rejected', message: 'The bank rejected the payout.' };

test.each([
  ['submitted', { code: 'AC01', reason: 'No.' }, { code: 'AC01', message: 'No.' }, 'before'],
  ['sent', {}, NO_REASON, 'after'],
] as const)('a %s payout that fails, with %j, gives amount and fee back', (...row) => {
  const [status, facts, failure, when] = row;
  const isSent = status === 'sent';
  return withStatus[status](async (payout) => {
    expect(await payout.money()).toEqual(isSent ? MONEY.captured : MONEY.reserved);
    const state = { payout_id: payout.id, status: 'failed', version: isSent ? 4 : 3 };
    expect(await payout.endBy('failed', facts)).toEqual(state);
    const sent_at = isSent ? expect.any(String) : null;
    const ended = { failure, returned: null, completed_at: null, sent_at };
    expect(await payout.stored()).toMatchObject(ended);
    const events = ALL_EVENTS.slice(0, isSent ? 2 : 1);
    expect(await payout.eventTypes()).toEqual([...events, 'payout.failed']);
    const kinds = isSent ? [CAPTURED, 'payout_reversed'] : ['payout_released'];
    expect(await payout.entryKinds()).toEqual([RESERVED, ...kinds]);
    expect(await payout.money()).toEqual(MONEY.untouched);
    await saveHistory(payout.handle, `payout-failed-${when}-sent`);
  });
});

test('a payout whose instruction the bank refuses is answered as failed', () => {
  const failure = { code: 'blocked', message: 'Blocked.' };
  const bank = scriptedBank({ sendPayout: async () => ({ outcome: 'refused', ...failure }) });
  return withPayout(bank, async ({ id, handle, opened, stored, eventTypes, money }) => {
    expect(opened).toEqual({ payout_id: id, status: 'failed', version: 2 });
    expect(await stored()).toMatchObject({ failure });
    expect(await eventTypes()).toEqual(['payout.failed']);
    expect(await money()).toEqual(MONEY.untouched);
    await handle.result();
    await saveHistory(handle, 'payout-refused-by-bank');
  });
});

const PAYOUTS_MAX = 20;

/** Opens a payout, and another where a busy machine has not looked at it in its 5 s. */
async function openInTime(connector: string) {
  for (let left = PAYOUTS_MAX; ; left -= 1) {
    const input = payoutInput(connector);
    await fund(setting, input, 1_024);
    const refusal = await refusalOf(openPayout(setting, input));
    const payout = trackPayout(setting, input);
    expect(await payout.handle.result()).toMatchObject({ payout_id: payout.id, status: 'refused' });
    if (refusal?.code !== 'temporarily_unavailable' || left === 1) return { ...payout, refusal };
  }
}

test('a payout that the balance does not hold is refused, and stores nothing', () => {
  const bank = scriptedBank();
  return withBank(setting, bank, async (connector) => {
    const { id, input, handle, refusal, ...payout } = await openInTime(connector);
    const code = 'insufficient_balance';
    expect(refusal).toMatchObject({ code });
    const { typedSearchAttributes } = await handle.describe();
    expect(typedSearchAttributes.get(SEARCH_KEYS.status)).toBe('refused');
    const { payouts, idempotency } = setting.stores;
    expect(await payouts.get(id)).toBeNull();
    expect(await idempotency.forResource(id)).toBeNull();
    expect(await payout.entryKinds()).toEqual([]);
    expect(bank.told).toEqual([]);
    // Asked again after the end, the answer is the same.
    const client = createTemporalClient(buildDeps());
    const again = unlessUnavailable(() => client.openPayout(input));
    await expect(again).rejects.toMatchObject({ code });
    await saveHistory(handle, 'payout-insufficient-balance');
  });
});

describe('an act in a wrong state is refused in words, and changes nothing:', () => {
  const ALL_ACTS = ['resubmit', 'mark_returned', 'mark_completed', 'mark_failed'];

  test.each([
    ['completed', ALL_ACTS.filter((act) => act !== 'mark_returned'), MONEY.captured],
    ['failed', ALL_ACTS, MONEY.untouched],
    ['returned', ALL_ACTS, MONEY.returned],
  ] as const)('on a payout that has %s: %j', (end, acts, money) =>
    withStatus.sent(async (payout) => {
      const { id, handle } = payout;
      await payout.endBy(end);
      for (const act of acts) {
        expect(await payout.refusalAfterEnd(act)).toEqual({
          code: 'wrong_state',
          message: expect.stringMatching(`^The payout is ${end}; only one that `),
        });
        expect(await handle.result()).toEqual({ payout_id: id, status: end, version: 4 });
      }
      expect((await payout.stored()).audit).toEqual([]);
      expect(await payout.money()).toEqual(money);
      await saveHistory(handle, `payout-refused-act-after-${end}`);
    }),
  );

  test('on a payout that does not exist, and its workflow fails', async () => {
    const { handle, actAfterEnd } = trackPayout(setting, payoutInput(randomUUID()));
    await expect(actAfterEnd('mark_returned')).rejects.toThrow();
    expect((await handle.describe()).status.name).toBe('FAILED');
  });
});

describe('an overdue payout', () => {
  test.each([
    [{ method: 'card_payout' }, 15 * 60],
    [{ method: 'faster_payments', currency: 'GBP' }, 2 * 3_600],
  ] as const)('by %j is due after %i s', (changes, seconds) => {
    const story = async ({ stored, endBy }: TrackedPayout) => {
      const { created_at, due_at } = await stored();
      expect(Date.parse(due_at) - Date.parse(created_at)).toBe(seconds * 1_000);
      await endBy('completed');
    };
    return withPayout(scriptedBank(), story, changes);
  });

  test('that is snoozed while its connector is away is paid once', () => {
    let isAway = true;
    const bank = scriptedBank({
      sendPayout: async ({ payout_id, version }) => {
        if (isAway) throw new Error('the bank is away');
        // As the guard of a connector does.
        const payout = await setting.stores.payouts.get(payout_id);
        if (payout?.transition !== version) return { outcome: 'outdated' };
        return { outcome: 'sent', bank_reference: 'B-1' };
      },
    });
    return withUnsentPayout(bank, async ({ id, shows, becomes, act, stored, told }) => {
      await shows('never reached the bank');
      await setting.env.sleep('70s');
      await becomes({ attention: 'not_submitted' });
      await act('snooze', { ...ACT, hours: 24 });
      expect(await stored()).toMatchObject({ version: 3, transition: 1, attention: null });
      isAway = false;
      const failed = told.length;
      await setting.env.sleep('2h');
      await becomes({ status: 'sent' });
      expect(await stored()).toMatchObject({ transition: 3 });
      const calls = told.slice(failed).filter((line) => line.startsWith('sendPayout'));
      expect(calls).toEqual([`sendPayout ${id}`]);
    });
  });
});

describe('a payout whose workflow was ended from outside', () => {
  test('is looked up by the run that the next callback starts, where the bank has not sent it', () => {
    const queued = { outcome: 'submitted', bank_reference: 'queue-1' } as const;
    const bank = scriptedBank({
      sendPayout: async () => queued,
      lookUpPayout: async () => ({ ...queued, outcome: 'sent' }),
    });
    return withUnsentPayout(bank, async (payout) => {
      const { id, handle, shows } = payout;
      await shows('instruction at the bank: submitted');
      await terminateIdle(handle);
      await payout.signalAfterEnd('submitted');
      expect(await shows('instruction at the bank: sent')).toContain('restarted_in_flight');
      expect(payout.told).toEqual([`sendPayout ${id}`, `lookUpPayout ${id}`]);
      await payout.endBy('completed');
      const state = { status: 'completed', transition: 4, attention: null };
      expect(await payout.stored()).toMatchObject(state);
      expect(await payout.money()).toEqual(MONEY.captured);
      await saveHistory(handle, 'payout-resumed-submitted');
    });
  });

  test('is not sent again, where the bank has sent it', () =>
    withStatus.sent(async ({ id, handle, report, attention, told }) => {
      await terminateIdle(handle);
      expect(await report('completed')).toMatchObject({ status: 'completed' });
      expect(await attention()).toBeNull();
      expect(told).toEqual([`sendPayout ${id}`]);
      await saveHistory(handle, 'payout-resumed-sent');
    }));
});

test('a document that was read before the run ended is not behind', () =>
  withStatus.sent(async ({ id, endBy, attention }) => {
    await endBy('completed');
    await assertNotBehind(buildDeps(), 'payout', { _id: id, version: 3 });
    expect(await attention()).toBeNull();
  }));

describe('resubmit', () => {
  test('sends a payout again at once, under the same id, that the bank does not know', () => {
    const send = ['loses the connection', 'taken'] as const;
    const bank = PAYOUTS.bank({ send: [...send], lookUp: ['gives up', 'not found'] });
    return withUnsentPayout(bank, async (payout) => {
      const { id, handle, told } = payout;
      // It waits a minute.
      await payout.shows('looked up again later');
      const sent = { payout_id: id, status: 'sent', bank: 'sent' };
      expect(await payout.act('resubmit')).toMatchObject(sent);
      const round = [`sendPayout ${id}`, `lookUpPayout ${id}`];
      expect(told).toEqual([...round, `lookUpPayout ${id}`, `sendPayout ${id}`]);
      const unchanged = { before: 'no attention', after: 'no attention' };
      expect(await payout.stored()).toMatchObject({
        ...{ bank_reference: 'sent-2', transition: 3 },
        audit: [{ who: ACT.operator, what: 'resubmit', why: ACT.reason, ...unchanged }],
      });
      expect(await payout.money()).toEqual(MONEY.captured);
      await setting.env.sleep('2h');
      expect(await payout.endBy('completed')).toMatchObject({ status: 'completed' });
      expect(told).toHaveLength(4);
      await saveHistory(handle, 'payout-resubmitted');
    });
  });
});

const RESUMED = { refund: 'refund-resumed-in-flight', payout: 'payout-resumed-created' };

describe.each(INSTRUCTED)('an instruction of a $resource', (row) => {
  const { resource, done, money } = row;

  test.each([
    ['that arrived is looked up, and not sent again', 'taken', ['send', 'lookUp'], 'looked-up-1'],
    ['that never arrived is sent again', 'not found', ['send', 'lookUp', 'send'], 'sent-2'],
  ] as const)('without an answer %s', async (_title, lookedUp, sent, bank_reference) => {
    const bank = row.bank({ send: ['loses the connection', 'taken'], lookUp: [lookedUp] });
    await row.open(lifecycles, bank, async (subject) => {
      expect(subject.opened).toMatchObject(row.taken);
      await row.isTaken(subject);
      // Under the same id each time.
      expect(instructions(bank)).toEqual(sent.map((word) => `${word} ${subject.id}`));
      expect(await subject.money()).toEqual(money.taken);
      expect(await subject.endBy(done)).toMatchObject({ status: done });
      expect(await subject.stored()).toMatchObject({ bank_reference });
      const history = lookedUp === 'taken' ? 'looked-up' : 'sent-again';
      if (history === 'looked-up' || resource === 'payout') {
        await saveHistory(subject.handle, `${resource}-${history}`);
      }
    });
  });

  test('is looked up first by a run that is started again, and sent if the bank has none', async () => {
    const bank = row.bank({
      send: ['loses the connection', 'taken'],
      lookUp: ['gives up', 'not found'],
    });
    await row.start(lifecycles, bank, async (subject) => {
      const { id, handle } = subject;
      await subject.shows('looked up again later');
      await terminateIdle(handle);
      await subject.restart();
      await eventually('the look-up', async () => instructions(bank).length === 3);
      // A connector might still be at what the run that was ended had sent.
      await lifecycles.setting.env.sleep('31s');
      await row.isTaken(subject);
      await subject.shows('Started again in flight');
      const [send, lookUp] = [`send ${id}`, `lookUp ${id}`];
      expect(instructions(bank)).toEqual([send, lookUp, lookUp, lookUp, send]);
      expect(await subject.money()).toEqual(money.taken);
      expect(await subject.endBy(done)).toMatchObject({ status: done });
      const transition = row.taken.version + 1;
      expect(await subject.stored()).toMatchObject({ transition, bank_reference: 'sent-2' });
      await saveHistory(handle, RESUMED[resource]);
    });
  });
});

test('an instruction whose refusal was lost is looked up, and fails', async () => {
  const bank = PAYOUTS.bank({ send: ['loses the connection'], lookUp: ['refused'] });
  await lifecycles.withPayout(bank, async ({ handle, stored, money }) => {
    expect(await handle.result()).toMatchObject({ status: 'failed', version: 2 });
    expect(await stored()).toMatchObject({ failure: { code: 'no', message: 'No.' } });
    expect(await money()).toEqual(MONEY.untouched);
  });
});

test('an instruction that gets lost three times is sent again each time', async () => {
  const { withRefund, setting } = lifecycles;
  const lost = 'loses the connection';
  const bank = REFUNDS.bank({ send: [lost, lost, lost, 'taken'] });
  await withRefund(bank, async ({ id, handle, shows, endBy }) => {
    await setting.env.sleep('1m');
    expect(await shows('instruction at the bank: accepted')).toContain('never reached the bank');
    const round = [`send ${id}`, `lookUp ${id}`];
    expect(instructions(bank)).toEqual([...round, ...round, ...round, `send ${id}`]);
    expect(await endBy('settled')).toMatchObject({ status: 'settled' });
    await saveHistory(handle, 'refund-sent-again');
  });
});

test('an instruction that its connector gives up is looked up until the bank answers', async () => {
  const { withRefund, setting } = lifecycles;
  const lookUp = ['gives up', 'loses the connection', 'taken'] as const;
  const bank = REFUNDS.bank({ send: ['gives up'], lookUp: [...lookUp] });
  await withRefund(bank, async ({ id, handle, shows, endBy, stored }) => {
    await shows('looked up again later');
    await setting.env.sleep('2m');
    await shows('instruction at the bank: accepted');
    await endBy('settled');
    expect(instructions(bank)).toEqual([`send ${id}`, ...Array(3).fill(`lookUp ${id}`)]);
    expect((await stored()).bank_reference).toBe('looked-up-3');
    await saveHistory(handle, 'refund-connector-gives-up');
  });
});

// Last: an activity under way, even one left by its workflow, keeps this server from skipping time.
test.each(INSTRUCTED)(
  'an instruction of a $resource that an operator marks as failed is not sent again',
  async (row) => {
    const { opened, release } = gate();
    const notFound = async () => {
      await opened;
      return 'not found' as const;
    };
    const bank = row.bank({ send: ['loses the connection'], lookUp: [notFound] });
    await row.start(lifecycles, bank, async ({ id, act, handle, money }) => {
      await eventually('the look-up', async () => instructions(bank).includes(`lookUp ${id}`));
      await act('mark_failed', { ...ACT, ...row.confirmation });
      expect(await handle.result()).toMatchObject({ status: 'failed' });
      release();
      expect(instructions(bank)).toEqual([`send ${id}`, `lookUp ${id}`]);
      expect(await money()).toEqual(row.money.untouched);
    });
  },
);

test('a resubmit waits for no look-up once the bank has reported the payout', () => {
  const { opened, release } = gate();
  const notFound = () => opened.then(() => 'not found' as const);
  const bank = PAYOUTS.bank({ send: ['loses the connection'], lookUp: [notFound] });
  return withUnsentPayout(bank, async ({ id, handle, shows, endBy, told, money }) => {
    await eventually('the question', async () => told.includes(`lookUpPayout ${id}`));
    const resubmission = await handle.startUpdate<object, [object]>('resubmit', {
      args: [ACT],
      waitForStage: 'ACCEPTED',
    });
    await shows('operator ada: resubmit');
    const ended = endBy('completed', { bank_reference: 'from-callback' });
    const answers = await Promise.all([resubmission.result(), ended]);
    release();
    const state = { payout_id: id, status: 'completed' };
    expect(answers).toMatchObject([state, state]);
    expect(told.filter((line) => line.startsWith('sendPayout'))).toHaveLength(1);
    expect(await money()).toEqual(MONEY.captured);
    await saveHistory(handle, 'payout-callback-first');
  });
});
