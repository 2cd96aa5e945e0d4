/** Change of one source file. */
interface Patch {
  file: string;
  /** Occurs once. */
  from: string;
  to: string;
}

/** Fault that the product once had. */
export interface Fault {
  id: string;
  what: string;
  /** Seed whose story shows it; the search begins there. */
  seed: number;
  patches: readonly [Patch, ...Patch[]];
}

const MOVEMENT = 'src/domain/banks/movement.ts';
const PAYOUT = 'workflows/payout/lifecycle.ts';
const REFUND = 'workflows/refund/lifecycle.ts';
const SHARED = 'workflows/shared/movement.ts';
const REMEDIES = 'src/domain/operators/remedies.ts';

/**
 * Faults to put back one at a time, each as it was: the robot has to find it. Not among them: what its
 * bank cannot show, since it is in the sandbox (funding on live without a bank) or not SEPA (one return
 * with and without its charges), and what the register of movements has made impossible (a reference of
 * an answer that replaces one of a callback).
 */
export const FAULTS: readonly Fault[] = [
  {
    id: 'M3',
    what: 'two movements that a bank books as one entry count as one',
    seed: 1,
    patches: [
      {
        file: MOVEMENT,
        from: 'const named = same.find((movement) => hasName(movement, bank_reference));',
        to:
          "const entry = (name: string) => name.replace(/#.*$/, '');\n" +
          '  const named = own.find(({ names }) => names.map(entry).includes(entry(bank_reference)));',
      },
    ],
  },
  {
    id: 'M4',
    what: "a bank's corrections book nothing",
    seed: 1,
    patches: [
      {
        file: PAYOUT,
        from: "case 'debit_reversed':\n      return { direction: 'in', reason: name };",
        to: "case 'debit_reversed':\n      return undefined;",
      },
      {
        file: PAYOUT,
        from: "case 'return_reversed':\n      return { direction: 'out', reason: name };",
        to: "case 'return_reversed':\n      return undefined;",
      },
    ],
  },
  {
    id: 'M6',
    what: 'the report of what an operator has marked counts as a second payment',
    seed: 1,
    patches: [
      {
        file: MOVEMENT,
        from: 'same.find((movement) => movement.bank_reference === null);',
        to: "same.find((each) => each.bank_reference === null && each.sources[0]?.kind !== 'act');",
      },
    ],
  },
  {
    id: 'M7',
    what: 'a rest that never moved clears the entry of the whole',
    seed: 85,
    patches: [
      {
        file: 'src/ledger/resource-entries.ts',
        from: 'const isWhole = BigInt(movement.amount) === BigInt(amount) && computeRest(movement) > 0n;',
        to: 'const isWhole = computeRest(movement) > 0n;',
      },
    ],
  },
  {
    id: 'M10',
    what: 'a failed refund that settles debits whatever amount the report names',
    seed: 35,
    patches: [
      {
        file: 'activities/movements.ts',
        from: 'if (isBorne && known.every((each) => each.reason !== reason) && fits(row, { amount, currency })) {',
        to: 'if (isBorne && fits(row, { currency })) {',
      },
    ],
  },
  {
    id: 'M11',
    what: 'what comes back of a settled refund is in no book',
    seed: 62,
    patches: [
      {
        file: REFUND,
        from: "return { direction: 'in', reason: 'failed_after_settled' };",
        to: 'return undefined;',
      },
    ],
  },
  {
    id: 'M12',
    what: 'suspense of a refund or payout in flight can be resolved',
    seed: 65,
    patches: [
      {
        file: SHARED,
        from: 'const taker = isTakerFirst ? findTaker(resource, movement) : undefined;',
        to: 'const taker = undefined;',
      },
    ],
  },
  {
    id: 'M14',
    what: 'the reason ends with one movement, while another is in suspense',
    seed: 210,
    patches: [
      {
        file: SHARED,
        from: 'attention: isOver ? findReason(left) : attention };',
        to: 'attention: isOver ? null : attention };',
      },
    ],
  },
  {
    id: 'M15',
    what: 'entries that cancel each other stay in transit',
    seed: 102,
    patches: [
      {
        file: 'src/ledger/resource-entries.ts',
        from: "const offsets = as === 'never_happened' && isWhole ? operationId(held) : undefined;",
        to: 'const offsets = undefined;',
      },
    ],
  },
  {
    id: 'M16',
    what: 'a chargeback that a dispute has taken already is taken again',
    seed: 37,
    patches: [
      {
        file: 'activities/payment-disputes.ts',
        from: 'if (input.amount === null && taken > 0)',
        to: 'if (input.amount === null && taken < 0)',
      },
      {
        file: REMEDIES,
        from: "what: 'The bank charges the payment back.',\n    ...DISPUTED,",
        to:
          "what: 'The bank charges the payment back.',\n    ask: 'dispute',\n    rows: [\n" +
          "      { if: 'taken', run: ['payment act ID claw_back'] },\n" +
          "      { if: 'counted', run: ['payment act ID claw_back'] },\n" +
          '      ...DISPUTED.rows.slice(2),\n    ],',
      },
    ],
  },
  {
    id: 'M18',
    what: '`reversed` of a settled payment is dropped',
    seed: 228,
    patches: [
      {
        file: 'src/domain/payment/payment.ts',
        from: "as `clawed_back`. */\n    reversed: { kind: 'reversed' },",
        to: 'as `clawed_back`. */\n    reversed: notSent,',
      },
    ],
  },
  {
    id: 'M19',
    what: 'a second execution that only `sent` reports is not seen',
    seed: 52,
    patches: [
      {
        file: PAYOUT,
        from: "if (status === 'sent') return { direction: 'out', reason: 'second_completion' };",
        to: "if (status === 'sent') return undefined;",
      },
    ],
  },
  {
    id: 'M21',
    what: 'an act on money in suspense takes another movement than it names',
    seed: 22,
    patches: [
      {
        file: SHARED,
        from: 'return held.find(({ id }) => id === named) ?? `No movement',
        to: 'return held[0] ?? `No movement',
      },
    ],
  },
];
