import { parseResourceId, type StatementLine } from '../domain/banks/statement';

/** Entry without a line; its amount as a statement would have it. */
export interface Candidate {
  entry_id: string;
  resource_id: string;
  /** Minor units; above 0 comes in. */
  amount: number;
  bank_reference: string | null;
  /** Minor units that its report says the bank keeps; below 0: gives back. */
  fee?: number | undefined;
}

export type LineFacts = Pick<
  StatementLine,
  | ('amount' | 'fee' | 'charges' | 'is_fee' | 'batch')
  | ('reference' | 'bank_reference' | 'position')
>;

export interface Candidates {
  by_reference: readonly Candidate[];
  by_bank_reference: readonly Candidate[];
  /** Entries of the file that the line names. */
  by_file?: readonly Candidate[];
  /** Entries of resources that its text may name. */
  by_text?: readonly Candidate[];
  /** Amount and day equal those of the line. */
  by_amount: readonly Candidate[];
  /** Minor units by which the one entry that the line names may differ; 0 by default. */
  tolerance?: number | undefined;
}

/** Minor units. */
export interface Parts {
  clearing: number;
  bank_fees: number;
}

export type Match =
  /**
   * `announced`: charges that reports of the entries say, in minor units; `transfer`: the entry is posted
   * with the match, as one end of a transfer.
   */
  | {
      status: 'matched';
      entries: readonly string[];
      parts: Parts;
      announced?: number;
      transfer?: PostedTransfer;
    }
  | { status: 'booked'; entries: readonly []; parts: Parts }
  /** `different`: entry that the line names, with a different amount. */
  | { status: 'open'; different: string | null };

interface PostedTransfer {
  names: readonly string[];
  /** Entry of the other end; null while it is missing. */
  other: string | null;
}

/** @see docs/statements.md#matching */
export function matchLine(
  line: LineFacts,
  { by_file = [], by_text = [], ...candidates }: Candidates,
): Match {
  const isInDirection = ({ amount }: Candidate) => Math.sign(amount) === Math.sign(line.amount);
  const isOtherName = ({ bank_reference }: Candidate) =>
    bank_reference === null || bank_reference !== line.bank_reference;
  // Those of the line's own name first.
  const named = [candidates.by_reference, candidates.by_bank_reference].map((found) =>
    found
      .filter(isInDirection)
      .toSorted((one, other) => Number(isOtherName(one)) - Number(isOtherName(other))),
  );
  const file = by_file.filter(isInDirection);
  const isCounted = line.batch === null || line.batch === file.length;
  const whole = isCounted ? matchSum(line, file, 1) : undefined;
  if (whole !== undefined) return whole;
  for (const found of named) {
    const match = matchAmount(line, found) ?? matchSum(line, found);
    if (match !== undefined) return match;
  }
  const [different, ...others] = named.flat();
  if (different !== undefined) {
    const { entry_id, amount: clearing } = different;
    const isOnly = others.every((other) => other.entry_id === entry_id);
    const differs = listTargets(line).map((parts) => Math.abs(parts.clearing - clearing));
    // A small difference is a charge of the bank.
    if (isOnly && Math.min(...differs) <= (candidates.tolerance ?? 0)) {
      return buildMatched([different], { clearing, bank_fees: line.amount - clearing });
    }
    return { status: 'open', different: entry_id };
  }
  if (line.is_fee) {
    return { status: 'booked', entries: [], parts: { clearing: 0, bank_fees: line.amount } };
  }
  const [text, ...ambiguous] = by_text
    .filter(isInDirection)
    .flatMap((entry) => matchAmount(line, [entry]) ?? []);
  if (text !== undefined && ambiguous.length === 0) return text;
  // The one entry of the amount, unless the bank gave it another name.
  const [only, ...alike] = candidates.by_amount.filter(
    ({ bank_reference }) => bank_reference === null || line.bank_reference === null,
  );
  return only !== undefined && alike.length === 0 && isAnonymous(line)
    ? buildMatched([only], { clearing: line.amount, bank_fees: 0 })
    : { status: 'open', different: null };
}

/** Names no entry of ours, so that amount and day may match. */
export function isAnonymous({ reference, is_fee }: LineFacts): boolean {
  return !is_fee && parseResourceId(reference) === null;
}

/** Amount before the bank's charges first; those that may be in it last. */
export function listTargets({ amount, fee, charges = [] }: LineFacts): Parts[] {
  const fees = [...new Set([fee, 0, ...charges])];
  return fees.map((each) => ({ clearing: amount + each, bank_fees: -each || 0 }));
}

function matchAmount(line: LineFacts, found: readonly Candidate[]): Match | undefined {
  for (const parts of listTargets(line)) {
    const entry = found.find(({ amount }) => amount === parts.clearing);
    if (entry !== undefined) return buildMatched([entry], parts);
  }
  const entry = found.find(({ amount, fee = 0 }) => fee !== 0 && amount - fee === line.amount);
  if (entry === undefined) return undefined;
  return buildMatched([entry], { clearing: entry.amount, bank_fees: line.amount - entry.amount });
}

function buildMatched(found: readonly Candidate[], parts: Parts): Match {
  const announced = found.reduce((sum, { fee = 0 }) => sum + fee, 0);
  const entries = found.map(({ entry_id }) => entry_id);
  return { status: 'matched', entries, parts, ...(announced === 0 ? {} : { announced }) };
}

function matchSum(line: LineFacts, found: readonly Candidate[], least = 2): Match | undefined {
  if (found.length < least) return undefined;
  const sum = found.reduce((total, { amount }) => total + amount, 0);
  const parts = listTargets(line).find(({ clearing }) => clearing === sum);
  return parts && buildMatched(found, parts);
}
