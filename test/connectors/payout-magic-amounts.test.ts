import {
  MAGIC_AMOUNTS,
  PAYOUT_MAGIC_AMOUNTS,
  REFUND_MAGIC_AMOUNTS,
} from '../../connectors/sandbox/magic-amounts';
import { planApproval, planPayout, planRefund } from '../../connectors/sandbox/plan';
import { useBankWorld } from './bank-world';

const world = useBankWorld();

const activities = () => world.server.bank.activities;
const lookUp = (payout_id: string) => activities().lookUpPayout({ payout_id });
const told = (id: string) => world.told(id, 'payout');

const bank_reference = expect.stringMatching(/^SBX[0-9A-F]{12}$/);
const SENT = { outcome: 'sent', bank_reference };

async function statusOf(_id: string): Promise<string | undefined> {
  return (await world.payouts.findOne({ _id }))?.status;
}

describe('magic amounts of payouts', () => {
  it('are these, as merchants know them, and in no other table', () => {
    const behaviours = (table: Record<string, { behaviour: string }>) =>
      Object.fromEntries(Object.entries(table).map(([key, { behaviour }]) => [key, behaviour]));
    const tables = [MAGIC_AMOUNTS, REFUND_MAGIC_AMOUNTS, PAYOUT_MAGIC_AMOUNTS].map(behaviours);
    expect(tables).toEqual([
      {
        66601: 'slow_session',
        66602: 'declined_at_open',
        66603: 'never_settles',
        66604: 'duplicate_out_of_order',
        66605: 'fails_after_approval',
      },
      {
        66611: 'refused',
        66612: 'fails_later',
        66613: 'silent',
        66614: 'answer_lost',
        66615: 'instruction_lost',
        66616: 'contradictory',
      },
      {
        66621: 'rejected',
        66622: 'fails_later',
        66623: 'silent',
        66624: 'stays_submitted',
        66625: 'answer_lost',
        66626: 'instruction_lost',
        66627: 'comes_back',
        66628: 'comes_straight_back',
        66629: 'contradictory',
      },
    ]);
  });

  it('count for payouts only, and the others not for payouts', () => {
    for (const amount of Object.keys(PAYOUT_MAGIC_AMOUNTS).map(Number)) {
      expect(planApproval(amount, true)).toEqual(planApproval(1_050, true));
      expect(planRefund(amount, true)).toEqual(planRefund(1_050, true));
    }
    for (const table of [MAGIC_AMOUNTS, REFUND_MAGIC_AMOUNTS]) {
      for (const amount of Object.keys(table).map(Number)) {
        expect(planPayout(amount, true)).toEqual(planPayout(1_050, true));
      }
    }
  });

  it('66621 is rejected at once, each time, and found as rejected', async () => {
    const { input, id } = await world.knowPayout({ amount: 66_621 });
    const first = await activities().sendPayout(input);
    expect(first).toMatchObject({ outcome: 'refused', code: 'payout_rejected' });
    expect([await activities().sendPayout(input), await lookUp(id)]).toEqual([first, first]);
    expect([await world.rows(id), await statusOf(id)]).toEqual([[], 'refused']);
  });

  it.each([
    [66_623, 'sent'],
    [66_624, 'submitted'],
  ])('%i is answered as %s now, and nothing is ever said', async (amount, outcome) => {
    const { input, id } = await world.knowPayout({ amount });
    const answers: object[] = [];
    for (let tries = 0; tries < 2; tries += 1) answers.push(await activities().sendPayout(input));
    expect(answers).toEqual(Array(2).fill({ outcome, bank_reference }));
    expect(await lookUp(id)).toEqual(answers[0]);
    expect([await world.rows(id), await statusOf(id)]).toEqual([[], outcome]);
  });

  it.concurrent('66625 is taken, its answer is lost; it is found and completes', async () => {
    const { input, id } = await world.knowPayout({ amount: 66_625 });
    await expect(activities().sendPayout(input)).rejects.toThrow(
      'The answer of the bank got lost.',
    );
    const found = await lookUp(id);
    expect(found).toEqual(SENT);
    expect(await activities().sendPayout(input)).toEqual(found);
    expect(await told(id)).toEqual(['completed']);
    expect(await world.rows(id)).toHaveLength(1);
  });

  it.concurrent('66626 gets lost on its way, is not found, and is taken when sent again', async () => {
    const { input, id } = await world.knowPayout({ amount: 66_626 });
    await expect(activities().sendPayout(input)).rejects.toThrow('lost in transit');
    expect([await lookUp(id), await world.rows(id)]).toEqual([{ outcome: 'not_found' }, []]);
    const again = await Promise.all([
      activities().sendPayout(input),
      activities().sendPayout(input),
    ]);
    expect(again).toEqual([SENT, again[0]]);
    expect(await lookUp(id)).toEqual(again[0]);
    expect(await told(id)).toEqual(['completed']);
    expect(await world.rows(id)).toHaveLength(1);
  });
});

describe('magic amounts of payouts that play by themselves, with autoplay off', () => {
  beforeAll(async () => {
    await world.server.restart({ autoplay: false });
  });

  async function played(amount: number) {
    const { input, id } = await world.knowPayout({ amount });
    const answer = await activities().sendPayout(input);
    expect(answer).toEqual(SENT);
    const names = await told(id);
    expect(await lookUp(id)).toEqual(answer);
    const rows = await world.rows(id);
    const start = (await world.payouts.findOne({ _id: id }))?.created_at.getTime() ?? 0;
    const after = rows.map(({ body }) =>
      Math.round((Date.parse(body.occurred_at) - start) / 1_000),
    );
    return { id, names, rows, after, status: await statusOf(id) };
  }

  it.concurrent('66622 fails three seconds after it was sent, with code and reason', async () => {
    const { names, rows, after, status } = await played(66_622);
    expect([names, after, status]).toEqual([['failed'], [3], 'failed']);
    const reason = 'The scheme did not take the payout.';
    expect(rows[0]?.body).toMatchObject({ code: 'scheme_rejected', reason });
  });

  it.concurrent('66627 completes, and comes back three seconds later', async () => {
    const { names, rows, after, status } = await played(66_627);
    expect([names, after, status]).toEqual([['completed', 'returned'], [3, 6], 'returned']);
    expect(rows[1]?.body).toMatchObject({ code: 'AC04', reason: 'Account closed' });
  });

  it.concurrent('66628 comes straight back', async () => {
    const { names, rows, after, status } = await played(66_628);
    expect([names, after, status]).toEqual([['returned'], [3], 'returned']);
    expect(rows[0]?.body).toMatchObject({ code: 'AC04', reason: 'Account closed' });
  });

  it.concurrent('66629 completes twice under one id, fails, and comes back twice under two', async () => {
    const { id, names, rows, after, status } = await played(66_629);
    expect(names).toEqual(['completed', 'failed', 'returned', 'returned']);
    expect(rows.map(({ name }) => name)).toEqual(['completed', ...names]);
    expect([after, status]).toEqual([[3, 4, 5, 6, 7], 'returned']);
    const ids = rows.map(({ body }) => body.callback_id);
    expect([ids[1] === ids[0], new Set(ids).size]).toEqual([true, 4]);
    expect(await world.callbacks(id)).toHaveLength(4);
  });
});
