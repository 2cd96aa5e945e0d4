import type { ClientSession } from 'mongodb';
import { inTransaction } from '../../../base/mongo';
import type { StatementLine } from '../../../domain/banks/statement';

import { ENTRY_LINES } from '../../../ledger/entry-lines';
import { nameActed } from '../../../movements/acts';
import type { LineDocument } from '../../../store/statement-lines';
import type { StatementDocument } from '../../../store/statements';
import type { WriteDeps } from '../../access';
import { buildLineEntry, groupBy, limitCharges, matchLines, postTransfer } from './matching';
import type { PlannedStatement } from './plan';
import { StatementRefused } from './refusals';

/** Lines of one transaction, which must end in time on a slow server, too. */
const BATCH_MIN = 200;
const BATCH_MAX = 1_000;
const FAST_MS = 250;
const SLOW_MS = 1_000;

/** A transaction stores a batch. */
export async function storeLines(deps: WriteDeps, planned: PlannedStatement): Promise<void> {
  const { lines } = planned.statement;
  let size = BATCH_MIN;
  for (let at = 0; at < lines.length; ) {
    const batch = { first: at, lines: lines.slice(at, at + size) };
    const began = performance.now();
    await inTransaction(deps.mongo, (session) => storeBatch(deps, planned, batch, session));
    at += size;
    const took = performance.now() - began;
    if (took < FAST_MS) size = Math.min(BATCH_MAX, size * 2);
    else if (took > SLOW_MS) size = BATCH_MIN;
  }
}

/** Skips stored lines. */
async function storeBatch(
  deps: WriteDeps,
  { account, document }: PlannedStatement,
  { first, lines }: { first: number; lines: readonly StatementLine[] },
  session: ClientSession,
): Promise<void> {
  const { ledger, statements } = deps.stores;
  const { _id, statement_id } = document;
  if (!(await statements.addBatch(_id, session))) {
    const message = `Statement ${statement_id} was abandoned during its import: import it again.`;
    throw new StatementRefused('statement_abandoned', message);
  }
  const rows = lines.map((line, index) => buildRow(document, line, first + index + 1));
  const ids = rows.map(({ _id }) => _id);
  const stored = await statements.findStored(ids, session);
  const fresh = rows.filter(({ _id }) => !stored.has(_id));
  if (fresh.length === 0) return;
  const names = fresh.flatMap((line) =>
    [line.bank_reference ?? [], getEntryName(line) ?? []].flat(),
  );
  const place = [account._id, names] as const;
  const others = { $ne: document._id };
  const known = [
    ...(await statements.findByBankReference(...place, session)),
    ...(await statements.findByEntryReference(...place, others, session)),
  ];
  if (document.kind === 'notification') {
    for (const row of fresh) row.status = 'announced';
    await statements.insertLines(fresh, session);
    if (!known.some(isBooked)) return;
    const parts = await statements.findByEntryReference(...place, document._id, session);
    const isOwn = ({ statement }: LineDocument) => statement === document._id;
    const own = [...known.filter(isOwn), ...parts];
    const taken = new Set(own.map(({ repeats }) => repeats));
    const booked = known.filter((line) => isBooked(line) && !taken.has(line._id));
    // An entry may have more parts than a batch.
    const before = own.filter(({ _id, status }) => status === 'announced' && !ids.includes(_id));
    await repeatLines(deps, [...before, ...fresh], booked, session);
    return;
  }
  const byName = groupBy([...known, ...fresh], getName);
  const unique = fresh.filter((row) => {
    row.repeats = findRepeated(row, byName.get(row.bank_reference));
    return row.repeats === null;
  });
  const found = await matchLines(deps.stores, account, unique, session);
  const matches = await limitCharges(deps, account, unique, found, session);
  for (const [index, row] of unique.entries()) {
    const match = matches[index];
    if (match?.status === 'open') row.different = match.different;
    else if (match !== undefined) {
      Object.assign(row, { status: match.status, entries: [...match.entries], parts: match.parts });
    }
  }
  await statements.insertLines(fresh, session);
  // What a line does not match is in suspense.
  const entries = fresh.map((row) => {
    const unmatched = row.amount - row.parts.clearing - row.parts.bank_fees;
    const lines = ENTRY_LINES.bank_line({ ...row.parts, unmatched });
    return buildLineEntry('bank_line', row, lines, deps);
  });
  await ledger.postAll(entries, session);
  for (const [index, row] of unique.entries()) {
    const match = matches[index];
    if (match !== undefined) await postTransfer(deps, row, match, session);
  }
  const cleared = fresh.flatMap(({ entries }) => entries);
  if (cleared.length > 0) await ledger.clear(cleared, session);
  const at = deps.now().toISOString();
  for (const row of fresh) await nameActed(deps.stores, row, at, session);
  const same = await statements.findSame(document, 'filled', session);
  if (same !== null) await statements.repeatSame(same._id, fresh, session);
  const announced = known.filter(
    ({ status, statement }) => status === 'announced' && statement !== same?._id,
  );
  await repeatLines(deps, announced, fresh, session);
}

const getName = ({ bank_reference }: LineDocument) => bank_reference;
/** The name that the parts of an entry share. */
const getEntryName = (line: LineDocument) => line.entry_reference ?? line.bank_reference;

/** With the bank's charges in it, or without. */
function isSum(line: LineDocument, parts: readonly LineDocument[]): boolean {
  const net = parts.reduce((total, { amount }) => total + amount, 0);
  const gross = parts.reduce((total, { amount, fee }) => total + amount + fee, 0);
  return line.amount === net || line.amount + line.fee === gross;
}

export function buildRow(
  document: StatementDocument,
  line: StatementLine,
  number: number,
): LineDocument {
  const { _id: statement, bank_account_id, connector, livemode, iban } = document;
  return {
    _id: `${statement}:${number}`,
    statement,
    ...{ bank_account_id, connector, livemode, iban, ...line },
    ...{ status: 'open', entries: [], parts: { clearing: 0, bank_fees: 0 } },
    ...{ different: null, repeats: null, held: false, owner: null, version: 0 },
  };
}

const isBooked = ({ status }: LineDocument) =>
  status === 'matched' || status === 'booked' || status === 'open';

/** The bank's name, the reference and the amount of a repeat agree. */
export function findRepeated(
  row: LineDocument,
  namesakes: readonly LineDocument[] = [],
): string | null {
  if (row.bank_reference === null) return null;
  const before = namesakes.find(
    (other) =>
      isBooked(other) &&
      other.reference === row.reference &&
      other.amount === row.amount &&
      // Parts of a batch share the bank's name for it.
      (other.statement !== row.statement || other.entry < row.entry),
  );
  return before?._id ?? null;
}

/**
 * Pairs announced lines with booked ones of the same name and amount, or the sum of all that one of
 * the two has under the name of the entry with one of the other. Two notifications may announce the
 * same movement.
 */
async function repeatLines(
  { stores: { statements } }: WriteDeps,
  announced: readonly LineDocument[],
  booked: readonly LineDocument[],
  session: ClientSession,
): Promise<void> {
  const repeat = (line: LineDocument, { _id: repeats }: LineDocument) =>
    statements.changeLine(line, { status: 'repeated', repeats }, session);
  const byEntry = groupBy(booked, getEntryName);
  const byName = groupBy(booked, getName);
  const groups = groupBy(announced, (line) => JSON.stringify([line.statement, getEntryName(line)]));
  for (const [first, ...others] of groups.values()) {
    const name = first && getEntryName(first);
    if (first === undefined || name == null) continue;
    const waiting = [first, ...others];
    const entry = byEntry.get(name) ?? [];
    const whole = entry.find((line) => isSum(line, waiting));
    if (whole !== undefined) {
      for (const each of waiting) await repeat(each, whole);
      continue;
    }
    const ofStatements = groupBy(entry, ({ statement }) => statement);
    const parts = [...ofStatements.values()].find((some) => isSum(first, some));
    if (waiting.length === 1 && parts?.[0] !== undefined) {
      await repeat(first, parts[0]);
      continue;
    }
    const named = new Set([
      ...waiting.flatMap((each) => byName.get(getName(each)) ?? []),
      ...entry,
    ]);
    for (const each of waiting) {
      const alike = [...named].filter((other) => isSum(other, [each]));
      const line = alike.find((other) => getName(other) === getName(each)) ?? alike[0];
      if (line === undefined) continue;
      named.delete(line);
      await repeat(each, line);
    }
  }
}
