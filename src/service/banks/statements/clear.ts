import { z } from 'zod';
import { inTransaction } from '../../../base/mongo';
import type { VerifiedOperator } from '../../../domain/account/operator';
import {
  type ApprovalLimits,
  type ApprovalRequired,
  computeCredit,
} from '../../../domain/approval';
import { toEnv } from '../../../domain/environment';
import { ServiceError } from '../../../domain/errors';
import { formatMoney } from '../../../domain/money';
import { bookOwner } from '../../../ledger/entries';
import { EntriesCleared, type UnclearedEntry } from '../../../ledger/uncleared';
import type { WriteDeps } from '../../deps';
import type { Note } from '../../money/balances/fund';
import { finishApproval, postOrRequest } from '../../operators/approvals/request';
import { pickScope } from './matching';
import { closeDays } from './reconciliation';

/** Act of an approval. */
export const CLEAR_ACT = 'statement.clear';

const Input = z.object({ entries: z.string() });

interface Request {
  reason: string;
  operator: string | undefined;
  /** Required on live. */
  verified: VerifiedOperator | undefined;
  limits: ApprovalLimits;
}

/**
 * Clears entries that cancel each other without a movement at the bank, so that their days can
 * close; on live above the limit, requests the approval of a second operator. A repeat is refused.
 * @see docs/statements.md#reconcile
 * @throws ServiceError `entry_not_found`, `entry_not_open`, `entries_differ`, `amounts_differ`,
 * `operator_key_required`, `operation_id_used`
 */
export async function clearEntries(
  deps: WriteDeps,
  ids: readonly string[],
  { verified, limits, operator = 'unknown', reason }: Request,
): Promise<UnclearedEntry[] | ApprovalRequired> {
  const entries = await findCancelling(deps, ids);
  const [first] = entries;
  const { livemode, currency } = first;
  if (!livemode) return await clear(deps, entries, { operator, reason });
  if (verified === undefined) {
    throw new ServiceError('operator_key_required', 'On live this needs an operator’s key.');
  }
  const { book = '' } = (await deps.stores.ledger.findEntry(first.entry_id)) ?? {};
  const { account_id } = bookOwner(book);
  const amount = entries.reduce((came, each) => came + Math.max(each.amount, 0), 0);
  const credited = computeCredit('statement', 'clear', { amount, currency, account_id });
  const target = entries.map(({ entry_id }) => entry_id).join(' ');
  return await postOrRequest(deps, {
    act: CLEAR_ACT,
    target,
    input: { entries: target },
    credited,
    verified,
    limits,
    reason,
    post: (count) => clear(deps, entries, { operator: verified.name, reason, count }),
  });
}

export async function isLiveClearing(
  { stores: { ledger } }: Pick<WriteDeps, 'stores'>,
  ids: readonly string[],
): Promise<boolean> {
  return (await ledger.getUncleared(ids)).some(({ livemode }) => livemode);
}

/** @throws ServiceError `approval_decided`, and those of the entries */
export async function clearApproved(
  deps: WriteDeps,
  input: object,
  correction: Note,
): Promise<UnclearedEntry[]> {
  const ids = Input.parse(input).entries.split(' ');
  return await clear(deps, await findCancelling(deps, ids), correction);
}

type Cancelling = [UnclearedEntry, ...UnclearedEntry[]];

async function findCancelling(
  { stores: { ledger } }: WriteDeps,
  ids: readonly string[],
): Promise<Cancelling> {
  const distinct = [...new Set(ids)].toSorted();
  const entries = await ledger.getUncleared(distinct);
  const missing = distinct.find((id) => !entries.some(({ entry_id }) => entry_id === id));
  if (missing !== undefined) {
    if ((await ledger.findEntry(missing)) !== null) throw createNotOpenError(missing);
    throw new ServiceError('entry_not_found', `There is no entry ${missing}.`);
  }
  const [first, ...more] = entries;
  const scopes = new Set(
    entries.map(
      ({ connector, livemode, currency }) => `${connector} ${toEnv(livemode)} ${currency}`,
    ),
  );
  if (first === undefined || scopes.size > 1) {
    const list = [...scopes].join(', ');
    const message = `The entries must be of one connector, environment and currency, not ${list}.`;
    throw new ServiceError('entries_differ', message);
  }
  const sum = entries.reduce((total, { amount }) => total + amount, 0);
  if (sum !== 0) {
    const message =
      `The entries must cancel each other, and sum to ${formatMoney(sum, first.currency)}: what the ` +
      'bank moved is matched by `statement match`.';
    throw new ServiceError('amounts_differ', message);
  }
  return [first, ...more];
}

async function clear(
  deps: WriteDeps,
  entries: Cancelling,
  { approval_id, count, ...note }: Note,
): Promise<UnclearedEntry[]> {
  const { mongo, stores, audit } = deps;
  const [first] = entries;
  const ids = entries.map(({ entry_id }) => entry_id);
  try {
    await inTransaction(mongo, async (session) => {
      await stores.ledger.clear(ids, session);
      await finishApproval(stores, approval_id, 'cleared', session);
      const about = { account_id: null, livemode: first.livemode, target: first.entry_id };
      const after = { entries: ids, connector: first.connector, ...note, approval_id };
      await audit({ act: 'statement.cleared', ...about, after }, session);
      await count?.(session);
    });
  } catch (error) {
    throw error instanceof EntriesCleared ? createNotOpenError(ids.join(', ')) : error;
  }
  for (const account of await stores.bankAccounts.list(pickScope(first))) {
    await closeDays(deps, account);
  }
  return entries;
}

function createNotOpenError(id: string): ServiceError {
  const message = `${id} does not wait for a statement line: it is on one, cleared, or moved nothing at a bank.`;
  return new ServiceError('entry_not_open', message);
}
