import type { ClientSession, MongoClient } from 'mongodb';
import type { Logger } from '../../src/base/log';
import { inTransaction } from '../../src/base/mongo';
import type { BankResource, CallbackResource } from '../../src/domain/banks/callback';
import type { BankDecision } from '../../src/domain/banks/sandbox';
import { isInFlight, LIFECYCLES } from '../../src/lifecycles';
import type { MovementStore } from '../../src/service/banks/sandbox';
import { callbackKey } from '../../src/store/callbacks';
import type { SandboxReport, SandboxReportStore } from '../../src/store/sandbox-reports';
import type { InboxStores } from '../contract/callbacks';
import type { Report } from '../kit';
import type { Book, BookEntry, EntryStatus } from './book';
import type { Outbox, OutboxRow } from './outbox';
import type { CallbackByResource } from './plan';
import type { BankSession, SessionStore } from './sessions';

const BATCH = 50;

export interface ReportDeps {
  mongo: MongoClient;
  connector: string;
  movements: MovementStore;
  outbox: Outbox;
  sessions: SessionStore;
  refunds: Book;
  payouts: Book;
  product: InboxStores & { sandboxReports: SandboxReportStore };
  log: Logger;
}

/**
 * Plays what is due, and hands out what it says, again after a while unless the connector has
 * delivered it: a repeat counts once.
 */
export async function handOut(
  deps: ReportDeps,
): Promise<{ due: { id: string; report: Report }[]; more: boolean }> {
  const simulated = await takeSimulated(deps);
  const rows = await deps.outbox.lease(BATCH);
  const played = await Promise.all(groupById(rows).map((group) => playInOrder(deps, group)));
  return {
    due: played.flat().map(({ _id: id, resource, resource_id, name, body: callback }) => ({
      id,
      // The row's name is one of its resource.
      report: { resource, resource_id, name, callback } as Report,
    })),
    more: simulated > 0 || rows.length === BATCH,
  };
}

/** Groups those of one resource, in their order. */
function groupById<T extends { resource_id: string }>(items: readonly T[]): T[][] {
  const ids = [...new Set(items.map(({ resource_id }) => resource_id))];
  return ids.map((id) => items.filter(({ resource_id }) => resource_id === id));
}

/** Books what simulations have reported since. @returns their number */
export async function takeSimulated(deps: ReportDeps, resource_id?: string): Promise<number> {
  const { connector, product } = deps;
  const due = await product.sandboxReports.listDue(connector, resource_id);
  await Promise.all(
    groupById(due).map(async (group) => {
      for (const report of group) await take(deps, report);
    }),
  );
  return due.length;
}

/** Books a report and stores its callback in one transaction, once. */
async function take(
  { mongo, product, movements, outbox }: ReportDeps,
  report: SandboxReport,
): Promise<void> {
  await inTransaction(mongo, async (session) => {
    if (!(await product.sandboxReports.take(report._id, session))) return;
    await movements.book({ ...report, decision: report._id }, session);
    await outbox.addReport(report, session);
  });
}

/** @returns rows that are true, up to the first that could not be played */
async function playInOrder(deps: ReportDeps, rows: OutboxRow[]): Promise<OutboxRow[]> {
  const played: OutboxRow[] = [];
  for (const row of rows) {
    const { _id, resource, resource_id } = row;
    try {
      if (!(await isOvertaken(deps, row)) && (await applyToBook(deps, row))) played.push(row);
      else await deps.outbox.finish([_id], 'dropped');
    } catch (err) {
      const about = { [`${resource}_id`]: resource_id, callback_id: row.body.callback_id };
      deps.log.warn({ ...about, err }, 'callback not played, tried again later');
      break;
    }
  }
  return played;
}

/** Whether an autoplayed callback contradicts what was reported since. */
async function isOvertaken(
  { connector, product, movements }: ReportDeps,
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
  deps: ReportDeps,
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
  deps: ReportDeps,
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
