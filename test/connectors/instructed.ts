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

/** Refunds and payouts at the sandbox bank: what holds for both, in the words of each. */
interface Instructed {
  resource: 'refund' | 'payout';
  /** How the bank takes it, and the callback that follows. */
  taken: 'accepted' | 'sent';
  done: 'settled' | 'completed';
  /** Amount of which the bank says nothing by itself; minor units. */
  silent: number;
  know: (amount?: number) => Promise<Instruction>;
  live: () => { id: string; send: () => Promise<object> };
  lookUp: (id: string) => Promise<object>;
}

/** A sandbox bank for one file's tests, and what they need of its refunds and payouts. */
export function useInstructed() {
  const world = useBankWorld();
  const activities = () => world.server.bank.activities;

  const refunds: Instructed = {
    resource: 'refund',
    taken: 'accepted',
    done: 'settled',
    silent: 66_613,
    know: async (amount) => {
      const { id, input } = await world.knowRefund(amount === undefined ? {} : { amount });
      return {
        id,
        send: () => activities().sendRefund(input),
        sendOutdated: () => activities().sendRefund({ ...input, version: 0 }),
      };
    },
    live: () => {
      const input = refundInstruction({ livemode: true });
      return { id: input.refund_id, send: () => activities().sendRefund(input) };
    },
    lookUp: (refund_id) => activities().lookUpRefund({ refund_id }),
  };
  const payouts: Instructed = {
    resource: 'payout',
    taken: 'sent',
    done: 'completed',
    silent: 66_623,
    know: async (amount) => {
      const { id, input } = await world.knowPayout(amount === undefined ? {} : { amount });
      return {
        id,
        send: () => activities().sendPayout(input),
        sendOutdated: () => activities().sendPayout({ ...input, version: 0 }),
      };
    },
    live: () => {
      const input = payoutInstruction({ livemode: true });
      return { id: input.payout_id, send: () => activities().sendPayout(input) };
    },
    lookUp: (payout_id) => activities().lookUpPayout({ payout_id }),
  };
  const addBook = (row: Instructed) => ({ ...row, ...readBook(world, row) });
  return { world, instructed: { refund: addBook(refunds), payout: addBook(payouts) } };
}

/** The bank's own records of a refund or a payout. */
function readBook(world: BankWorld, { resource, taken, done, silent, know }: Instructed) {
  const book = () => world[`${resource}s` as const];
  const entry = (_id: string) => book().findOne({ _id });
  return {
    takenAnswer: { outcome: taken, bank_reference: expect.stringMatching(/^SBX[0-9A-F]{12}$/) },
    entry,
    statusOf: async (id: string) => (await entry(id))?.status,
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
    told: (id: string) => world.told(id, resource),
    signals: (id: string) => world.signals(id, resource),
    productSays: (id: string, status: string) => world.productSays(resource, id, status),
    productForgets: (id: string) => world.productForgets(resource, id),
  };
}
