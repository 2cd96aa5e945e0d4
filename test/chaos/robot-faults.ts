const MOVEMENT = 'src/domain/banks/movement.ts';
const ENTRIES = 'src/ledger/resource-entries.ts';
const PAYOUT = 'workflows/payout/lifecycle.ts';
const SHARED = 'workflows/shared/movement.ts';

/** Change of one source file that puts a fault back which the product once had. */
export interface Patch {
  /** That of the fault, which may need several patches. */
  id: string;
  /** Seed whose story shows it; the search begins there. */
  seed?: number;
  file: string;
  /** Occurs once. */
  from: string;
  to: string;
}

/**
 * Faults to put back one at a time, each as it was: the robot has to find it. Not among them: what its
 * bank cannot show, since it is in the sandbox (funding on live without a bank) or not SEPA (one return
 * with and without its charges), and what the register of movements has made impossible (a reference of
 * an answer that replaces one of a callback).
 */
export const FAULTS: readonly Patch[] = [
  // Two movements that a bank books as one entry count as one.
  {
    id: 'M3',
    seed: 1,
    file: MOVEMENT,
    from: 'const named = same.find((movement) => hasName(movement, bank_reference));',
    to:
      "const entry = (name: string) => name.replace(/#.*$/, '');\n" +
      '  const named = own.find(({ names }) => names.map(entry).includes(entry(bank_reference)));',
  },
  // A bank's corrections book nothing.
  {
    id: 'M4',
    seed: 1,
    file: PAYOUT,
    from: "case 'debit_reversed':\n      return { direction: 'in', reason: name };",
    to: "case 'debit_reversed':\n      return undefined;",
  },
  {
    id: 'M4',
    file: PAYOUT,
    from: "case 'return_reversed':\n      return { direction: 'out', reason: name };",
    to: "case 'return_reversed':\n      return undefined;",
  },
  // The report of what an operator has marked counts as a second payment.
  {
    id: 'M6',
    seed: 1,
    file: MOVEMENT,
    from: 'same.find((movement) => movement.bank_reference === null);',
    to: "same.find((each) => each.bank_reference === null && each.sources[0]?.kind !== 'act');",
  },
  // A rest that never moved clears the entry of the whole.
  {
    id: 'M7',
    seed: 85,
    file: ENTRIES,
    from: 'const isWhole = BigInt(movement.amount) === BigInt(amount) && computeRest(movement) > 0n;',
    to: 'const isWhole = computeRest(movement) > 0n;',
  },
  // A failed refund that settles debits whatever amount the report names.
  {
    id: 'M10',
    seed: 35,
    file: 'activities/movements.ts',
    from: 'if (isBorne && known.every((each) => each.reason !== reason) && fits(row, { amount, currency })) {',
    to: 'if (isBorne && fits(row, { currency })) {',
  },
  // What comes back of a settled refund is in no book.
  {
    id: 'M11',
    seed: 62,
    file: 'workflows/refund/lifecycle.ts',
    from: "return { direction: 'in', reason: 'failed_after_settled' };",
    to: 'return undefined;',
  },
  // Suspense of a refund or payout in flight can be resolved.
  {
    id: 'M12',
    seed: 65,
    file: SHARED,
    from: 'const taker = isTakerFirst ? findTaker(resource, movement) : undefined;',
    to: 'const taker = undefined;',
  },
  // The reason ends with one movement, while another is in suspense.
  {
    id: 'M14',
    seed: 210,
    file: SHARED,
    from: 'attention: isOver ? findReason(left) : attention };',
    to: 'attention: isOver ? null : attention };',
  },
  // Entries that cancel each other stay in transit.
  {
    id: 'M15',
    seed: 102,
    file: ENTRIES,
    from: "const offsets = as === 'never_happened' && isWhole ? operationId(held) : undefined;",
    to: 'const offsets = undefined;',
  },
  // A chargeback that a dispute has taken already is taken again.
  {
    id: 'M16',
    seed: 37,
    file: 'activities/payment-disputes.ts',
    from: 'if (input.amount === null && taken > 0)',
    to: 'if (input.amount === null && taken < 0)',
  },
  {
    id: 'M16',
    file: 'src/domain/operators/remedies.ts',
    from: "what: 'The bank charges the payment back.',\n    ...DISPUTED,",
    to:
      "what: 'The bank charges the payment back.',\n    ask: 'dispute',\n    rows: [\n" +
      "      { if: 'taken', run: ['payment act ID claw_back'] },\n" +
      "      { if: 'counted', run: ['payment act ID claw_back'] },\n" +
      '      ...DISPUTED.rows.slice(2),\n    ],',
  },
  // `reversed` of a settled payment is dropped.
  {
    id: 'M18',
    seed: 228,
    file: 'src/domain/payment/payment.ts',
    from: "as `clawed_back`. */\n    reversed: { kind: 'reversed' },",
    to: 'as `clawed_back`. */\n    reversed: notSent,',
  },
  // A second execution that only `sent` reports is not seen.
  {
    id: 'M19',
    seed: 52,
    file: PAYOUT,
    from: "if (status === 'sent') return { direction: 'out', reason: 'second_completion' };",
    to: "if (status === 'sent') return undefined;",
  },
  // An act on money in suspense takes another movement than it names.
  {
    id: 'M21',
    seed: 22,
    file: SHARED,
    from: 'return held.find(({ id }) => id === named) ?? `No movement',
    to: 'return held[0] ?? `No movement',
  },
];
