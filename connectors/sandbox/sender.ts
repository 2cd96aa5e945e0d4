import type { ClientSession, MongoClient } from 'mongodb';
import type { Logger } from '../../src/base/log';
import { inTransaction } from '../../src/base/mongo';
import type { BankResource, CallbackResource } from '../../src/domain/callback/callback';
import type { BankDecision } from '../../src/domain/sandbox/movement';
import { isInFlight, LIFECYCLES } from '../../src/lifecycles';
import type { MovementStore } from '../../src/service/banks/sandbox-bank/movements';
import { callbackKey } from '../../src/store/callbacks';
import type { CallbackReceipt, InboxStores, ResourceCallback } from '../contract/callbacks';
import type { Book, BookEntry, EntryStatus } from './book';
import { startLoop } from './loop';
import type { Outbox, OutboxRow } from './outbox';
import type { CallbackByResource } from './plan';
import type { BankSession, SessionStore } from './sessions';

const BATCH = 50;

export interface SenderDeps {
  mongo: MongoClient;
  connector: string;
  movements: MovementStore;
  outbox: Outbox;
  sessions: SessionStore;
  refunds: Book;
  payouts: Book;
  product: InboxStores;
  deliver: (callback: ResourceCallback) => Promise<CallbackReceipt>;
  log: Logger;
}

/**
 * May be killed at any point: a row stays pending until its callback was received, and a repeat
 * counts once.
 */
export function startSender(deps: SenderDeps) {
  return startLoop({
    round: async () => (await sendDue(deps)) === BATCH,
    failureText: 'the outbox could not be read',
    log: deps.log,
  });
}

/** Sends in order for one resource, in parallel for different ones. */
async function sendDue(deps: SenderDeps): Promise<number> {
  const rows = await deps.outbox.lease(BATCH);
  const ids = [...new Set(rows.map(({ resource_id }) => resource_id))];
  const groups = ids.map((id) => rows.filter(({ resource_id }) => resource_id === id));
  await Promise.all(groups.map((group) => sendInOrder(deps, group)));
  return rows.length;
}

async function sendInOrder(deps: SenderDeps, rows: OutboxRow[]): Promise<void> {
  for (const row of rows) {
    if (!(await sendOne(deps, row))) return;
  }
}

async function sendOne(deps: SenderDeps, row: OutboxRow): Promise<boolean> {
  const { connector, outbox, log } = deps;
  const { resource, resource_id, name, body } = row;
  const about = { [`${resource}_id`]: resource_id, callback_id: body.callback_id };
  try {
    if ((await isOvertaken(deps, row)) || !(await applyToBook(deps, row))) {
      await outbox.finish(row._id, 'dropped');
      return true;
    }
    const receipt = await deps.deliver({ connector, resource, resource_id, name, callback: body });
    await outbox.finish(row._id, receipt === 'parked' ? 'parked' : 'sent');
    log.info({ ...about, status: receipt }, `callback ${name}`);
    return true;
  } catch (err) {
    const message = err instanceof Error ? err.message : String(err);
    await outbox.retry(row, message.slice(0, 300));
    log.warn({ ...about, attempt: row.attempts, err }, 'callback not delivered, tried again later');
    return false;
  }
}

/** Whether an autoplayed callback contradicts what was reported since. */
async function isOvertaken(
  { connector, product, movements }: SenderDeps,
  { autoplay, resource, resource_id, body }: OutboxRow,
): Promise<boolean> {
  // A payment's settlement is in the bank's own book, so only a void stops it.
  if (autoplay !== true || resource === 'payment') return false;
  if (await isAwaited(product, resource, resource_id)) return false;
  // Its money has moved already, so it is reported.
  if (await movements.hasMoved(body.callback_id)) return false;
  // A callback in the inbox may have caused the transition, so it is delivered.
  return (await product.callbacks.get(callbackKey(connector, body.callback_id))) === null;
}

/** Whether the service waits for the outcome, or has not stored the resource yet. */
export async function isAwaited(
  stores: InboxStores,
  kind: CallbackResource,
  id: string,
): Promise<boolean> {
  const record = await LIFECYCLES[kind].get(stores, id);
  return record === null || isInFlight(kind, record.status);
}

/**
 * Changes the books in one transaction with the movement of money.
 * @returns whether the callback is true, also if it was applied before
 */
async function applyToBook<R extends BankResource>(
  deps: SenderDeps,
  { resource, resource_id, becomes, body }: OutboxRow<R>,
): Promise<boolean> {
  if (becomes === null) return true;
  return await inTransaction(deps.mongo, async (session) => {
    const { isTrue, moved } = await APPLY[resource](deps, resource_id, becomes, session);
    if (moved !== undefined) {
      const decision = { resource, resource_id, decision: body.callback_id, ...moved };
      await deps.movements.book(decision, session);
    }
    return isTrue;
  });
}

interface Applied {
  isTrue: boolean;
  moved?: Pick<BankDecision, 'name' | 'bank_reference' | 'amount' | 'currency'>;
}

type Apply<R extends BankResource> = (
  deps: SenderDeps,
  id: string,
  becomes: CallbackByResource[R]['becomes'],
  session: ClientSession,
) => Promise<Applied>;

const APPLY: { [R in BankResource]: Apply<R> } = {
  payment: async ({ sessions }, id, becomes, session) => {
    const after = await sessions.step(id, ['approved'], { status: becomes }, session);
    if (after !== null) return change(after, becomes === 'declined' ? 'failed' : becomes);
    const status = (await sessions.get(id, session))?.status;
    // Settled money may have been sent back since; the settlement is reported anyway.
    return { isTrue: status === becomes || status === 'reversed' };
  },
  refund: async ({ refunds }, id, becomes, session) => {
    const after = await refunds.step(id, ['accepted'], becomes, session);
    if (after !== null) return change(after, becomes);
    return { isTrue: (await refunds.get(id, session))?.status === becomes };
  },
  payout: async ({ payouts }, id, becomes, session) => {
    const after = await payouts.step(id, PAYOUT_STEPS[becomes], becomes, session);
    if (after !== null) return change(after, becomes);
    const status = (await payouts.get(id, session))?.status;
    // A completed payout may have been returned since; the completion is reported anyway.
    return { isTrue: status === becomes || (becomes === 'completed' && status === 'returned') };
  },
};

function change(
  { instruction, bank_reference }: Pick<BankSession | BookEntry, 'instruction' | 'bank_reference'>,
  name: BankDecision['name'],
): Applied {
  if (instruction === null) return { isTrue: true };
  const { amount, currency } = instruction;
  return { isTrue: true, moved: { name, bank_reference, amount, currency } };
}

const PAYOUT_STEPS = {
  completed: ['sent'],
  failed: ['sent'],
  returned: ['sent', 'completed'],
} as const satisfies Record<CallbackByResource['payout']['becomes'], readonly EntryStatus[]>;
