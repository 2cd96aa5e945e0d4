import { payoutInstruction, refundInstruction } from './bank-server';
import { useBankWorld } from './bank-world';

const world = useBankWorld();

const activities = () => world.server.bank.activities;
const bank_reference = expect.stringMatching(/^SBX[0-9A-F]{12}$/);

/** An instruction that the product knows, and what the bank answers to it. */
interface Instruction {
  id: string;
  send: () => Promise<object>;
  /** Sent at a version that the document has left. */
  outdated?: () => Promise<object>;
}

interface Instructed {
  name: 'sendRefund' | 'sendPayout';
  resource: 'refund' | 'payout';
  book: 'refunds' | 'payouts';
  /** How the bank takes it, and the callback that follows. */
  taken: string;
  done: string;
  make: () => Promise<Instruction>;
  live: () => Instruction;
  lookUp: (id: string) => Promise<object>;
}

const INSTRUCTIONS: Instructed[] = [
  {
    name: 'sendRefund',
    resource: 'refund',
    book: 'refunds',
    taken: 'accepted',
    done: 'settled',
    make: async () => {
      const { id, input } = await world.knowRefund();
      const outdated = () => activities().sendRefund({ ...input, version: 0 });
      return { id, send: () => activities().sendRefund(input), outdated };
    },
    live: () => {
      const input = refundInstruction({ livemode: true });
      return { id: input.refund_id, send: () => activities().sendRefund(input) };
    },
    lookUp: (refund_id) => activities().lookUpRefund({ refund_id }),
  },
  {
    name: 'sendPayout',
    resource: 'payout',
    book: 'payouts',
    taken: 'sent',
    done: 'completed',
    make: async () => {
      const { id, input } = await world.knowPayout();
      const outdated = () => activities().sendPayout({ ...input, version: 0 });
      return { id, send: () => activities().sendPayout(input), outdated };
    },
    live: () => {
      const input = payoutInstruction({ livemode: true });
      return { id: input.payout_id, send: () => activities().sendPayout(input) };
    },
    lookUp: (payout_id) => activities().lookUpPayout({ payout_id }),
  },
];

describe.each(INSTRUCTIONS)('$name', ({ resource, book, taken, done, make, live, lookUp }) => {
  const TAKEN = { outcome: taken, bank_reference };
  const entry = (_id: string) => world[book].findOne({ _id });
  const statusOf = async (id: string) => (await entry(id))?.status;

  it('gives the same answer to a repeat, also at once and after a restart; plans once', async () => {
    const { id, send } = await make();
    const answers = await Promise.all(Array.from({ length: 5 }, send));
    await world.server.restart();
    answers.push(await send());
    expect(answers[0]).toEqual(TAKEN);
    expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
    expect(await world.rows(id)).toHaveLength(1);
  });

  it(`is ${done} three seconds later, kept and signalled; a repeat is answered as before`, async () => {
    const { id, send } = await make();
    const answer = await send();
    expect(await world.told(id, resource)).toEqual([done]);
    const [callback] = await world.callbacks(id);
    expect(callback).toMatchObject({ resource, connector: 'sandbox', name: done });
    expect({ outcome: taken, bank_reference: callback?.body.bank_reference }).toEqual(answer);
    const sentAt = (await entry(id))?.created_at.getTime() ?? 0;
    expect(Date.parse(callback?.body.occurred_at ?? '') - sentAt).toBeGreaterThanOrEqual(3_000);
    expect(await statusOf(id)).toBe(done);
    expect(await send()).toEqual(answer);
    expect(await lookUp(id)).toEqual(answer);
    expect(await world.rows(id)).toHaveLength(1);
  });

  it('writes nothing in its book when the callbacks could not be planned', async () => {
    const { id, send } = await make();
    await world.own.command({ collMod: 'outbox', validator: { resource: 'payment' } });
    await expect(send()).rejects.toThrow('validation');
    expect(await lookUp(id)).toEqual({ outcome: 'not_found' });
    await world.own.command({ collMod: 'outbox', validator: {} });
    expect(await send()).toEqual(TAKEN);
    expect(await world.rows(id)).toHaveLength(1);
  });

  it(`leaves it ${taken} with autoplay off`, async () => {
    await world.server.restart({ autoplay: false });
    const { id, send } = await make();
    expect(await send()).toEqual(TAKEN);
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
    const { id, send, outdated } = await make();
    expect(await outdated?.()).toEqual({ outcome: 'outdated' });
    await world.productSays(resource, id, 'failed');
    expect(await send()).toEqual({ outcome: 'outdated' });
    await world.productForgets(resource, id);
    await expect(send()).rejects.toThrow('not instructed');
    expect(await lookUp(id)).toEqual({ outcome: 'not_found' });
    expect(await world.rows(id)).toEqual([]);
  });

  it('is not found when it was never sent, and found as it was answered', async () => {
    const { id, send } = await make();
    expect(await lookUp(id)).toEqual({ outcome: 'not_found' });
    const answer = await send();
    expect(await lookUp(id)).toEqual(answer);
  });
});
