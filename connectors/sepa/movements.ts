import type { LineMovement, MovementReference, SepaLine } from '../../src/service/banks/sepa/book';
import { type ApplyDeps, endFiles } from './apply';
import type { Movement } from './messages';

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
  const files = new Set<string>();
  let applied = 0;
  for (const [payout_id, own] of groupByPayout(movements)) {
    const line = await applyToLine(deps, payout_id, own);
    if (line === null) continue;
    applied += 1;
    if (line.file_id !== null) files.add(line.file_id);
  }
  await endFiles(deps, [...files]);
  return applied;
}

function groupByPayout(movements: readonly Movement[]): Map<string, Movement[]> {
  const groups = new Map<string, Movement[]>();
  for (const movement of movements) {
    const group = groups.get(movement.payout_id);
    if (group === undefined) groups.set(movement.payout_id, [movement]);
    else group.push(movement);
  }
  return groups;
}

async function applyToLine(
  { book, log, now }: ApplyDeps,
  _id: string,
  movements: readonly Movement[],
): Promise<SepaLine | null> {
  for (;;) {
    const line = await book.lines.findOne({ _id });
    if (line === null) return null;
    const change = changeLine(line, movements, now().toISOString());
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

type Reported = Pick<Movement, 'source' | 'amount' | 'currency' | 'value_date' | 'bank_reference'>;

/** Named movements come first, so that no other takes their fact. */
export function putNamedFirst<M extends Reported>(
  facts: readonly LineMovement[],
  movements: readonly M[],
): M[] {
  const named = movements.filter(({ bank_reference: id }) =>
    facts.some((fact) => hasReference(fact, id)),
  );
  return [...named, ...movements.filter((movement) => !named.includes(movement))];
}

/**
 * Finds the fact by its reference, or one of the same amount that no message of that source has
 * named yet.
 */
export function findFact(
  all: readonly LineMovement[],
  { source, amount, currency, bank_reference: id }: Reported,
): LineMovement | undefined {
  const facts = all.filter((fact) => fact.amount === amount && fact.currency === currency);
  if (id === null) return facts[0];
  const isUnnamed = ({ references }: LineMovement) =>
    references.every((each) => each.source !== source);
  return facts.find((fact) => hasReference(fact, id)) ?? facts.find(isUnnamed);
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

export function nameFact(fact: LineMovement, { source, bank_reference: id }: Reported) {
  if (id === null || fact.references.some((each) => isEqual(each, { source, id }))) return fact;
  return { ...fact, references: [...fact.references, { source, id }] };
}

export function buildFact(
  { source, amount, currency, value_date, bank_reference: id }: Reported,
  code: string | null,
  at: string,
): LineMovement {
  const references = id === null ? [] : [{ source, id }];
  return { amount, currency, value_date, bank_reference: id, references, code, at };
}

function hasReference({ references }: LineMovement, id: string | null): boolean {
  return references.some((each) => each.id === id);
}

function isEqual(one: MovementReference, other: MovementReference): boolean {
  return one.source === other.source && one.id === other.id;
}
