import { type ClientSession, MongoServerError } from 'mongodb';
import { inTransaction } from '../../../base/mongo';
import { nameMovement } from '../../../domain/banks/movement';
import { addDays, hasName, listFileNames, parseResourceId } from '../../../domain/banks/statement';
import { type Credited, computeCredit, listScopes } from '../../../domain/operators/approval';
import { type NewEntry, operationId, PLATFORM } from '../../../ledger/entries';
import { ENTRY_LINES } from '../../../ledger/entry-lines';
import { type ClearingScope, type OpenTransfer, TRANSFER_DAYS } from '../../../ledger/uncleared';
import { nameActed } from '../../../movements/acts';
import {
  type Candidate,
  isAnonymous,
  type LineFacts,
  listTargets,
  type Match,
  matchLine,
} from '../../../statements/match';
import type { Stores } from '../../../store';
import type { BankAccountDocument } from '../../../store/bank-accounts';
import type { LineDocument } from '../../../store/statement-lines';
import type { ServiceDeps } from '../../access';
import { countCredit, readLimits } from '../../operators/approvals/request';
import { openSepaBook, type SepaLine, type SepaPayment } from '../sepa/book';

type MatchDeps = Pick<ServiceDeps, 'mongo' | 'stores' | 'now'>;
type LineToMatch = LineFacts &
  Pick<LineDocument, '_id' | 'day' | 'value_date' | 'bank_account_id' | 'transfer'> &
  Pick<LineDocument, 'entry_reference' | 'part_reference' | 'files' | 'mentions'> &
  Pick<LineDocument, 'creditor_reference'>;

/** Lines of one query, and of one transaction. */
const TRIED_LINES = 1_000;
const CHANGED_LINES = 200;

export function pickScope({ connector, livemode, currency }: ClearingScope): ClearingScope {
  return { connector, livemode, currency };
}

type JoinedStores = Pick<Stores, 'ledger' | 'movements' | 'statements'>;

type MatchedAccount = ClearingScope & Pick<BankAccountDocument, 'tolerance'>;

/**
 * Decides in order: no entry matches two lines.
 * @param taken entries of lines before these, to which it adds its own
 */
export async function matchLines(
  stores: JoinedStores,
  account: MatchedAccount,
  lines: readonly LineToMatch[],
  session?: ClientSession,
  taken = new Set<string>(),
): Promise<Match[]> {
  const matches = await matchEach(stores, account, lines, taken, session);
  const open = lines.filter((_, index) => matches[index]?.status === 'open');
  const announced = await findAnnounced(stores, open.filter(isWhole), session);
  for (const [index, line] of lines.entries()) {
    const isOpen = matches[index]?.status === 'open' && isWhole(line);
    for (const parts of isOpen ? (announced.get(line.bank_reference) ?? []) : []) {
      const sums = [
        parts.reduce((sum, { amount }) => sum + amount, 0),
        parts.reduce((sum, { amount, fee }) => sum + amount + fee, 0),
      ];
      if (!listTargets(line).some(({ clearing }) => sums.includes(clearing))) continue;
      // What its parts do not explain stays free.
      const tried = new Set(taken);
      const found = await matchEach(stores, account, parts, tried, session);
      const matched = found.filter((part) => part.status !== 'open');
      const entries = matched.flatMap((part) => part.entries);
      // Each part has its entries, or is a charge.
      if (matched.length < parts.length || entries.length === 0) continue;
      const clearing = matched.reduce((sum, part) => sum + part.parts.clearing, 0);
      const known = matched.reduce((sum, part) => sum + getAnnounced(part), 0);
      for (const id of entries) taken.add(id);
      const split = { clearing, bank_fees: line.amount - clearing };
      matches[index] = { status: 'matched', entries, parts: split, announced: known };
      break;
    }
  }
  return await matchTransfers(stores, account, { lines, matches, taken }, session);
}

/**
 * Matches lines that name no entry with the ends of own transfers: one that its connector calls a
 * transfer, and one that names an end whose other end is missing.
 */
async function matchTransfers(
  { ledger }: JoinedStores,
  account: MatchedAccount,
  {
    lines,
    matches,
    taken,
  }: { lines: readonly LineToMatch[]; matches: readonly Match[]; taken: Set<string> },
  session: ClientSession | undefined,
): Promise<Match[]> {
  const isFree = (match: Match | undefined) => match?.status === 'open' && match.different === null;
  const amounts = lines.flatMap((line, index) =>
    isFree(matches[index]) ? listTargets(line).map(({ clearing }) => -clearing || 0) : [],
  );
  const all = await ledger.listOpenTransfers(pickPlace(account), amounts, session);
  const ends = all.filter(({ connector }) => connector !== account.connector);
  return matches.map((match, index) => {
    const line = lines[index];
    if (line === undefined || !isFree(match)) return match;
    const found = listTargets(line).flatMap((parts) =>
      ends
        .filter((end) => end.amount === -parts.clearing && !taken.has(end.entry_id))
        .flatMap((end) => {
          const names = countNames(line, end);
          return names > 0 ? [{ parts, names, other: end.entry_id }] : [];
        }),
    );
    // A trace names one of several with the same descriptor.
    const [best] = found.toSorted((a, b) => b.names - a.names);
    const [parts] = line.transfer === undefined ? [] : listTargets(line);
    const own = best ?? (parts && { parts, other: null });
    if (own === undefined) return match;
    if (own.other !== null) taken.add(own.other);
    const transfer = { names: line.transfer ?? [], other: own.other };
    const entries = [operationId({ kind: TRANSFER, resource_id: line._id })];
    return { status: 'matched', entries, parts: own.parts, transfer };
  });
}

const TRANSFER = 'platform_posted';

const pickPlace = ({ livemode, currency }: ClearingScope) => ({ livemode, currency });

/** Counts the names of an end that a line has; what an operator has posted has none. */
function countNames(line: LineToMatch, { amount, day, until, names }: OpenTransfer): number {
  // What has come in may have left its bank before.
  const from = names.length > 0 && amount < 0 ? day : addDays(day, -TRANSFER_DAYS);
  if (line.day < from || line.day > until) return 0;
  if (line.transfer !== undefined) return names.length === 0 ? 1 : 0;
  const texts = [line.reference, ...listNames(line), ...(line.mentions ?? [])];
  return names.filter((name) => texts.some((text) => hasName(text ?? '', name))).length;
}

/** Posts the end of a transfer that a line is, before its match clears it. */
export async function postTransfer(
  { stores: { ledger }, now }: Pick<ServiceDeps, 'stores' | 'now'>,
  line: LineDocument,
  match: Match,
  session: ClientSession,
): Promise<void> {
  if (match.status !== 'matched' || match.transfer === undefined) return;
  const { names, other } = match.transfer;
  const { _id: resource_id, connector, livemode, currency, day } = line;
  const value_date = line.value_date ?? day;
  const entry: NewEntry = {
    ...{ kind: TRANSFER, resource_id, account_id: PLATFORM, livemode, currency },
    ...{ at: now().toISOString(), value_date, bank_reference: nameMovement(line) },
    lines: ENTRY_LINES.platform_posted(connector, 'transfer', match.parts.clearing),
    transfer: { day, until: addDays(value_date, TRANSFER_DAYS), names },
  };
  await ledger.post(entry, session);
  const [id] = names;
  const opposite = [-match.parts.clearing];
  const ends = await ledger.listOpenTransfers({ livemode, currency }, opposite, session);
  // What comes back before it has left has the same id.
  const back = ends.find((end) => id !== undefined && end.names[0] === id);
  const joined = other ?? back?.entry_id;
  if (joined !== undefined) await ledger.joinTransfer([operationId(entry), joined], session);
}

function isWhole({ bank_reference, entry_reference, position }: LineToMatch): boolean {
  return bank_reference !== null && (entry_reference ?? position) === undefined;
}

/** Parts of all sums that are read at once; more stay open. */
const PARTS_MAX = 10_000;

/** Finds what notifications say of the parts of entries, by their name. */
async function findAnnounced(
  { statements }: JoinedStores,
  lines: readonly LineToMatch[],
  session: ClientSession | undefined,
): Promise<Map<string | null, LineDocument[][]>> {
  const found = new Map<string | null, LineDocument[][]>();
  const [first] = lines;
  if (first === undefined) return found;
  const names = lines.flatMap(({ bank_reference }) => bank_reference ?? []);
  const { bank_account_id } = first;
  const announced = await statements.findAnnounced(bank_account_id, names, PARTS_MAX, session);
  const byStatement = groupBy(announced, ({ statement }) => statement);
  for (const ofStatement of byStatement.values()) {
    const byEntry = groupBy(ofStatement, (line) => line.entry_reference ?? line.bank_reference);
    for (const [name, parts] of byEntry) found.set(name, [...(found.get(name) ?? []), parts]);
  }
  return found;
}

async function matchEach(
  stores: JoinedStores,
  { tolerance, ...account }: MatchedAccount,
  lines: readonly LineToMatch[],
  taken: Set<string>,
  session: ClientSession | undefined,
): Promise<Match[]> {
  const scope = pickScope(account);
  const book = await readBook(stores, scope, lines);
  const findIds = (names: readonly (string | null | undefined)[]) =>
    names.flatMap((name) => parseResourceId(name ?? null) ?? book.payments.get(name ?? '') ?? []);
  const listOwn = (line: LineToMatch) => findIds([line.reference, line.creditor_reference]);
  const listMentioned = ({ mentions = [] }: LineToMatch) => findIds(mentions);
  const listOfFiles = (line: LineToMatch) => {
    const [file = [], ...others] = listFileNames(line).flatMap((name) => {
      const payouts = book.files.get(name);
      return payouts === undefined ? [] : [payouts];
    });
    return others.length > 0 ? [] : file;
  };
  const ids = lines.flatMap((line) => [
    ...listOwn(line),
    ...listMentioned(line),
    ...listOfFiles(line),
  ]);
  const ofResources = await stores.ledger.findAllUncleared(scope, { resource_id: ids }, session);
  const joined = await joinNames(stores, ofResources, session);
  const byResource = groupBy(joined, ({ resource_id }) => resource_id);
  const byName = await findNamed(stores, scope, lines.flatMap(listNames), session);
  const findByAmount = await findAmounts(stores, scope, lines.filter(isAnonymous), session);
  const free = (found: readonly Candidate[] = []) =>
    found.filter(({ entry_id }) => !taken.has(entry_id));
  const find = (some: readonly string[]) => free(some.flatMap((id) => byResource.get(id) ?? []));
  const matches: Match[] = [];
  for (const line of lines) {
    const known = listNames(line).find((name) => byName.has(name));
    const payouts = listOfFiles(line);
    const candidates = {
      by_reference: find(listOwn(line)),
      by_bank_reference: free(byName.get(known ?? null)),
      by_file: find(payouts),
      by_text: find(listMentioned(line)),
    };
    const isNamed =
      payouts.length > 0 || Object.values(candidates).some((found) => found.length > 0);
    const by_amount = isAnonymous(line) && !isNamed ? free(await findByAmount(line)) : [];
    const match = matchLine(
      { ...line, bank_reference: nameMovement(line) },
      { ...candidates, by_amount, tolerance },
    );
    if (match.status === 'matched') for (const id of match.entries) taken.add(id);
    matches.push(match);
  }
  return matches;
}

/** Lists the bank's names for a line, its own first. */
function listNames(line: LineToMatch): string[] {
  const names = [
    nameMovement(line),
    line.bank_reference,
    line.part_reference,
    line.entry_reference,
  ];
  return [...new Set(names.flatMap((name) => name ?? []))];
}

/** A connector without files has no such database, and operators may not read it. */
const UNAUTHORIZED = 13;

/** Reads what a connector of files alone knows: payouts of each file, and references of payments. */
async function readBook(
  { statements }: JoinedStores,
  { connector }: ClearingScope,
  lines: readonly LineToMatch[],
): Promise<{ files: Map<string, string[]>; payments: Map<string, string> }> {
  const files = new Map<string, string[]>();
  const names = [...new Set(lines.flatMap(listFileNames))];
  const references = lines.flatMap(({ creditor_reference, mentions = [] }) =>
    [creditor_reference ?? [], mentions].flat(),
  );
  if (names.length + references.length === 0) return { files, payments: new Map() };
  const book = openSepaBook(statements.openConnectorDb(connector));
  // Outside of a transaction, which a refusal would end.
  const read = Promise.all([
    book.lines.find({ file_id: { $in: names } }, { projection: { file_id: 1 } }).toArray(),
    book.payments
      .find({ reference: { $in: references } }, { projection: { reference: 1 } })
      .toArray(),
  ]);
  const [payouts, payments] = await read.catch((error: unknown): [SepaLine[], SepaPayment[]] => {
    if (error instanceof MongoServerError && error.code === UNAUTHORIZED) return [[], []];
    throw error;
  });
  for (const { _id, file_id } of payouts) {
    const own = files.get(file_id ?? '');
    if (own !== undefined) own.push(_id);
    else if (file_id !== null) files.set(file_id, [_id]);
  }
  return { files, payments: new Map(payments.map(({ _id, reference }) => [reference, _id])) };
}

/** Finds entries by the names of their movements, and by what banks have answered before. */
async function findNamed(
  stores: JoinedStores,
  scope: ClearingScope,
  names: readonly string[],
  session: ClientSession | undefined,
): Promise<Map<string | null, Candidate[]>> {
  const rows = await stores.movements.findByNames(scope, names, session);
  const ids = rows.map(({ entry }) => entry);
  const moved = await stores.ledger.findAllUncleared(scope, { _id: ids }, session);
  const joined = await joinNames(stores, moved, session);
  const answered = await stores.ledger.findAllUncleared(scope, { bank_reference: names }, session);
  const known = new Set(joined.map((each) => `${each.bank_reference}${each.entry_id}`));
  const others = answered.filter((each) => !known.has(`${each.bank_reference}${each.entry_id}`));
  return groupBy([...joined, ...others], ({ bank_reference }) => bank_reference);
}

/** Names entries as the register does, with the acquirer's fee: a report may name one later. */
async function joinNames<Entry extends Candidate>(
  { movements }: JoinedStores,
  entries: readonly Entry[],
  session: ClientSession | undefined,
): Promise<Entry[]> {
  if (entries.length === 0) return [];
  const ids = entries.map(({ entry_id }) => entry_id);
  const rows = await movements.findByEntries(ids, session);
  const moved = new Map(rows.map((row) => [row.entry, row]));
  return entries.map((each) => {
    const { bank_reference, fee, dispute, direction } = moved.get(each.entry_id) ?? {};
    // What comes back of a dispute brings its fee back.
    const charge = fee && (dispute && direction === 'in' ? -fee.amount : fee.amount);
    return { ...each, bank_reference: bank_reference ?? each.bank_reference, fee: charge };
  });
}

/** Finds entries by amount and day in one query, unless these are common ones. */
async function findAmounts(
  stores: JoinedStores,
  scope: ClearingScope,
  lines: readonly LineToMatch[],
  session: ClientSession | undefined,
): Promise<(line: LineToMatch) => Promise<Candidate[]>> {
  const amounts = lines.map(({ amount }) => amount);
  const days = lines.flatMap(listDays);
  const found = await stores.ledger.findUnclearedOfAmounts(scope, amounts, days, session);
  const joined = found && (await joinNames(stores, found, session));
  const byKey = joined && groupBy(joined, ({ amount, day }) => `${amount} ${day}`);
  const findOne = async (amount: number, day: string) => {
    if (byKey !== undefined) return byKey.get(`${amount} ${day}`) ?? [];
    const common = await stores.ledger.findUncleared({ ...scope, amount, day }, session);
    return await joinNames(stores, common, session);
  };
  return async (line) => {
    const each: Candidate[] = [];
    for (const day of listDays(line)) each.push(...(await findOne(line.amount, day)));
    return each;
  };
}

function listDays({ day, value_date }: LineToMatch): string[] {
  return value_date === null || value_date === day ? [day] : [day, value_date];
}

export function groupBy<Row, Key>(
  rows: readonly Row[],
  getKey: (row: Row) => Key,
): Map<Key | null, Row[]> {
  const groups = new Map<Key | null, Row[]>();
  for (const row of rows) {
    const key = getKey(row);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [row]);
    else group.push(row);
  }
  return groups;
}

/**
 * Leaves open what would book more charges without an operator than the limits allow, and counts
 * the rest, unless there is no session.
 * @see docs/statements.md#matching
 */
export async function limitCharges(
  deps: Pick<ServiceDeps, 'stores' | 'now'>,
  { _id: account_id, livemode, currency }: BankAccountDocument,
  lines: readonly Pick<LineDocument, 'is_agreed' | 'fee'>[],
  matches: readonly Match[],
  session?: ClientSession,
): Promise<Match[]> {
  const charges = matches.map((match, index) => {
    const line = lines[index];
    if (match.status === 'matched' && line?.is_agreed) {
      const { clearing, bank_fees } = match.parts;
      const max = Math.max(AGREED_MINOR, Math.abs(clearing) / AGREED_PARTS);
      if (bank_fees === -line.fee && Math.abs(bank_fees) <= max) return 0n;
    }
    return measureCharge(match, { account_id, currency }).amount;
  });
  if (!livemode || charges.every((amount) => amount === 0n)) return [...matches];
  const limits = [await readLimits(deps, session)];
  const scopes = listScopes({ account_id }, currency, limits);
  let allowance = BigInt(await deps.stores.approvals.readAllowance(scopes, deps.now(), session));
  let amount = 0n;
  const limited = matches.map((match, index): Match => {
    const charge = charges[index] ?? 0n;
    if (match.status === 'open' || charge === 0n) return match;
    if (charge > allowance) return { status: 'open', different: match.entries[0] ?? null };
    allowance -= charge;
    amount += charge;
    return match;
  });
  const booked = { account_id, amount, currency };
  if (session !== undefined) await countCredit(deps, limits, { account_id }, booked, session);
  return limited;
}

/** Largest fee of an acquirer that no limit holds: minor units, or a part of the amount. */
const AGREED_MINOR = 100;
const AGREED_PARTS = 10;

export function measureCharge(
  match: Match,
  book: { account_id: string; currency: string },
): Credited {
  const amount = match.status === 'open' ? 0 : match.parts.bank_fees;
  // Two reports agree on what is announced.
  const announced = getAnnounced(match);
  const isOfReport = amount < 0 ? announced >= -amount : announced <= -amount;
  return computeCredit('statement', 'match', { ...book, amount: isOfReport ? 0 : amount });
}

function getAnnounced(match: Match): number {
  return match.status === 'matched' ? (match.announced ?? 0) : 0;
}

type LineOfEntry = Pick<
  LineDocument,
  '_id' | 'bank_account_id' | 'livemode' | 'currency' | 'day' | 'value_date'
>;

/** Posted in the book of the bank account. */
export function buildLineEntry(
  kind: 'bank_line' | 'bank_line_matched' | 'bank_line_unmatched' | 'bank_line_abandoned',
  line: LineOfEntry,
  lines: NewEntry['lines'],
  { now, step }: { now: () => Date; step?: number },
): NewEntry {
  const { _id: resource_id, bank_account_id: account_id, livemode, currency } = line;
  return {
    ...{ kind, resource_id, account_id, livemode, currency, lines },
    ...{ at: now().toISOString(), value_date: line.value_date ?? line.day },
    ...(step === undefined ? {} : { step: String(step) }),
  };
}

/** Takes what a match explains out of suspense, and notes it on the line and its entries. */
export async function storeMatch(
  { stores, now }: Pick<ServiceDeps, 'stores' | 'now'>,
  line: LineDocument,
  match: Exclude<Match, { status: 'open' }>,
  session: ClientSession,
): Promise<boolean> {
  const { ledger, movements, statements } = stores;
  const { status, entries, parts } = match;
  const version = line.version + 1;
  const change = { status, entries: [...entries], parts, different: null, version };
  if (!(await statements.changeLine(line, change, session))) return false;
  const lines = ENTRY_LINES.bank_line_matched(parts);
  const entry = buildLineEntry('bank_line_matched', line, lines, { now, step: version });
  await ledger.post(entry, session);
  await postTransfer({ stores, now }, line, match, session);
  if (entries.length > 0) await ledger.clear(entries, session);
  await nameActed({ movements }, { ...line, ...change }, entry.at, session);
  return true;
}

/** Matches open lines with entries that came after them. A repeat changes nothing. */
export async function rematch(deps: MatchDeps, account: BankAccountDocument): Promise<number> {
  const { mongo, stores } = deps;
  const scope = pickScope(account);
  const waiting = [
    ...(await stores.ledger.listUncleared({ ...scope, limit: 1 })),
    ...(await stores.ledger.listOpenTransfers(pickPlace(account))),
  ];
  if (waiting.length === 0) return 0;
  let matched = 0;
  let after: LineDocument | undefined;
  for (;;) {
    const place = { after, limit: TRIED_LINES };
    const page = await stores.statements.listWaiting(account._id, 'open', place);
    const free = page.filter(({ held, repeats }) => !held && repeats === null);
    const matches = await matchLines(stores, account, free);
    const changed = free.filter(({ different }, index) => {
      const match = matches[index];
      return match?.status !== 'open' || match.different !== different;
    });
    const ids = changed.map(({ _id }) => _id);
    for (let at = 0; at < ids.length; at += CHANGED_LINES) {
      const some = ids.slice(at, at + CHANGED_LINES);
      matched += await inTransaction(mongo, (session) => rematchPage(deps, account, some, session));
    }
    after = page.at(-1);
    if (page.length < TRIED_LINES) return matched;
  }
}

async function rematchPage(
  deps: MatchDeps,
  account: BankAccountDocument,
  ids: readonly string[],
  session: ClientSession,
): Promise<number> {
  const { statements } = deps.stores;
  const lines = (await statements.getLines(ids, session)).filter(({ status }) => status === 'open');
  const found = await matchLines(deps.stores, account, lines, session);
  const matches = await limitCharges(deps, account, lines, found, session);
  let matched = 0;
  for (const [index, line] of lines.entries()) {
    const match = matches[index];
    if (match === undefined) continue;
    if (match.status !== 'open') {
      if (await storeMatch(deps, line, match, session)) matched += 1;
    } else if (match.different !== line.different) {
      await statements.changeLine(line, { different: match.different }, session);
    }
  }
  return matched;
}
