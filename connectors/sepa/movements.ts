import type { LineMovement, MovementReference, SepaLine } from '../../src/service/sepa/book';
import { type ApplyDeps, endFiles } from './apply';
import type { Movement } from './messages';

type Facts = Pick<SepaLine, 'state' | 'booked' | 'returned' | 'others'>;

const OTHER = 'the bank has moved the money of a payout again, or otherwise';

/**
 * Applies the booked movements of a message: each counts once, whichever messages report it.
 * @returns number of payouts of the book that they concern
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

/** Computes what a message changes. @returns undefined if nothing */
export function changeLine(
  line: Facts,
  movements: readonly Movement[],
  at: string,
): Partial<SepaLine> | undefined {
  const all = [line.booked, line.returned, ...line.others].filter((fact) => fact !== null);
  const isNamed = ({ bank_reference: id }: Movement) => all.some((fact) => hasReference(fact, id));
  const named = movements.filter(isNamed);
  // First those that are known by name, so that no other takes their fact.
  const ordered = [...named, ...movements.filter((movement) => !named.includes(movement))];
  let facts = line;
  let change: Partial<SepaLine> | undefined;
  for (const movement of ordered) {
    const next = changeFacts(facts, movement, at);
    facts = { ...facts, ...next };
    change = next === undefined ? change : { ...change, ...next };
  }
  return change;
}

function changeFacts(line: Facts, movement: Movement, at: string): Partial<SepaLine> | undefined {
  const { kind, source, amount, currency, value_date, bank_reference: id, code } = movement;
  const reference = id === null ? [] : [{ source, id }];
  const known = findFact(line, movement);
  if (known !== undefined) {
    if (id === null || known.references.some((each) => isEqual(each, { source, id }))) return;
    const name = <F extends LineMovement | null>(fact: F): F =>
      fact === known ? { ...fact, references: [...known.references, ...reference] } : fact;
    return { [kind]: name(line[kind]), others: line.others.map(name) };
  }
  const money = { amount, currency, value_date, bank_reference: id };
  const fact = { ...money, references: reference, code, at };
  const report = { unreported: true, report_batch: null };
  if (line[kind] !== null) return { others: [...line.others, { kind, ...fact }], ...report };
  const state = kind === 'booked' && line.returned !== null ? line.state : kind;
  return { [kind]: fact, state, ...report };
}

/**
 * Finds the fact of the same amount that a movement repeats: by its reference, or one that no
 * message of that source has named yet.
 */
function findFact(
  line: Facts,
  { kind, source, amount, currency, bank_reference: id }: Movement,
): LineMovement | undefined {
  const facts = [line[kind], ...line.others.filter((other) => other.kind === kind)]
    .filter((fact) => fact !== null)
    .filter((fact) => fact.amount === amount && fact.currency === currency);
  if (id === null) return facts[0];
  const isUnnamed = ({ references }: LineMovement) =>
    references.every((each) => each.source !== source);
  return facts.find((fact) => hasReference(fact, id)) ?? facts.find(isUnnamed);
}

function hasReference({ references }: LineMovement, id: string | null): boolean {
  return references.some((each) => each.id === id);
}

function isEqual(one: MovementReference, other: MovementReference): boolean {
  return one.source === other.source && one.id === other.id;
}
