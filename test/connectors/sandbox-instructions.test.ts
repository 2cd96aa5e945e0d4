import { retryUntilDone } from '../support/insist';
import { useInstructed } from './instructed';

const { world, instructed } = useInstructed();
const activities = () => world.server.bank.activities;

/** Movements and pending reports of the bank for a resource. */
async function sent(resource_id: string): Promise<object> {
  const read = (name: string) => world.own.collection(name).find({ resource_id }).toArray();
  const [movements, transactions] = [await read('movements'), await read('chain_transactions')];
  return { movements, transactions, rows: (await world.rows(resource_id)).map(({ _id }) => _id) };
}

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
      await world.told(id, 'payment');
      await world.holdLate(id, 'late');
      const ids = { payment_id: id, instruction_id: `reversal:${id}` };
      const input = { ...ids, amount: 4_950, currency: 'EUR' };
      return { id, send: (change: object) => activities().reversePayment({ ...input, ...change }) };
    },
    outcome: 'accepted',
  },
};

test.each(Object.entries(KNOWN))(
  'a %s that differs from its document is not sent; the matching one is',
  async (_, { changes, know, outcome }) => {
    const { id, send } = await know();
    const before = await sent(id);
    for (const [fact, value] of Object.entries(changes)) {
      await expect(send({ [fact]: value })).rejects.toThrow(`${fact}`);
    }
    expect(await sent(id)).toEqual(before);
    expect(await send({})).toMatchObject({ outcome });
    expect(await sent(id)).not.toEqual(before);
  },
);

describe.each(Object.values(instructed))('a $resource', (row) => {
  const { taken, done, takenAnswer, entry, statusOf, know, live, lookUp } = row;

  it('gives the same answer to a repeat, also at once and after a restart; plans once', async () => {
    const { id, send } = await know();
    const answers = await Promise.all(Array.from({ length: 5 }, () => retryUntilDone(send)));
    await world.server.restart();
    answers.push(await send());
    expect(answers[0]).toEqual(takenAnswer);
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(await world.rows(id)).toHaveLength(1);
  });

  it(`is ${done} three seconds later, kept and signalled; a repeat is answered as before`, async () => {
    const { id, send } = await know();
    const answer = await send();
    expect(await row.told(id)).toEqual([done]);
    const [callback] = await world.callbacks(id);
    expect(callback).toMatchObject({ resource: row.resource, connector: 'sandbox', name: done });
    expect({ outcome: taken, bank_reference: callback?.body.bank_reference }).toEqual(answer);
    const sentAt = (await entry(id))?.created_at.getTime() ?? 0;
    expect(Date.parse(callback?.body.occurred_at ?? '') - sentAt).toBeGreaterThanOrEqual(3_000);
    expect(await statusOf(id)).toBe(done);
    expect(await send()).toEqual(answer);
    expect(await lookUp(id)).toEqual(answer);
    expect(await world.rows(id)).toHaveLength(1);
  });

  it('writes nothing in its book when the callbacks could not be planned', async () => {
    const { id, send } = await know();
    await world.own.command({ collMod: 'outbox', validator: { resource: 'payment' } });
    await expect(send()).rejects.toThrow('validation');
    expect(await lookUp(id)).toEqual({ outcome: 'not_found' });
    await world.own.command({ collMod: 'outbox', validator: {} });
    expect(await send()).toEqual(takenAnswer);
    expect(await world.rows(id)).toHaveLength(1);
  });

  it(`leaves it ${taken} with autoplay off`, async () => {
    await world.server.restart({ autoplay: false });
    const { id, send } = await know();
    expect(await send()).toEqual(takenAnswer);
    expect([await world.rows(id), await statusOf(id)]).toEqual([[], taken]);
    await world.server.restart();
  });

  it('refuses what is live', async () => {
    const { id, send } = live();
    expect(await send()).toMatchObject({ outcome: 'refused', code: 'live_not_supported' });
    expect(await world.rows(id)).toEqual([]);
    expect(await lookUp(id)).toEqual({ outcome: 'not_found' });
  });

  it('is outdated when the document has moved on or is final, and waits for one that is missing', async () => {
    const { id, send, sendOutdated } = await know();
    expect(await sendOutdated()).toEqual({ outcome: 'outdated' });
    await row.productSays(id, 'failed');
    expect(await send()).toEqual({ outcome: 'outdated' });
    await row.productForgets(id);
    await expect(send()).rejects.toThrow('not instructed');
    expect(await lookUp(id)).toEqual({ outcome: 'not_found' });
    expect(await world.rows(id)).toEqual([]);
  });

  it('is not found when it was never sent, and found as it was answered', async () => {
    const { id, send } = await know();
    expect(await lookUp(id)).toEqual({ outcome: 'not_found' });
    const answer = await send();
    expect(await lookUp(id)).toEqual(answer);
  });
});
