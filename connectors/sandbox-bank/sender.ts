import type { CallbackResource } from '../../src/domain/callback';
import { isInFlight, LIFECYCLES } from '../../src/lifecycles';
import type { Logger } from '../../src/log';
import { callbackKey } from '../../src/store/callbacks';
import type { CallbackReceipt, InboxStores, ResourceCallback } from '../contract/callbacks';
import type { Book, EntryStatus } from './book';
import type { Outbox, OutboxRow } from './outbox';
import type { CallbackOf } from './plan';
import type { SessionStore } from './sessions';

const BATCH = 50;
const POLL_MS = 300;
const TROUBLE_MS = 1_000;

export interface SenderDeps {
  /** In whose name callbacks are delivered. */
  connector: string;
  outbox: Outbox;
  sessions: SessionStore;
  refunds: Book;
  payouts: Book;
  /** What the product says of the resources by now. */
  product: InboxStores;
  deliver: (callback: ResourceCallback) => Promise<CallbackReceipt>;
  log: Logger;
}

export interface Sender {
  /** Something may be due now. */
  wake: () => void;
  /** Resolves when the round that runs is done. */
  stop: () => Promise<void>;
}

/**
 * Sends what is due until it is stopped. It may be killed at any point: a row stays pending until
 * its callback was taken in, and a callback that was taken in twice counts once.
 */
export function startSender(deps: SenderDeps): Sender {
  let stopped = false;
  let woken = false;
  let ring: () => void = () => undefined;
  const wake = () => {
    woken = true;
    ring();
  };
  const rest = (ms: number) =>
    new Promise<void>((resolve) => {
      if (woken || stopped) return resolve();
      const timer = setTimeout(resolve, ms);
      ring = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  const run = async () => {
    while (!stopped) {
      woken = false;
      let wait = POLL_MS;
      try {
        if ((await sendDue(deps)) === BATCH) wait = 0;
      } catch (err) {
        deps.log.error({ err }, 'the outbox could not be read');
        wait = TROUBLE_MS;
      }
      if (wait > 0) await rest(wait);
    }
  };
  const running = run();
  return {
    wake,
    stop: async () => {
      stopped = true;
      wake();
      await running;
    },
  };
}

/**
 * One round: at most a batch. What is about one resource is told in turn, the others side by side.
 * Answers how many rows were taken.
 */
export async function sendDue(deps: SenderDeps): Promise<number> {
  const rows = await deps.outbox.claim(BATCH);
  const ids = [...new Set(rows.map(({ resource_id }) => resource_id))];
  const turns = ids.map((id) => rows.filter(({ resource_id }) => resource_id === id));
  await Promise.all(turns.map((turn) => sendInTurn(deps, turn)));
  return rows.length;
}

/** After one that was not delivered the others wait until their lease ends. */
async function sendInTurn(deps: SenderDeps, rows: OutboxRow[]): Promise<void> {
  for (const row of rows) {
    if (!(await sendOne(deps, row))) return;
  }
}

/** Answers whether the row is done with. */
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

/** Whether what would come by itself contradicts what the product was told meanwhile. */
async function isOvertaken(
  { connector, product }: SenderDeps,
  { autoplay, resource, resource_id, body }: OutboxRow,
): Promise<boolean> {
  if (autoplay !== true || !(await hasMovedOn(product, resource, resource_id))) return false;
  // What the inbox has kept was said, and may be what moved it: it is told to the end.
  return (await product.callbacks.get(callbackKey(connector, body.callback_id))) === null;
}

/**
 * Whether the product waits for nothing more that comes by itself. A payment's settlement stands in
 * the bank's own book, so that only a void stops it.
 */
async function hasMovedOn(
  product: InboxStores,
  kind: CallbackResource,
  id: string,
): Promise<boolean> {
  if (kind === 'payment') return false;
  const found = await LIFECYCLES[kind].get(product, id);
  return found !== null && !isInFlight(kind, found.status);
}

/** The moment the money moves. Answers whether the row may be told. */
async function applyToBook<R extends CallbackResource>(
  deps: SenderDeps,
  { resource, resource_id, becomes }: OutboxRow<R>,
): Promise<boolean> {
  return becomes === null || (await APPLY[resource](deps, resource_id, becomes));
}

type Apply<R extends CallbackResource> = (
  deps: SenderDeps,
  id: string,
  becomes: CallbackOf[R]['becomes'],
) => Promise<boolean>;

/** Of each resource: one conditional write in the bank's own book. */
const APPLY: { [R in CallbackResource]: Apply<R> } = {
  /** A void may win instead. */
  payment: async ({ sessions }, id, becomes) => {
    if ((await sessions.step(id, ['approved'], { status: becomes })) !== null) return true;
    const status = (await sessions.get(id))?.status;
    // Sent money may have been sent back meanwhile; that it settled is still to be told.
    return status === becomes || status === 'reversed';
  },
  refund: async ({ refunds }, id, becomes) => {
    if ((await refunds.step(id, ['accepted'], becomes)) !== null) return true;
    return (await refunds.get(id))?.status === becomes;
  },
  payout: async ({ payouts }, id, becomes) => {
    if ((await payouts.step(id, PAYOUT_STEPS[becomes], becomes)) !== null) return true;
    const status = (await payouts.get(id))?.status;
    // Money that reached the recipient may have come back meanwhile; both are to be told.
    return status === becomes || (becomes === 'completed' && status === 'returned');
  },
};

/** What of a payout comes after what. */
const PAYOUT_STEPS = {
  completed: ['sent'],
  failed: ['sent'],
  returned: ['sent', 'completed'],
} as const satisfies Record<CallbackOf['payout']['becomes'], readonly EntryStatus[]>;
