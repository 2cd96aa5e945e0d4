import type { ClientSession } from 'mongodb';
import { z } from 'zod';
import { inTransaction } from '../../../base/mongo';
import { normalizeAccount } from '../../../domain/banks/iban';
import { omitUndefined } from '../../../domain/defined';
import { toEnv } from '../../../domain/environment';
import { ServiceError } from '../../../domain/errors';
import { formatMoney } from '../../../domain/money/money';
import {
  type ApprovalLimits,
  type ApprovalRequired,
  type Credited,
  computeCredit,
  readApprovalLimits,
  requireApproval,
} from '../../../domain/operators/approval';
import type { VerifiedOperator } from '../../../domain/operators/operator-act';
import { toLowerId } from '../../../domain/shape';
import { bookOwner } from '../../../ledger/entries';
import { ENTRY_LINES } from '../../../ledger/entry-lines';
import { EntriesCleared, type UnclearedEntry } from '../../../ledger/uncleared';
import type { Parts } from '../../../statements/match';
import type { LineDocument, LineStatus } from '../../../store/statement-lines';
import { openMadeTransfers, type StatementDocument } from '../../../store/statements';
import type { ServiceDeps, WriteDeps } from '../../access';
import type { Note } from '../../money/balances/fund';
import {
  countCredit,
  finishApproval,
  LimitReached,
  postOrRequest,
  readLimits,
  requestApproval,
} from '../../operators/approvals/request';
import { type FirstRows, toFirstRows } from '../../paging';
import type { BankAccountFilter } from '../bank-accounts';
import { assertNoted } from '../connectors';
import { buildLineEntry, measureCharge, pickScope, storeMatch } from './matching';
import { closeDays } from './reconciliation';

type ReadDeps = Pick<ServiceDeps, 'stores'>;

/** Take the difference between a line and its entries. */
export const DIFFERENCE_ACCOUNTS = ['expense.bank_fees', 'suspense.unmatched'] as const;

export async function listStatements(
  { stores }: ReadDeps,
  { iban, ...filter }: BankAccountFilter,
  limit: number,
): Promise<FirstRows<StatementDocument>> {
  const own = { ...filter, iban: iban && normalizeAccount(iban) };
  return toFirstRows(await stores.statements.list(own, limit + 1), limit);
}

/**
 * Finds by our id, or by the bank's where only one statement has it.
 * @throws ServiceError `statement_not_found`, `statement_ambiguous`
 */
export async function showStatement(
  { stores: { statements } }: ReadDeps,
  id: string,
  { status, limit }: { status?: LineStatus | undefined; limit: number },
): Promise<{ statement: StatementDocument; lines: FirstRows<LineDocument> }> {
  const own = await statements.get(toLowerId(id));
  const [statement, another] = own === null ? await statements.findByBankId(id) : [own];
  if (statement === undefined) {
    throw new ServiceError('statement_not_found', `There is no statement ${id}.`);
  }
  if (another !== undefined) {
    const message = `Several statements are called ${id}: name one by its \`id\` of the list.`;
    throw new ServiceError('statement_ambiguous', message);
  }
  const ofStatement = { statement: { $in: [statement._id] } };
  const filter = status === undefined ? ofStatement : { ...ofStatement, status };
  const lines = await statements.listLines(filter, limit + 1);
  return { statement, lines: toFirstRows(lines, limit) };
}

/** Lists what own transfers contain, by the bank's references of their lines, where it says so. */
export async function listContents(
  { stores: { statements } }: ReadDeps,
  connector: string,
  lines: readonly LineDocument[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const names = lines.flatMap((line) => (line.transfer && line.bank_reference) ?? []);
  if (names.length === 0) return new Map();
  const made = openMadeTransfers(statements.openConnectorDb(connector));
  const transfers = await made.find({ _id: { $in: names }, parts: { $exists: true } }).toArray();
  return new Map(transfers.map(({ _id, parts = [] }) => [_id, parts]));
}

export interface LineAct {
  operator?: string | undefined;
  reason?: string | undefined;
  /** Second operator. */
  approved_by?: string | undefined;
  approval_id?: string | undefined;
}

/** Stored in an approval. */
export const ManualMatch = z.object({
  entries: z.array(z.string()),
  difference_to: z.enum(DIFFERENCE_ACCOUNTS).optional(),
});
type ManualMatch = z.infer<typeof ManualMatch>;

interface Requester {
  verified?: VerifiedOperator | undefined;
  limits: ApprovalLimits;
}

/**
 * Matches an open line with entries of its amount, or books the difference, and closes its day where
 * nothing else is open. On live a charge above a limit requests the approval of a second operator. A
 * repeat is refused.
 * @see docs/operators.md#approvals
 * @throws ServiceError `line_not_found`, `line_not_open`, `entry_not_found`, `amounts_differ`,
 * `operator_required`, `approval_decided`
 */
export async function matchByHand(
  deps: WriteDeps,
  id: string,
  { entries, difference_to, ...act }: ManualMatch & LineAct,
  { verified, limits }: Requester = { limits: readApprovalLimits() },
): Promise<LineDocument | ApprovalRequired> {
  const { operator = '', reason = '', approval_id } = act;
  const distinct = [...new Set(entries)];
  const both = [limits, await readLimits(deps)];
  try {
    const line = await changeLine(deps, id, act, async (line, session) => {
      const charge = await matchEntries(deps, line, { entries: distinct, difference_to }, session);
      const isApproved = approval_id !== undefined;
      if (isApproved) await finishApproval(deps.stores, approval_id, 'matched', session);
      else if (line.livemode) await countCredit(deps, both, { operator }, charge, session);
      return 'statement.matched';
    });
    await closeDays(deps, { ...line, _id: line.bank_account_id });
    return line;
  } catch (error) {
    if (!(error instanceof LimitReached)) throw error;
    const input = omitUndefined({ entries: distinct, difference_to });
    const subject = { act: 'statement.match', resource: null, target: id, input };
    const request = { ...subject, ...error.credited, operator, verified, reason };
    return requireApproval(await requestApproval(deps, deps.audit, request));
  }
}

/** @returns charge that it books */
async function matchEntries(
  deps: WriteDeps,
  line: LineDocument,
  { entries, difference_to }: ManualMatch,
  session: ClientSession,
): Promise<Credited> {
  const { _id: id, bank_account_id: account_id, currency } = line;
  if (line.status !== 'open') {
    throw new ServiceError('line_not_open', `The line ${id} is ${line.status}.`);
  }
  const { ledger } = deps.stores;
  const found = await ledger.findAllUncleared(pickScope(line), { _id: entries }, session);
  const missing = entries.find((each) => !found.some(({ entry_id }) => entry_id === each));
  if (missing !== undefined) {
    const message = `${missing} is no entry of this account that waits for a statement line.`;
    throw new ServiceError('entry_not_found', message);
  }
  const sum = found.reduce((total, { amount }) => total + amount, 0);
  if (entries.length > 0 && sum === 0) {
    const message =
      'The entries cancel each other, so they explain nothing of the line. Clear them by ' +
      '`statement clear`, or match other entries.';
    throw new ServiceError('amounts_differ', message);
  }
  const parts = splitAmount(line, sum, difference_to);
  const status = entries.length === 0 ? 'booked' : 'matched';
  const match = { status, entries, parts } as Parameters<typeof storeMatch>[2];
  if (!(await storeMatch(deps, line, match, session))) throw createChangedError(id);
  return measureCharge(match, { account_id, currency });
}

function splitAmount(
  { amount, fee, currency }: LineDocument,
  sum: number,
  difference_to: ManualMatch['difference_to'],
): Parts {
  if (sum === amount) return { clearing: sum, bank_fees: 0 };
  if (fee !== 0 && sum === amount + fee) return { clearing: sum, bank_fees: -fee };
  if (sum * amount < 0) {
    const [line, entries] = [amount, sum].map((each) => formatMoney(each, currency));
    const message = `The line has ${line}, and the entries ${entries}: one is paid in and the other out. Match other entries.`;
    throw new ServiceError('amounts_differ', message);
  }
  if (difference_to === 'expense.bank_fees') return { clearing: sum, bank_fees: amount - sum };
  if (difference_to === 'suspense.unmatched' && sum !== 0) return { clearing: sum, bank_fees: 0 };
  const [line, entries, difference] = [amount, sum, amount - sum].map((each) =>
    formatMoney(each, currency),
  );
  throw new ServiceError(
    'amounts_differ',
    `The line has ${line}, and the entries ${entries}: ${difference} differ. Book that with ` +
      '--difference-to, or match other entries.',
  );
}

/**
 * Puts the amount in suspense again, until an operator matches the line.
 * @throws ServiceError `line_not_found`, `line_not_matched`, `operator_required`
 */
export async function unmatchByHand(
  deps: WriteDeps,
  id: string,
  act: LineAct,
): Promise<LineDocument> {
  const { ledger, statements } = deps.stores;
  return await changeLine(deps, id, act, async (line, session) => {
    if (line.status !== 'matched' && line.status !== 'booked') {
      throw new ServiceError('line_not_matched', `The line ${id} is ${line.status}.`);
    }
    const version = line.version + 1;
    const nothing = { entries: [], parts: { clearing: 0, bank_fees: 0 }, different: null };
    const change = { status: 'open', ...nothing, held: true, version } as const;
    if (!(await statements.changeLine(line, change, session))) throw createChangedError(id);
    const lines = ENTRY_LINES.bank_line_unmatched(line.parts);
    const details = { now: deps.now, step: version };
    await ledger.post(buildLineEntry('bank_line_unmatched', line, lines, details), session);
    if (line.entries.length > 0) await ledger.unclear(line.entries, session);
    await statements.reopen(line.statement, session);
    return 'statement.unmatched';
  });
}

/** Names who looks after a line. @throws ServiceError `line_not_found`, `operator_required` */
export async function assignLine(
  deps: WriteDeps,
  id: string,
  owner: string,
  act: LineAct,
): Promise<LineDocument> {
  return await changeLine(deps, id, act, async (line, session) => {
    await deps.stores.statements.changeLine(line, { owner }, session);
    return 'statement.assigned';
  });
}

/** @throws ServiceError `line_not_found` */
export async function isLiveLine({ stores }: ReadDeps, id: string): Promise<boolean> {
  return (await requireLine(stores, id)).livemode;
}

async function requireLine(
  { statements }: WriteDeps['stores'],
  id: string,
  session?: ClientSession,
): Promise<LineDocument> {
  const line = await statements.getLine(id, session);
  if (line !== null) return line;
  throw new ServiceError('line_not_found', `There is no statement line ${id}.`);
}

async function changeLine(
  deps: WriteDeps,
  id: string,
  { operator, reason, approved_by, approval_id }: LineAct,
  change: (
    line: LineDocument,
    session: ClientSession,
  ) => Promise<'statement.matched' | 'statement.unmatched' | 'statement.assigned'>,
): Promise<LineDocument> {
  const { mongo, stores, audit } = deps;
  await stores.ledger.ensureIndexes();
  try {
    return await inTransaction(mongo, async (session) => {
      const line = await requireLine(stores, id, session);
      assertNoted(line, { operator, reason }, 'does it');
      const act = await change(line, session);
      const after = await stores.statements.getLine(id, session);
      if (after === null) throw createChangedError(id);
      const facts = (of: LineDocument) => ({
        status: of.status,
        entries: of.entries,
        owner: of.owner,
      });
      const about = { account_id: null, livemode: line.livemode, target: id };
      const note = { operator, reason, ...omitUndefined({ approved_by, approval_id }) };
      await audit(
        { act, ...about, before: facts(line), after: { ...facts(after), ...note } },
        session,
      );
      return after;
    });
  } catch (error) {
    throw error instanceof EntriesCleared ? createChangedError(id) : error;
  }
}

function createChangedError(id: string): ServiceError {
  const message = `The line ${id} was changed meanwhile: look at it again.`;
  return new ServiceError('line_changed', message);
}

/** Act of an approval. */
export const CLEAR_ACT = 'statement.clear';

const Input = z.object({ entries: z.string() });

interface Request {
  /** Required on live. */
  reason: string | undefined;
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
 * `operator_required`, `operation_id_used`
 */
export async function clearEntries(
  deps: WriteDeps,
  ids: readonly string[],
  { verified, limits, operator, reason }: Request,
): Promise<UnclearedEntry[] | ApprovalRequired> {
  const entries = await findCancelling(deps, ids);
  const [first] = entries;
  const { livemode, currency } = first;
  if (!livemode) return await clear(deps, entries, { operator, reason });
  if (verified === undefined || reason === undefined) {
    const message = 'On live, OPERATOR_KEY and --reason say who does it and why.';
    throw new ServiceError('operator_required', message);
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
