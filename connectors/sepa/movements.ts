import type { Logger } from '../../src/base/log';
import { omitUndefined } from '../../src/domain/defined';
import type {
  LineMovement,
  MovementReference,
  SepaBook,
  SepaLine,
} from '../../src/service/banks/sepa/book';
import type { Credit, Movement } from './messages';

export interface ApplyDeps {
  book: Pick<SepaBook, 'lines' | 'files'>;
  log: Pick<Logger, 'info' | 'warn' | 'error'>;
  now: () => Date;
}

type Facts = Pick<SepaLine, 'state' | 'booked' | 'returned' | 'others'>;

const OTHER = 'the bank has moved the money of a payout again, or otherwise';

/**
 * Counts each movement once, whichever messages report it.
 * @returns number of payouts
 */
export async function applyMovements(
  deps: ApplyDeps,
  movements: readonly Movement[],
): Promise<number> {
  const byPayout = new Map<string, Movement[]>();
  for (const movement of movements) {
    const own = byPayout.get(movement.payout_id) ?? [];
    own.push(movement);
    byPayout.set(movement.payout_id, own);
  }
  const files = new Set<string>();
  let applied = 0;
  for (const [payout_id, own] of byPayout) {
    const line = await applyToLine(deps, payout_id, own);
    if (line === null) continue;
    applied += 1;
    if (line.file_id !== null) files.add(line.file_id);
  }
  await endFiles(deps, [...files]);
  return applied;
}

async function applyToLine(
  { book, log, now }: ApplyDeps,
  _id: string,
  movements: readonly Movement[],
): Promise<SepaLine | null> {
  for (;;) {
    const line = await book.lines.findOne({ _id });
    if (line === null) return null;
    const read = movements.map((movement) => pickReading(movement, line));
    const change = changeLine(line, read, now().toISOString());
    if (change === undefined) return line;
    const { booked, returned, others } = line;
    const applied = await book.lines.updateOne({ _id, booked, returned, others }, { $set: change });
    // Otherwise another process has changed the facts.
    if (applied.matchedCount === 0) continue;
    if ((change.others ?? others).length > others.length) log.error({ payout_id: _id }, OTHER);
    return line;
  }
}

export function changeLine(
  line: Facts,
  movements: readonly Movement[],
  at: string,
): Partial<SepaLine> | undefined {
  const all = [line.booked, line.returned, ...line.others].filter((fact) => fact !== null);
  let facts = line;
  let change: Partial<SepaLine> | undefined;
  for (const movement of putNamedFirst(all, movements)) {
    const next = changeFacts(facts, movement, at);
    facts = { ...facts, ...next };
    change = next === undefined ? change : { ...change, ...next };
  }
  return change;
}

function changeFacts(line: Facts, movement: Movement, at: string): Partial<SepaLine> | undefined {
  const { kind, code } = movement;
  const isFirst = kind === 'booked' || kind === 'returned';
  // Notifications have no sum that proves the sign: it may be that of what is reversed.
  const isUncertain = kind === 'return_reversed' && movement.source === 'notification';
  if (isUncertain && line.returned === null) return;
  const first = isFirst ? line[kind] : null;
  const facts = [first, ...line.others.filter((other) => other.kind === kind)];
  const sameKind = facts.filter((each) => each !== null);
  const known =
    findFact(sameKind, movement) ??
    (kind === 'returned' ? findGrossOrNet(sameKind, movement) : undefined);
  if (known !== undefined) {
    const named = nameFact(known, movement);
    if (named === known) return;
    const name = <F extends LineMovement | null>(fact: F): F =>
      fact === known ? { ...fact, references: named.references } : fact;
    const others = line.others.map(name);
    return isFirst ? { [kind]: name(line[kind]), others } : { others };
  }
  const fact = buildFact(movement, code, at);
  const report = { unreported: true, report_batch: null };
  if (!isFirst || first !== null) return { others: [...line.others, { kind, ...fact }], ...report };
  const state = kind === 'booked' && line.returned !== null ? line.state : kind;
  return { [kind]: fact, state, ...report };
}

/** Reads a movement as what we have instructed, where the charges that the bank states allow it. */
export function pickReading<M extends Pick<Movement, 'amount' | 'readings' | 'currency'>>(
  movement: M,
  { amount, currency }: Pick<SepaLine, 'amount' | 'currency'>,
): M {
  const isOurs = movement.currency === currency && movement.readings?.includes(amount);
  return isOurs && movement.amount !== amount ? { ...movement, amount } : movement;
}

type Reported = Pick<
  Movement,
  'source' | 'amount' | 'currency' | 'value_date' | 'bank_reference' | 'also'
>;

/** Named movements come first, so that no other takes their fact. */
function putNamedFirst<M extends Reported>(
  facts: readonly LineMovement[],
  movements: readonly M[],
): M[] {
  const named = movements.filter((movement) => facts.some((fact) => hasReference(fact, movement)));
  return [...named, ...movements.filter((movement) => !named.includes(movement))];
}

/**
 * Finds the fact by its reference, or one of the same amount that no message of that source has
 * named yet.
 */
export function findFact(
  all: readonly LineMovement[],
  reported: Reported,
): LineMovement | undefined {
  const { source, amount, currency, bank_reference: id } = reported;
  const facts = all.filter((fact) => fact.amount === amount && fact.currency === currency);
  if (id === null) return facts[0];
  const isUnnamed = ({ references }: LineMovement) =>
    references.every((each) => each.source !== source);
  const isNamed = ({ references }: LineMovement) => references.some((each) => each.id === id);
  return (
    facts.find(isNamed) ??
    facts.find((fact) => hasReference(fact, reported)) ??
    facts.find(isUnnamed)
  );
}

/**
 * Finds the same return without or with its charges: a `pacs.004` has the amount before them, what a
 * bank books may be less.
 */
function findGrossOrNet(
  facts: readonly LineMovement[],
  { source, currency, value_date, code, bank_reference }: Movement,
): LineMovement | undefined {
  const isInterbank = (other: string) => other === 'interbank';
  return facts.find(({ references, ...fact }) => {
    const isSameReturn =
      fact.currency === currency && fact.value_date === value_date && fact.code === code;
    const own = references.filter((each) => each.source === source);
    return (
      isSameReturn &&
      references.some((each) => isInterbank(each.source) !== isInterbank(source)) &&
      own.every(({ id }) => id === bank_reference)
    );
  });
}

function nameFact(fact: LineMovement, { source, bank_reference: id, also }: Reported) {
  const isNamed = fact.references.some((each) => each.source === source && each.id === id);
  if (id === null || isNamed) return fact;
  return { ...fact, references: [...fact.references, buildReference(source, id, also)] };
}

function buildFact(
  { source, amount, currency, value_date, bank_reference: id, also }: Reported,
  code: string | null,
  at: string,
): LineMovement {
  const references = id === null ? [] : [buildReference(source, id, also)];
  return { amount, currency, value_date, bank_reference: id, references, code, at };
}

function buildReference(source: Reported['source'], id: string, also?: string): MovementReference {
  return { source, id, ...(also === undefined || also === id ? {} : { also }) };
}

/** A booking and a part of it are the same for a payout, and two parts of one booking are two. */
function hasReference(
  { references }: LineMovement,
  { bank_reference: id, also }: Pick<Reported, 'bank_reference' | 'also'>,
): boolean {
  if (id === null) return false;
  return references.some((each) => each.id === id || each.also === id || each.id === also);
}

interface CreditDeps {
  book: Pick<SepaBook, 'payments'>;
  now: () => Date;
}

/**
 * Counts each credit once. One with an unknown reference waits in its statement, for an operator.
 */
export async function applyCredits(deps: CreditDeps, credits: readonly Credit[]): Promise<void> {
  for (const reference of new Set(credits.map((credit) => credit.reference))) {
    const own = credits.filter((credit) => credit.reference === reference);
    await applyToPayment(deps, reference, own);
  }
}

async function applyToPayment(
  { book: { payments }, now }: CreditDeps,
  reference: string,
  own: readonly Credit[],
): Promise<void> {
  for (;;) {
    const payment = await payments.findOne({ reference });
    if (payment === null) return;
    const { _id, credits } = payment;
    const read = own.map((credit) => pickReading(credit, payment));
    const changed = addCredits(credits, read, now().toISOString());
    if (changed === undefined) return;
    const isNew = changed.length > credits.length;
    const report = isNew ? { unreported: true, report_batch: null } : {};
    const $set = { credits: changed, ...report };
    const applied = await payments.updateOne({ _id, credits }, { $set });
    // Otherwise another process has changed them.
    if (applied.matchedCount > 0) return;
  }
}

export function addCredits(
  credits: readonly LineMovement[],
  own: readonly Credit[],
  at: string,
): LineMovement[] | undefined {
  let facts = [...credits];
  let isChanged = false;
  for (const credit of putNamedFirst(credits, own)) {
    const { isReversal } = credit;
    const alike = facts.filter((fact) => fact.isReversal === isReversal);
    const known = findFact(alike, credit);
    const fresh = { ...buildFact(credit, null, at), ...omitUndefined({ isReversal }) };
    const next = known === undefined ? fresh : nameFact(known, credit);
    if (next === known) continue;
    isChanged = true;
    facts = known === undefined ? [...facts, next] : facts.map((f) => (f === known ? next : f));
  }
  return isChanged ? facts : undefined;
}

/** Ends files of which nothing is awaited. */
export async function endFiles({ book, now }: ApplyDeps, ids: readonly string[]): Promise<void> {
  for (const file_id of ids) {
    if ((await book.lines.findOne({ file_id, state: 'in_file' })) !== null) continue;
    await book.files.updateOne(
      { _id: file_id, state: { $in: ['cut', 'sent', 'acknowledged'] } },
      { $set: { state: 'booked', ended_at: now() } },
    );
  }
}
