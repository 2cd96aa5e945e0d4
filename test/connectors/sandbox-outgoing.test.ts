import { randomUUID } from 'node:crypto';
import { RecipientDeleted } from '../../connectors/contract/recipients';
import {
  MAGIC_AMOUNTS,
  PAYOUT_MAGIC_AMOUNTS,
  REFUND_MAGIC_AMOUNTS,
} from '../../connectors/sandbox/magic-amounts';
import { planApproval, planPayout, planRefund } from '../../connectors/sandbox/plan';
import { DecryptionError } from '../../src/encryption/encrypter';
import { retryUntilDone } from '../support/insist';
import { RECIPIENT } from './bank-server';
import { useInstructed } from './instructed';

/** Refunds, payouts and settlements that the product instructs the sandbox bank to send. */
const { world, instructed } = useInstructed();
const activities = () => world.server.bank.activities;
const lookUpPayout = (payout_id: string) => activities().lookUpPayout({ payout_id });
const NOT_FOUND = { outcome: 'not_found' };

/** Instructions that the product knows, with the facts that another client of Temporal changes. */
const KNOWN = {
  payout: {
    changes: { amount: 3_401, currency: 'USD', method: 'card_payout', version: undefined },
    know: async () => {
      const { id, input } = await world.knowPayout();
      return { id, send: (change: object) => activities().sendPayout({ ...input, ...change }) };
    },
    outcome: 'sent',
  },
  refund: {
    changes: { amount: 1_251, currency: 'USD', payment_id: 'other', payment_bank_reference: 'B' },
    know: async () => {
      const { id, input } = await world.knowRefund();
      return { id, send: (change: object) => activities().sendRefund({ ...input, ...change }) };
    },
    outcome: 'accepted',
  },
  settlement: {
    changes: { amount: '1001', asset: 'USDC', wallet_address: `0x${'1'.repeat(40)}` },
    know: async () => {
      const { id, input } = await world.knowSettlement();
      return { id, send: (change: object) => activities().sendSettlement({ ...input, ...change }) };
    },
    outcome: 'sent',
  },
  reversal: {
    changes: { amount: 4_951, currency: 'USD', instruction_id: 'reversal:more' },
    know: async () => {
      const { id, url } = await world.openFor();
      await world.approve(url);
      await world.readSentSignals(id, 'payment');
      await world.holdLate(id, 'late');
      const ids = { payment_id: id, instruction_id: `reversal:${id}` };
      const input = { ...ids, amount: 4_950, currency: 'EUR' };
      return { id, send: (change: object) => activities().reversePayment({ ...input, ...change }) };
    },
    outcome: 'accepted',
  },
};

test.each(Object.entries(KNOWN))(
  'the bank sends a %s only when all its facts match its document',
  async (_, { changes, know, outcome }) => {
    const { id, send } = await know();
    const readSent = async () => [
      await world.listMovements(id),
      await world.own.collection('chain_transactions').find({ resource_id: id }).toArray(),
      await world.rows(id),
    ];
    const before = await readSent();
    for (const [fact, value] of Object.entries(changes)) {
      await expect(send({ [fact]: value })).rejects.toThrow(`${fact}`);
    }
    expect(await readSent()).toEqual(before);
    expect(await send({})).toMatchObject({ outcome });
    expect(await readSent()).not.toEqual(before);
  },
);

describe.each(Object.values(instructed))('a $resource', (row) => {
  const { taken, done, takenAnswer, readEntry, readStatus, know, live, lookUp } = row;

  it('gives the same answer to five repeats at once and after a restart, and plans once', async () => {
    const { id, send } = await know();
    const answers = await Promise.all(Array.from({ length: 5 }, () => retryUntilDone(send)));
    await world.server.restart();
    answers.push(await send());
    expect(answers[0]).toEqual(takenAnswer);
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(await world.rows(id)).toHaveLength(1);
  });

  it(`is ${done} three seconds later by one signal, and answers a repeat as before`, async () => {
    const { id, send } = await know();
    expect(await lookUp(id)).toEqual(NOT_FOUND);
    const answer = await send();
    expect(await row.readSentSignals(id)).toEqual([done]);
    const [callback] = await world.callbacks(id);
    expect(callback).toMatchObject({ resource: row.resource, connector: 'sandbox', name: done });
    expect({ outcome: taken, bank_reference: callback?.body.bank_reference }).toEqual(answer);
    const sentAt = (await readEntry(id))?.created_at.getTime() ?? 0;
    expect(Date.parse(callback?.body.occurred_at ?? '') - sentAt).toBeGreaterThanOrEqual(3_000);
    expect(await readStatus(id)).toBe(done);
    expect([await send(), await lookUp(id)]).toEqual([answer, answer]);
    expect(await world.rows(id)).toHaveLength(1);
  });

  it('is not in the book when its callbacks could not be planned', async () => {
    const { id, send } = await know();
    await world.own.command({ collMod: 'outbox', validator: { resource: 'payment' } });
    await expect(send()).rejects.toThrow('validation');
    expect(await lookUp(id)).toEqual(NOT_FOUND);
    await world.own.command({ collMod: 'outbox', validator: {} });
    expect(await send()).toEqual(takenAnswer);
    expect(await world.rows(id)).toHaveLength(1);
  });

  it(`stays ${taken} with autoplay off`, async () => {
    await world.server.restart({ autoplay: false });
    const { id, send } = await know();
    expect(await send()).toEqual(takenAnswer);
    expect([await world.rows(id), await readStatus(id)]).toEqual([[], taken]);
    await world.server.restart();
  });

  it('is refused in live', async () => {
    const decryptRecipient = jest.fn(async () => RECIPIENT);
    await world.server.restart({ decryptRecipient });
    const { id, send } = live();
    expect(await send()).toMatchObject({ outcome: 'refused', code: 'live_not_supported' });
    expect([await world.rows(id), await lookUp(id)]).toEqual([[], NOT_FOUND]);
    expect(decryptRecipient).not.toHaveBeenCalled();
    await world.server.restart();
  });

  it('is outdated when its document has another version or is final, and waits for a missing one', async () => {
    const { id, send, sendOutdated } = await know();
    expect(await sendOutdated()).toEqual({ outcome: 'outdated' });
    await row.productSays(id, 'failed');
    expect(await send()).toEqual({ outcome: 'outdated' });
    await row.productLoses(id);
    await expect(send()).rejects.toThrow('not instructed');
    expect([await lookUp(id), await world.rows(id)]).toEqual([NOT_FOUND, []]);
  });
});

describe('a cancellation', () => {
  const cancelPayout = (payout_id: string) => activities().cancelPayout?.({ payout_id });
  const CANCELLED = { outcome: 'cancelled' };
  const TOO_LATE = { outcome: 'too_late' };
  const REFUSED = { outcome: 'refused', code: 'cancelled', message: expect.any(String) };

  it('refuses a payout that arrives later', async () => {
    const { input, id } = await world.knowPayout();
    expect([await cancelPayout(id), await cancelPayout(id)]).toEqual([CANCELLED, CANCELLED]);
    expect([await lookUpPayout(id), await activities().sendPayout(input)]).toEqual([
      REFUSED,
      REFUSED,
    ]);
    expect(await world.rows(id)).toEqual([]);
  });

  it('refuses a settlement that arrives later', async () => {
    const crypto_settlement_id = randomUUID();
    const cancel = () => activities().cancelSettlement?.({ crypto_settlement_id });
    expect([await cancel(), await cancel()]).toEqual([CANCELLED, CANCELLED]);
    expect(await activities().lookUpSettlement({ crypto_settlement_id })).toEqual(REFUSED);
    const { input } = await world.knowSettlement();
    const instruction = { ...input, crypto_settlement_id };
    expect(await activities().sendSettlement(instruction)).toEqual(REFUSED);
  });

  it('reaches a payout whose instruction was lost', async () => {
    const { input, id } = await world.knowPayout({ amount: 66_626 });
    await expect(activities().sendPayout(input)).rejects.toThrow('lost');
    expect(await cancelPayout(id)).toEqual(CANCELLED);
    expect(await activities().sendPayout(input)).toEqual(REFUSED);
  });

  it.each([
    ['sent', 3_400, TOO_LATE],
    ['queued', 66_624, TOO_LATE],
    ['rejected', 66_621, CANCELLED],
  ])('leaves a payout that the bank has %s as it is', async (_case, amount, answer) => {
    const { input, id } = await world.knowPayout({ amount });
    const sent = await activities().sendPayout(input);
    expect(await cancelPayout(id)).toEqual(answer);
    expect(await lookUpPayout(id)).toEqual(sent);
  });

  it('that races with the instruction gives one of the two results', async () => {
    const { input, id } = await world.knowPayout();
    const [answer, cancelled] = await Promise.all([
      retryUntilDone(() => activities().sendPayout(input)),
      retryUntilDone(() => Promise.resolve(cancelPayout(id))),
    ]);
    const wasSent = answer.outcome === 'sent';
    expect(cancelled).toEqual(wasSent ? TOO_LATE : CANCELLED);
    const status = wasSent ? 'sent' : 'refused';
    expect(await world.payouts.findOne({ _id: id })).toMatchObject({ status });
  });
});

describe('the recipient of a payout', () => {
  afterEach(async () => {
    await world.server.restart();
  });

  it('reads the payout’s reference on the statement', async () => {
    const { input, id } = await world.knowPayout();
    const texts = new Map([[id, 'Salary 11/2026']]);
    await world.server.restart({ readReference: async (payout) => texts.get(payout) ?? null });
    await activities().sendPayout(input);
    expect(await world.payouts.findOne({ _id: id })).toMatchObject({ statement: 'Salary 11/2026' });
  });

  it('is decrypted by the payout’s id, and appears in no answer and no document', async () => {
    const decryptRecipient = jest.fn(async () => RECIPIENT);
    await world.server.restart({ decryptRecipient });
    const answers: unknown[] = [];
    for (const amount of [3_400, ...Object.keys(PAYOUT_MAGIC_AMOUNTS).map(Number)]) {
      const { input, id } = await world.knowPayout({ amount });
      answers.push(await activities().sendPayout(input).catch(String), await lookUpPayout(id));
      expect(decryptRecipient).toHaveBeenLastCalledWith(id);
    }
    const collections = await world.own.collections();
    const documents = await Promise.all(collections.map((each) => each.find().toArray()));
    const text = JSON.stringify([answers, documents]);
    expect(text).toContain('scheme_rejected');
    const { type: _, country: _also, ...personal } = RECIPIENT;
    for (const value of Object.values(personal)) {
      if (value !== null) expect(text).not.toContain(value);
    }
  });

  it('that cannot be decrypted causes an error without its cause, and the payout can be repeated', async () => {
    const decryptRecipient = async () => {
      throw new SyntaxError(`Unexpected token in JSON: ${JSON.stringify(RECIPIENT)}`);
    };
    await world.server.restart({ decryptRecipient });
    const { input, id } = await world.knowPayout();
    const error: unknown = await activities()
      .sendPayout(input)
      .catch((thrown) => thrown);
    expect(error).toEqual(new Error('The recipient’s details could not be opened (SyntaxError).'));
    expect(error).not.toHaveProperty('cause');
    expect(error).not.toHaveProperty('nonRetryable');
    expect([await world.rows(id), await lookUpPayout(id)]).toEqual([[], NOT_FOUND]);
    await world.server.restart();
    expect(await activities().sendPayout(input)).toEqual(instructed.payout.takenAnswer);
  });

  it('that was deleted ends the payout for good, even if an earlier attempt has decrypted it', async () => {
    const { input, id } = await world.knowPayout();
    let release = () => {};
    const slow = new Promise<typeof RECIPIENT>((resolve) => {
      release = () => resolve(RECIPIENT);
    });
    const decryptRecipient = jest.fn<Promise<typeof RECIPIENT>, [string]>(() => slow);
    await world.server.restart({ decryptRecipient });
    const earlier = activities().sendPayout(input);
    while (decryptRecipient.mock.calls.length === 0) await new Promise(setImmediate);
    decryptRecipient.mockImplementation(() => Promise.reject(new RecipientDeleted()));
    const refused = {
      outcome: 'refused',
      code: 'recipient_deleted',
      message: 'The recipient was deleted before the payout was sent.',
    };
    expect(await activities().sendPayout(input)).toEqual(refused);
    release();
    expect([await earlier, await lookUpPayout(id)]).toEqual([refused, refused]);
  });

  it('is not decrypted for the repeat of a payout that was sent', async () => {
    const { input, id } = await world.knowPayout();
    const answer = await activities().sendPayout(input);
    const decryptRecipient = () => Promise.reject(new DecryptionError());
    await world.server.restart({ decryptRecipient });
    expect([await activities().sendPayout(input), await lookUpPayout(id)]).toEqual([
      answer,
      answer,
    ]);
  });
});

describe('magic amounts', () => {
  it('change only the resources of their own table', () => {
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

  const ANSWER_LOST = 'The answer of the bank got lost.';
  const INSTRUCTION_LOST = 'lost in transit';

  it.concurrent.each([
    ['refund', 1_250, null, ['settled -1250 EUR']],
    ['refund', 66_614, ANSWER_LOST, ['settled -66614 EUR']],
    ['refund', 66_615, INSTRUCTION_LOST, ['settled -66615 EUR']],
    ['payout', 3_400, null, ['sent -3400 EUR']],
    ['payout', 66_625, ANSWER_LOST, ['sent -66625 EUR']],
    ['payout', 66_626, INSTRUCTION_LOST, ['sent -66626 EUR']],
  ] as const)(
    'a %s of %i ends well after the first error (%s), and moves money once',
    async (resource, amount, error, movements) => {
      const row = instructed[resource];
      const { id, send } = await row.know(amount);
      if (error !== null) {
        await expect(send()).rejects.toThrow(error);
        const isFound = error === ANSWER_LOST;
        expect(await row.lookUp(id)).toEqual(isFound ? row.takenAnswer : NOT_FOUND);
        expect(await world.rows(id)).toHaveLength(isFound ? 1 : 0);
      }
      const answers = await Promise.all([send, send].map(retryUntilDone));
      expect(answers).toEqual([row.takenAnswer, answers[0]]);
      expect(await row.lookUp(id)).toEqual(answers[0]);
      expect(await row.readSentSignals(id)).toEqual([row.done]);
      expect(await world.rows(id)).toHaveLength(1);
      expect(await row.listMovements(id)).toEqual(movements);
    },
  );

  describe('with autoplay off', () => {
    beforeAll(async () => {
      await world.server.restart({ autoplay: false });
    });

    const CAME_BACK = { code: 'AC04', reason: 'Account closed' };
    const ACCOUNT_CLOSED = {
      code: 'account_closed',
      reason: 'The customer’s account is closed.',
    };
    const NOT_TAKEN = { code: 'scheme_rejected', reason: 'The scheme did not take the payout.' };

    it.concurrent.each([
      ['refund', 66_611, 'refused', 'refund_refused', []],
      ['refund', 66_613, 'accepted', undefined, []],
      ['payout', 66_621, 'refused', 'payout_rejected', []],
      ['payout', 66_623, 'sent', undefined, ['sent -66623 EUR']],
      ['payout', 66_624, 'submitted', undefined, []],
    ] as const)(
      'a %s of %i is %s (%s) each time, and the bank reports nothing',
      async (resource, amount, outcome, code, movements) => {
        const row = instructed[resource];
        const { id, send } = await row.know(amount);
        const answer = await send();
        const refusal = { outcome, code, message: expect.any(String) };
        expect(answer).toEqual(code === undefined ? { ...row.takenAnswer, outcome } : refusal);
        expect([await send(), await row.lookUp(id)]).toEqual([answer, answer]);
        expect([await world.rows(id), await row.readStatus(id)]).toEqual([[], outcome]);
        expect(await row.listMovements(id)).toEqual(movements);
      },
    );

    it.concurrent.each([
      ['refund', 66_612, ['failed'], ACCOUNT_CLOSED, 'failed', []],
      ['refund', 66_616, ['settled', 'settled', 'failed'], {}, 'settled', ['settled -66616 EUR']],
      ['payout', 66_622, ['failed'], NOT_TAKEN, 'failed', ['sent -66622 EUR', 'failed 66622 EUR']],
      [
        ...(['payout', 66_627, ['completed', 'returned'], CAME_BACK, 'returned'] as const),
        ['sent -66627 EUR', 'returned 66627 EUR'],
      ],
      [
        ...(['payout', 66_628, ['returned'], CAME_BACK, 'returned'] as const),
        ['sent -66628 EUR', 'returned 66628 EUR'],
      ],
      [
        ...(['payout', 66_629] as const),
        ['completed', 'completed', 'failed', 'returned', 'returned'],
        ...([CAME_BACK, 'returned', ['sent -66629 EUR', 'returned 66629 EUR']] as const),
      ],
    ] as const)(
      'a %s of %i is reported as %j, at last with %j',
      async (resource, amount, names, last, status, movements) => {
        const row = instructed[resource];
        const { id, send } = await row.know(amount);
        const answer = await send();
        expect(answer).toEqual(row.takenAnswer);
        // A report that repeats the first one has its callback id, and is signaled once.
        const signaled = names.filter((name, at) => at !== 1 || name !== names[0]);
        expect(await row.readSentSignals(id)).toEqual(signaled);
        expect([await row.lookUp(id), await row.readStatus(id)]).toEqual([answer, status]);
        const rows = await world.rows(id);
        expect(rows.map(({ name }) => name)).toEqual(names);
        expect(rows.at(-1)?.body).toMatchObject(last);
        const ids = rows.map(({ body }) => body.callback_id);
        expect([ids[1] === ids[0], new Set(ids).size]).toEqual([
          signaled.length < names.length,
          signaled.length,
        ]);
        expect(await world.callbacks(id)).toHaveLength(signaled.length);
        // A busy machine may be late, and never early: what contradicts follows each second.
        const created_at = Number((await row.readEntry(id))?.created_at);
        const step = signaled.length < names.length ? 1 : 3;
        for (const [at, { body }] of rows.entries()) {
          const after = Math.round((Date.parse(body.occurred_at) - created_at) / 1_000);
          expect(after).toBeGreaterThanOrEqual(3 + step * at);
        }
        expect(await row.listMovements(id)).toEqual(movements);
      },
    );
  });
});
