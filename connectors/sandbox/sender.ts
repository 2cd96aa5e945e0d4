import type { Logger } from '../../src/base/log';
import type { BankResource } from '../../src/domain/callback/callback';
import { callbackKey } from '../../src/store/callbacks';
import type { CallbackReceipt, InboxStores, ResourceCallback } from '../contract/callbacks';
import { isAwaited } from './awaited';
import type { Book, EntryStatus } from './book';
import { type Loop, startLoop } from './loop';
import type { Outbox, OutboxRow } from './outbox';
import type { CallbackByResource } from './plan';
import type { SessionStore } from './sessions';

const BATCH = 50;

export interface SenderDeps {
  /** Connector in whose name callbacks are delivered. */
  connector: string;
  outbox: Outbox;
  sessions: SessionStore;
  refunds: Book;
  payouts: Book;
  /** Stores of the product, for the current state of resources. */
  product: InboxStores;
  deliver: (callback: ResourceCallback) => Promise<CallbackReceipt>;
  log: Logger;
}

/**
 * Sends due callbacks until it is stopped. It may be killed at any point: a row stays pending until
 * its callback was received, and a callback that was received twice counts once.
 */
export function startSender(deps: SenderDeps): Loop {
  return startLoop({
    round: async () => (await sendDue(deps)) === BATCH,
    failureText: 'the outbox could not be read',
    log: deps.log,
  });
}

/**
 * Sends one batch: callbacks of one resource in turn, those of different ones side by side.
 * @returns the number of rows claimed
 */
async function sendDue(deps: SenderDeps): Promise<number> {
  const rows = await deps.outbox.claim(BATCH);
  const ids = [...new Set(rows.map(({ resource_id }) => resource_id))];
  const groups = ids.map((id) => rows.filter(({ resource_id }) => resource_id === id));
  await Promise.all(groups.map((group) => sendInOrder(deps, group)));
  return rows.length;
}

/** Sends callbacks of one resource; after a failed one the others wait until their lease ends. */
async function sendInOrder(deps: SenderDeps, rows: OutboxRow[]): Promise<void> {
  for (const row of rows) {
    if (!(await sendOne(deps, row))) return;
  }
}

/** Sends a row; answers whether it is finished. */
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
  { connector, product }: SenderDeps,
  { autoplay, resource, resource_id, body }: OutboxRow,
): Promise<boolean> {
  // A payment's settlement is in the bank's own book, so that only a void stops it.
  if (autoplay !== true || resource === 'payment') return false;
  if (await isAwaited(product, resource, resource_id)) return false;
  // A callback in the inbox may have caused the transition, so it is delivered.
  return (await product.callbacks.get(callbackKey(connector, body.callback_id))) === null;
}

/** Moves the money in the bank's book; answers whether the callback may be sent. */
async function applyToBook<R extends BankResource>(
  deps: SenderDeps,
  { resource, resource_id, becomes }: OutboxRow<R>,
): Promise<boolean> {
  return becomes === null || (await APPLY[resource](deps, resource_id, becomes));
}

type Apply<R extends BankResource> = (
  deps: SenderDeps,
  id: string,
  becomes: CallbackByResource[R]['becomes'],
) => Promise<boolean>;

/** Conditional write in the bank's own book, by kind of resource. */
const APPLY: { [R in BankResource]: Apply<R> } = {
  /** A void may win instead. */
  payment: async ({ sessions }, id, becomes) => {
    if ((await sessions.step(id, ['approved'], { status: becomes })) !== null) return true;
    const status = (await sessions.get(id))?.status;
    // Settled money may have been sent back since; the settlement is reported anyway.
    return status === becomes || status === 'reversed';
  },
  refund: async ({ refunds }, id, becomes) => {
    if ((await refunds.step(id, ['accepted'], becomes)) !== null) return true;
    return (await refunds.get(id))?.status === becomes;
  },
  payout: async ({ payouts }, id, becomes) => {
    if ((await payouts.step(id, PAYOUT_STEPS[becomes], becomes)) !== null) return true;
    const status = (await payouts.get(id))?.status;
    // A completed payout may have been returned since; the completion is reported anyway.
    return status === becomes || (becomes === 'completed' && status === 'returned');
  },
};

/** Statuses that a payout may have before each step. */
const PAYOUT_STEPS = {
  completed: ['sent'],
  failed: ['sent'],
  returned: ['sent', 'completed'],
} as const satisfies Record<CallbackByResource['payout']['becomes'], readonly EntryStatus[]>;
