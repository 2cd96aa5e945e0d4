import {
  MAGIC_AMOUNTS,
  PAYOUT_MAGIC_AMOUNTS,
  REFUND_MAGIC_AMOUNTS,
} from '../../connectors/sandbox/magic-amounts';
import { planApproval, planPayout, planRefund } from '../../connectors/sandbox/plan';
import { retryUntilDone } from '../support/insist';
import { instruction } from './bank-server';
import { useInstructed } from './instructed';

const { world, instructed } = useInstructed();

describe('magic amounts', () => {
  it('are these, as merchants know them, each in one table', () => {
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

  it('count for the resources of their table only', () => {
    const plans = [
      [planApproval, MAGIC_AMOUNTS],
      [planRefund, REFUND_MAGIC_AMOUNTS],
      [planPayout, PAYOUT_MAGIC_AMOUNTS],
    ] as const;
    for (const [plan, own] of plans) {
      const others = plans.flatMap(([, table]) => (table === own ? [] : Object.keys(table)));
      for (const amount of others.map(Number)) {
        expect(plan(amount, true)).toEqual(plan(1_050, true));
      }
    }
  });

  it('of refunds open a session, and of payments are refunded, as any other', async () => {
    for (const amount of Object.keys(REFUND_MAGIC_AMOUNTS).map(Number)) {
      const opened = await world.server.bank.activities.openSession(instruction({ amount }));
      expect(opened.outcome).toBe('opened');
    }
    for (const amount of Object.keys(MAGIC_AMOUNTS).map(Number)) {
      const { send } = await instructed.refund.know(amount);
      expect(await send()).toEqual(instructed.refund.takenAnswer);
    }
  });
});

it.each([
  [66_611, 'refund', 'refund_refused'],
  [66_621, 'payout', 'payout_rejected'],
] as const)(
  '%i of a %s is refused at once, each time, and found as refused',
  async (amount, resource, code) => {
    const row = instructed[resource];
    const { id, send } = await row.know(amount);
    const first = await send();
    expect(first).toMatchObject({ outcome: 'refused', code });
    expect([await send(), await row.lookUp(id)]).toEqual([first, first]);
    expect([await world.rows(id), await row.statusOf(id)]).toEqual([[], 'refused']);
  },
);

it.each([
  [66_613, 'accepted', 'refund'],
  [66_623, 'sent', 'payout'],
  [66_624, 'submitted', 'payout'],
] as const)('%i is answered as %s, and nothing is ever said', async (amount, outcome, resource) => {
  const row = instructed[resource];
  const { id, send } = await row.know(amount);
  const answer = await send();
  expect(answer).toEqual({ ...row.takenAnswer, outcome });
  expect([await send(), await row.lookUp(id)]).toEqual([answer, answer]);
  expect([await world.rows(id), await row.statusOf(id)]).toEqual([[], outcome]);
});

it.concurrent.each([
  [66_614, 'refund'],
  [66_625, 'payout'],
] as const)(
  '%i of a %s is taken, its answer is lost; it is found and ends well',
  async (amount, resource) => {
    const row = instructed[resource];
    const { id, send } = await row.know(amount);
    await expect(send()).rejects.toThrow('The answer of the bank got lost.');
    const found = await row.lookUp(id);
    expect(found).toEqual(row.takenAnswer);
    expect(await send()).toEqual(found);
    expect(await row.told(id)).toEqual([row.done]);
    expect(await world.rows(id)).toHaveLength(1);
  },
);

it.concurrent.each([
  [66_615, 'refund'],
  [66_626, 'payout'],
] as const)(
  '%i of a %s gets lost on its way, is not found, and is taken when sent again',
  async (amount, resource) => {
    const row = instructed[resource];
    const { id, send } = await row.know(amount);
    await expect(send()).rejects.toThrow('lost in transit');
    expect([await row.lookUp(id), await world.rows(id)]).toEqual([{ outcome: 'not_found' }, []]);
    const answers = await Promise.all([send, send].map(retryUntilDone));
    expect(answers).toEqual([row.takenAnswer, answers[0]]);
    expect(await row.lookUp(id)).toEqual(answers[0]);
    expect(await row.told(id)).toEqual([row.done]);
    expect(await world.rows(id)).toHaveLength(1);
  },
);

describe('with autoplay off, by itself,', () => {
  beforeAll(async () => {
    await world.server.restart({ autoplay: false });
  });

  async function play(amount: number, resource: 'refund' | 'payout') {
    const { know, lookUp, takenAnswer, entry, told } = instructed[resource];
    const { id, send } = await know(amount);
    const answer = await send();
    expect(answer).toEqual(takenAnswer);
    const names = await told(id);
    expect(await lookUp(id)).toEqual(answer);
    const rows = await world.rows(id);
    const { created_at, status } = (await entry(id)) ?? {};
    const after = rows.map(({ body }) =>
      Math.round((Date.parse(body.occurred_at) - Number(created_at)) / 1_000),
    );
    return { id, names, rows, after, status };
  }

  /** A busy machine may be late, and never early. */
  function expectNotBefore(after: number[], due: number[]) {
    expect(after.map((at, index) => Math.min(at, due[index] ?? 0))).toEqual(due);
  }

  const CAME_BACK = { code: 'AC04', reason: 'Account closed' };

  it.concurrent.each([
    [
      66_612,
      'refund',
      ['failed'],
      { code: 'account_closed', reason: 'The customer’s account is closed.' },
    ],
    [
      66_622,
      'payout',
      ['failed'],
      { code: 'scheme_rejected', reason: 'The scheme did not take the payout.' },
    ],
    [66_627, 'payout', ['completed', 'returned'], CAME_BACK],
    [66_628, 'payout', ['returned'], CAME_BACK],
  ] as const)(
    '%i of a %s is taken, and %j follow every three seconds, at last with code and reason',
    async (amount, resource, names, words) => {
      const { names: told, rows, after, status } = await play(amount, resource);
      expect(told).toEqual(names);
      expectNotBefore(
        after,
        names.map((_, index) => 3 * (index + 1)),
      );
      expect(status).toBe(names.at(-1));
      expect(rows.at(-1)?.body).toMatchObject(words);
    },
  );

  it.concurrent.each([
    [66_616, 'refund', ['settled', 'failed'], 'settled'],
    [66_629, 'payout', ['completed', 'failed', 'returned', 'returned'], 'returned'],
  ] as const)(
    '%i of a %s is told as %j: the first twice under one id, the others contradict it',
    async (amount, resource, names, status) => {
      const { id, ...played } = await play(amount, resource);
      expect(played.names).toEqual(names);
      expect(played.rows.map(({ name }) => name)).toEqual([names[0], ...names]);
      expectNotBefore(
        played.after,
        [0, ...names].map((_, n) => 3 + n),
      );
      expect(played.status).toBe(status);
      const ids = played.rows.map(({ body }) => body.callback_id);
      expect([ids[1] === ids[0], new Set(ids).size]).toEqual([true, names.length]);
      expect(await world.callbacks(id)).toHaveLength(names.length);
    },
  );
});
