import type { EntryStatus } from '../../connectors/sandbox/book';
import type { OutboxRow } from '../../connectors/sandbox/outbox';
import { payoutInstruction, refundInstruction } from './bank-server';
import { type BankWorld, useBankWorld } from './bank-world';

/** An instruction that the product knows. */
interface Instruction {
  id: string;
  send: () => Promise<object>;
  /** Sent at a version that the document has left. */
  sendOutdated: () => Promise<object>;
}

/** Describes refunds or payouts at the sandbox bank, for tests of rules that both share. */
interface Instructed {
  resource: 'refund' | 'payout';
  /** Status in the bank's book once it has accepted one, and the callback that follows. */
  taken: 'accepted' | 'sent';
  done: 'settled' | 'completed';
  /** Amount about which the bank reports nothing by itself; minor units. */
  silent: number;
  know: (amount?: number) => Promise<Instruction>;
  live: () => { id: string; send: () => Promise<object> };
  lookUp: (id: string) => Promise<object>;
}

/** Starts a sandbox bank for one file's tests, with helpers for its refunds and payouts. */
export function useInstructed() {
  const world = useBankWorld();
  const activities = () => world.server.bank.activities;

  const buildInstruction = (id: string, send: (change?: object) => Promise<object>) => ({
    id,
    send: () => send(),
    sendOutdated: () => send({ version: 0 }),
  });
  const refunds: Instructed = {
    ...{ resource: 'refund', taken: 'accepted', done: 'settled', silent: 66_613 },
    know: async (amount = 1_250) => {
      const { id, input } = await world.knowRefund({ amount });
      return buildInstruction(id, (change) => activities().sendRefund({ ...input, ...change }));
    },
    live: () => {
      const input = refundInstruction({ livemode: true });
      return buildInstruction(input.refund_id, () => activities().sendRefund(input));
    },
    lookUp: (refund_id) => activities().lookUpRefund({ refund_id }),
  };
  const payouts: Instructed = {
    ...{ resource: 'payout', taken: 'sent', done: 'completed', silent: 66_623 },
    know: async (amount = 3_400) => {
      const { id, input } = await world.knowPayout({ amount });
      return buildInstruction(id, (change) => activities().sendPayout({ ...input, ...change }));
    },
    live: () => {
      const input = payoutInstruction({ livemode: true });
      return buildInstruction(input.payout_id, () => activities().sendPayout(input));
    },
    lookUp: (payout_id) => activities().lookUpPayout({ payout_id }),
  };
  const addBook = (row: Instructed) => ({ ...row, ...readBook(world, row) });
  return { world, instructed: { refund: addBook(refunds), payout: addBook(payouts) } };
}

/** The bank's own records of a refund or a payout. */
function readBook(world: BankWorld, { resource, taken, done, silent, know }: Instructed) {
  const book = () => world[`${resource}s` as const];
  const readEntry = (_id: string) => book().findOne({ _id });
  return {
    takenAnswer: { outcome: taken, bank_reference: expect.stringMatching(/^SBX[0-9A-F]{12}$/) },
    readEntry,
    readStatus: async (id: string) => (await readEntry(id))?.status,
    setStatus: (_id: string, status: EntryStatus) =>
      book().updateOne({ _id }, { $set: { status } }),
    /** Resource that the bank has accepted, and about which it reports nothing by itself. */
    takeSilent: async () => {
      const { id, send } = await know(silent);
      await send();
      return id;
    },
    /** Puts a row about it into the outbox, due now. */
    plant: (resource_id: string, change: Partial<OutboxRow> = {}) =>
      world.plant({ resource, resource_id, name: done, becomes: done, ...change }),
    readSentSignals: (id: string) => world.readSentSignals(id, resource),
    /** Money that the bank moved, as text, each under a reference of its own. */
    listMovements: async (id: string) => {
      const rows = await world.listMovements(id);
      expect(new Set(rows.map(({ bank_reference }) => bank_reference)).size).toBe(rows.length);
      return rows.map(({ name, amount, currency }) => `${name} ${amount} ${currency}`);
    },
    signals: (id: string) => world.signals(id, resource),
    productSays: (id: string, status: string) => world.productSays(resource, id, status),
    productLoses: (id: string) => world.productLoses(resource, id),
  };
}
