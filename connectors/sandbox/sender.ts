import type { Logger } from '../../src/base/log';
import type { BankResource, CallbackResource } from '../../src/domain/callback/callback';
import { isInFlight, LIFECYCLES } from '../../src/lifecycles';
import { callbackKey } from '../../src/store/callbacks';
import type { CallbackReceipt, InboxStores, ResourceCallback } from '../contract/callbacks';
import type { Book, EntryStatus } from './book';
import { startLoop } from './loop';
import type { Outbox, OutboxRow } from './outbox';
import type { CallbackByResource } from './plan';
import type { SessionStore } from './sessions';

const BATCH = 50;

export interface SenderDeps {
  connector: string;
  outbox: Outbox;
  sessions: SessionStore;
  refunds: Book;
  payouts: Book;
  product: InboxStores;
  deliver: (callback: ResourceCallback) => Promise<CallbackReceipt>;
  log: Logger;
}

/**
 * Sends due callbacks until `stop`. It may be killed at any point: a row stays pending until its
 * callback was received, and a repeat counts once.
 */
export function startSender(deps: SenderDeps) {
  return startLoop({
    round: async () => (await sendDue(deps)) === BATCH,
    failureText: 'the outbox could not be read',
    log: deps.log,
  });
}

/** Sends the callbacks of one resource in order, those of different ones in parallel. */
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
  { connector, product }: SenderDeps,
  { autoplay, resource, resource_id, body }: OutboxRow,
): Promise<boolean> {
  // A payment's settlement is in the bank's own book, so only a void stops it.
  if (autoplay !== true || resource === 'payment') return false;
  if (await isAwaited(product, resource, resource_id)) return false;
  // A callback in the inbox may have caused the transition, so it is delivered.
  return (await product.callbacks.get(callbackKey(connector, body.callback_id))) === null;
}

/** Whether the service waits for the resource's outcome, or has not stored the resource yet. */
export async function isAwaited(
  stores: InboxStores,
  kind: CallbackResource,
  id: string,
): Promise<boolean> {
  const record = await LIFECYCLES[kind].get(stores, id);
  return record === null || isInFlight(kind, record.status);
}

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

const APPLY: { [R in BankResource]: Apply<R> } = {
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

const PAYOUT_STEPS = {
  completed: ['sent'],
  failed: ['sent'],
  returned: ['sent', 'completed'],
} as const satisfies Record<CallbackByResource['payout']['becomes'], readonly EntryStatus[]>;
