import type { Duration } from '@temporalio/common';
import type { PayoutCallbackName } from '../../../src/domain/callback/callback';
import type { PayoutInput } from '../../../src/domain/payout/workflow';
import { readBalances } from '../../support/book';
import { saveHistory } from '../../support/histories';
import { scriptedBank } from '../../support/workflow-setting';
import { ACT, MONEY, type TrackedPayout, useLifecycles } from '../lifecycles';

const { setting, withPayout } = useLifecycles();

/** A report of the bank, an act of an operator, or an event between them. */
type Step =
  | [what: 'sleep', duration: Duration]
  | [what: 'save', history: string]
  /** Part of the refusal, or the payout and its balances then. */
  | [what: (typeof ACTS)[number], params: object, expected: string | Partial<State>]
  | [what: PayoutCallbackName, facts: object, expected: Partial<State>];
type State = Awaited<ReturnType<typeof readState>>;

const ACTS = ['mark_returned', 'acknowledge', 'resolve_movement'] as const;

async function readState({ account_id, stored, money }: TrackedPayout) {
  const { status, attention } = await stored();
  const at = await readBalances(setting.stores, `${account_id}:sandbox:EUR`);
  return { status, attention, ...(await money()), late: at('suspense.late') ?? 0 };
}

async function play(payout: TrackedPayout, step: Step): Promise<void> {
  const { handle } = payout;
  if (step[0] === 'sleep') return await setting.env.sleep(step[1]);
  if (step[0] === 'save') return await saveHistory(handle, step[1]);
  const [what, params, expected] = step;
  if (typeof expected === 'string') {
    const { code, message } = (await payout.refusalAfterEnd(what, { ...ACT, ...params })) ?? {};
    return expect(`${code}: ${message}`).toContain(expected);
  }
  const act = ACTS.find((each) => each === what);
  if (act !== undefined) {
    await payout.actAfterEnd(act, { ...ACT, ...params });
  } else {
    const occurred_at = new Date(await setting.env.currentTimeMs()).toISOString();
    await payout.signalAfterEnd(what as PayoutCallbackName, { occurred_at, ...params });
  }
  const { status, attention } = expected;
  if (status !== undefined && status !== 'sent') await handle.result();
  if (attention !== undefined) await payout.becomes({ attention });
  expect(await readState(payout)).toMatchObject(expected);
  expect(await payout.differences()).toEqual([]);
}

interface Row {
  title: string;
  steps: Step[];
  stored?: object;
  changes?: Partial<PayoutInput>;
  /** Kinds of the journal entries after the payout was sent. */
  kinds?: string[];
  unapplied?: string[];
}

const CARD = { method: 'card_payout', can_be_returned: false } as const;
const AC04 = { code: 'AC04', reason: 'Account closed' };
const [LESS, R1, R2] = [
  { amount: 900, currency: 'EUR', bank_reference: 'R-1' },
  { bank_reference: 'R-1' },
  { bank_reference: 'R-2' },
];
const NOTHING_HELD = { late: 0 };
const COMPLETED = { status: 'completed', attention: null, ...MONEY.captured } as const;
const RETURNED = {
  ...({ status: 'returned', attention: null } as const),
  ...{ ...MONEY.returned, ...NOTHING_HELD },
};
/** All of it is back, and in suspense. */
const HELD = { ...MONEY.captured, atBank: 0, late: 1_000 };
const LESS_HELD = {
  ...({ status: 'sent', attention: 'amount_differs' } as const),
  ...{ ...MONEY.captured, atBank: 100, late: 900 },
};
const SECOND = {
  ...({ ...RETURNED, attention: 'second_return' } as const),
  ...{ atBank: -1_000, late: 1_000 },
};
/** The merchant has what came back once more. */
const CREDITED_TWICE = {
  ...({ status: 'returned', attention: null } as const),
  ...{ ...NOTHING_HELD, available: MONEY.returned.available + 1_000, atBank: -1_000 },
};

test.each<Row>([
  {
    title: 'straight from sent credits the amount without the fee',
    steps: [
      ['returned', AC04, RETURNED],
      ['save', 'payout-returned-from-sent'],
    ],
    stored: { version: 4, returned: AC04, failure: null, completed_at: expect.any(String) },
    kinds: ['payout_returned'],
  },
  {
    title: 'without a reason gets one',
    steps: [['returned', {}, RETURNED]],
    stored: {
      returned: { code: 'returned', reason: 'The receiving bank sent the payout back.' },
    },
  },
  {
    title: 'counts once, and a second one without a reference needs attention',
    steps: [
      ['completed', {}, COMPLETED],
      ['sleep', '5 days'],
      ['returned', { ...AC04, callback_id: 'R-1' }, RETURNED],
      ['save', 'payout-returned-days-later'],
      // The connector repeats it when it crashed before it knew that the signal had arrived.
      ['returned', { ...AC04, callback_id: 'R-1' }, RETURNED],
      ['returned', { reason: 'Once more' }, { ...RETURNED, attention: 'second_return' }],
      ['save', 'payout-second-return'],
    ],
    stored: { transition: 5, returned: AC04 },
    kinds: ['payout_returned'],
    unapplied: ['returned: the payout has come back already'],
  },
  {
    title: 'of day 61 is in suspense until an operator marks it',
    steps: [
      ['completed', {}, COMPLETED],
      ['sleep', '61 days'],
      ['returned', AC04, { ...COMPLETED, ...HELD, attention: 'return_too_late' }],
      ['mark_returned', {}, RETURNED],
      ['save', 'payout-marked-returned-after-end'],
    ],
    stored: {
      transition: 5,
      returned: { code: 'returned', reason: 'The bank reported that the payout came back.' },
      audit: [{ who: 'ada', what: 'mark_returned', before: 'completed', after: 'returned' }],
    },
    unapplied: ['returned: a payout comes back within 60 days'],
  },
  {
    title: 'on a rail where nothing comes back cannot be marked after the end',
    changes: CARD,
    steps: [
      ['completed', {}, COMPLETED],
      ['mark_returned', {}, 'wrong_state: Nothing comes back on the rail card_payout.'],
    ],
  },
  {
    title: 'on a rail where nothing comes back is in suspense',
    changes: CARD,
    steps: [
      ['mark_returned', {}, 'wrong_state: Nothing comes back on the rail card_payout.'],
      ['returned', AC04, { status: 'sent', ...HELD, attention: 'return_not_possible' }],
      ['completed', {}, { ...COMPLETED, ...HELD, attention: 'return_not_possible' }],
    ],
    stored: { returned: null },
    unapplied: ['returned: nothing comes back on this rail'],
  },
  {
    title: 'of less is in suspense, whatever is reported, until an operator credits it',
    steps: [
      ['returned', LESS, LESS_HELD],
      ['returned', LESS, LESS_HELD],
      ['returned', {}, LESS_HELD],
      ['completed', {}, { ...LESS_HELD, status: 'completed' }],
      ['save', 'payout-return-held'],
      ['acknowledge', {}, 'money_in_suspense'],
      ['mark_returned', { amount: 900 }, { ...RETURNED, available: 8_975 + 900, atBank: 100 }],
    ],
    kinds: ['payout_held', 'payout_returned'],
  },
  {
    title: 'of less that never came is said so by an operator',
    steps: [
      ['returned', LESS, LESS_HELD],
      ['resolve_movement', { as: 'never_happened' }, { ...MONEY.captured, ...NOTHING_HELD }],
      ['mark_returned', {}, RETURNED],
    ],
  },
  {
    title: 'of a smaller amount is part of what a failed payout returns to its balance',
    steps: [
      ['returned', LESS, LESS_HELD],
      ['failed', {}, { status: 'failed', ...MONEY.untouched, ...NOTHING_HELD }],
    ],
  },
  {
    title: 'under another reference is in suspense until an operator credits it, once',
    steps: [
      ['returned', R1, RETURNED],
      ['returned', R1, { status: 'returned', ...MONEY.returned }],
      ['returned', R2, SECOND],
      ['returned', R2, SECOND],
      ['resolve_movement', { as: 'merchant' }, CREDITED_TWICE],
      ['resolve_movement', { as: 'merchant' }, 'wrong_state: No money is in suspense.'],
      ['returned', R2, { status: 'returned' }],
    ],
  },
])('a return $title', ({ steps, stored = {}, changes, kinds, unapplied }) => {
  const story = async (payout: TrackedPayout) => {
    for (const step of steps) await play(payout, step);
    expect(await payout.stored()).toMatchObject(stored);
    if (unapplied !== undefined) expect(await payout.unapplied()).toEqual(unapplied);
    expect(payout.told).toEqual([`sendPayout ${payout.id}`]);
    if (kinds === undefined) return;
    expect(await payout.entryKinds()).toEqual(['payout_reserved', 'payout_captured', ...kinds]);
    const events = (await payout.eventTypes()).filter((type) => type !== 'payout.completed');
    expect(events).toEqual(['payout.submitted', 'payout.sent', 'payout.returned']);
  };
  return withPayout(scriptedBank(), story, changes);
});

test('a return of day 59 counts, also when it is reported on day 61', () =>
  withPayout(scriptedBank(), async (payout) => {
    await play(payout, ['completed', {}, COMPLETED]);
    await setting.env.sleep('59 days');
    const occurred_at = new Date(await setting.env.currentTimeMs()).toISOString();
    await setting.env.sleep('2 days');
    await play(payout, ['returned', { occurred_at }, RETURNED]);
  }));
