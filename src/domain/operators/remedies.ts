import type { CallbackResource } from '../banks/callback';
import type { CryptoPaymentAttention } from '../crypto/payment';
import type { CryptoSettlementAttention } from '../crypto/settlement';
import type { DisputeAttention } from '../dispute/dispute';
import type { CommonAttention } from '../lifecycle';
import type { PaymentAttention } from '../payment/payment';
import type { PayoutAttention } from '../payout/payout';
import type { RefundAttention } from '../refund/refund';

/** Questions of operators, and the answers that differ; `ask` says of whom. */
const QUESTIONS = {
  /** Ask about a resource. */
  outcome: {
    ask: 'Ask the bank.',
    answers: {
      executed: 'it was executed',
      not_executed: 'it was not, and will not be',
      back: 'the money is back',
      waiting: 'it is under way',
    },
  },
  /** Ask about a movement in suspense; without one, about what the reason is about. */
  money: {
    ask: 'Ask the bank.',
    answers: {
      came: 'the money came',
      sent: 'the money was sent',
      back: 'it moved, and is back by now',
      never: 'it never moved, or is counted already',
    },
  },
  dispute: {
    ask: 'Ask the bank.',
    answers: {
      taken: 'it has taken money back',
      counted: 'a dispute that is posted has that money',
      error: 'it was an error',
    },
  },
  /** Ask about a journal entry or a statement line. */
  line: {
    ask: 'Ask the bank.',
    answers: {
      later: 'a statement is still to have it',
      ours: 'it names the entry',
      other_amount: 'it moved a different amount',
      charge: 'it kept a charge',
      merchant: 'it is money of a merchant',
      none: 'no statement will have it',
      never: 'it never moved, and another entry undoes it',
    },
  },
  correction: {
    ask: 'Ask the bank.',
    answers: { final: 'it leaves it at that', again: 'it will book it again, or has' },
  },
  statement: {
    ask: 'Ask the bank.',
    answers: { file: 'it gives the file', none: 'there is none' },
  },
  by_hand: { ask: 'Return it by hand.', answers: { back: 'the customer has it' } },
  connector: {
    ask: 'If this lasts, check the connector.',
    answers: { retired: 'it is retired' },
  },
  chain: {
    ask: 'Check the chain.',
    answers: {
      confirmed: 'it confirmed the transaction',
      dropped: 'it has none, and will have none',
      unknown: 'it does not know it',
      sent_back: 'you have sent the money back from the wallet of the connector',
    },
  },
  decision: {
    ask: 'Decide.',
    answers: { accept: 'the merchant is to have it', refuse: 'not' },
  },
} as const satisfies Record<string, { ask: string; answers: Record<string, string> }>;

type Question = keyof typeof QUESTIONS;

/** Answer of the bank, and what to do. */
interface Row<Answer extends string> {
  if: Answer;
  /**
   * Commands in this order; none: wait. Words in capitals stand for what `--json` or the answer says,
   * `a|b` for a choice of the operator. Where the state refuses the first, the next row with the same
   * answer is right.
   */
  run: readonly string[];
}

/** Remedy of an attention reason or a finding. */
export type Remedy =
  | {
      [Ask in Question]: {
        /** Sentences about what happened. */
        what: string;
        ask: Ask;
        rows: readonly Row<keyof (typeof QUESTIONS)[Ask]['answers'] & string>[];
        /** Sentence after the rows. */
        note?: string;
      };
    }[Question]
  | { what: string; ask?: undefined };

/** Takes a reason off the list that has no other act, or is left after it. */
export const ACKNOWLEDGE = 'attention acknowledge ATTENTION';

const COMMON: Record<CommonAttention, Remedy> = {
  malformed_callback: {
    what: 'A callback could not be read; the activity log says why. Ask the bank what it meant.',
  },
  sender_not_known: {
    what: 'A callback without a valid signature was not applied. If the bank confirms it, let its connector send it again, signed with a valid key.',
  },
  record_behind: {
    what: 'MongoDB is older than the workflow. Nothing is applied until you run `reconcile --apply`; the next transition then clears this reason.',
  },
  message_given_up: {
    what: 'A message was not applied, because the record kept changing; the activity log names it. Of a callback, run `callback deliver ID --again`; otherwise ask the bank.',
  },
  books_refused: {
    what: 'A message was not applied, because MongoDB refused its entry; the activity log names both. This is a fault of the service: report it to its developers. Once it is gone, run `callback deliver ID --again` for a callback; otherwise ask the bank.',
  },
};

const ACCOUNT = '--env ENV --balance-account BALANCE --currency CURRENCY';
const ADJUST = `balance adjust ACCOUNT ${ACCOUNT} --amount AMOUNT --against clearing:CONNECTOR`;

const BORNE = 'movement resolve MOVEMENT --as merchant|loss';
const NEVER_HAPPENED = 'movement resolve MOVEMENT --as never_happened';

const UNMOVED = [
  { if: 'back', run: ['movement resolve MOVEMENT --as bank'] },
  { if: 'never', run: [NEVER_HAPPENED] },
] as const;
/** Rows of money that came, or was sent, and that the resource does not take. */
const CAME = [{ if: 'came', run: [BORNE] }, ...UNMOVED] as const;
const SENT = [{ if: 'sent', run: [BORNE] }, ...UNMOVED] as const;

const WAITING_FOR_END = {
  ask: 'connector',
  rows: [{ if: 'retired', run: ['payment act ID give_up_closing'] }],
} as const;

const MARK_REVERSED = 'payment act ID mark_reversed --movement MOVEMENT';

const DISPUTED = {
  ask: 'dispute',
  rows: [
    { if: 'taken', run: ['payment act ID claw_back --amount AMOUNT --operation-id REFERENCE'] },
    { if: 'counted', run: [ACKNOWLEDGE] },
    { if: 'error', run: ['payment act ID dispute_won'] },
  ],
} as const;

/** Rows of money that came for a payment, and that it does not take. */
const NOT_TAKEN = [
  { if: 'came', run: ['movement resolve MOVEMENT --as merchant|customer|loss'] },
  { if: 'back', run: [MARK_REVERSED] },
  { if: 'never', run: [NEVER_HAPPENED] },
] as const;

const STATEMENT_FILE = {
  if: 'file',
  run: ['statement import FILE --connector CONNECTOR --env ENV'],
} as const;

const STATEMENT_MISSING = {
  what: 'A statement jumps over numbers, although its balance follows on; its day stays open.',
  ask: 'statement',
  rows: [STATEMENT_FILE, { if: 'none', run: [ACKNOWLEDGE] }],
} as const;

const PAYMENT: Record<Exclude<PaymentAttention, CommonAttention>, Remedy> = {
  settlement_overdue: {
    what: 'The bank has not settled it in time.',
    ask: 'outcome',
    rows: [
      { if: 'executed', run: ['payment act ID mark_settled'] },
      { if: 'not_executed', run: ['payment act ID mark_failed'] },
      { if: 'waiting', run: ['payment act ID snooze --hours 24'] },
    ],
  },
  session_not_closed: {
    what: 'The bank has not confirmed that the customer can no longer pay. Money that still comes is sent back.',
    ...WAITING_FOR_END,
  },
  late_money_pending: {
    what: 'The customer paid after the end, and the bank has to send the money back.',
    ...WAITING_FOR_END,
  },
  late_authorization_voided: {
    what: 'The customer authorized after the end, and the bank released it. Nothing to do.',
  },
  method_differs: {
    what: 'The customer paid by another method or card brand, which may have another price, and the payment is settled. Notify the merchant where that matters, and acknowledge it.',
  },
  late_settlement_reversed: {
    what: 'The money moved after the end, and the bank has to send it back. It has confirmed that once the money has left suspense.',
  },
  late_settlement_not_reversed: {
    what: 'The bank refused to send late funds back, or an operator gave that up. Notify the merchant.',
    ask: 'by_hand',
    rows: [{ if: 'back', run: [MARK_REVERSED] }],
  },
  late_reversal_overdue: {
    what: 'The bank has not confirmed for five days that it sent late funds back.',
    ask: 'money',
    rows: [
      { if: 'back', run: [MARK_REVERSED] },
      { if: 'came', run: [] },
    ],
  },
  failed_after_settled: {
    what: 'A settled payment failed at the bank, and can no longer be refunded.',
    ...DISPUTED,
  },
  clawed_back: {
    what: 'The bank charges the payment back.',
    ...DISPUTED,
    note: 'If the payment had not settled, nothing is posted.',
  },
  dispute_differs: {
    what: 'A dispute does not fit the payment, and was not posted; the callback in `payment show` says why.',
    ...DISPUTED,
  },
  amount_differs: {
    what: 'A different amount or currency came, and is in suspense.',
    ask: 'money',
    rows: [{ if: 'came', run: ['payment act ID mark_settled --movement MOVEMENT'] }, ...NOT_TAKEN],
    note: 'Once nothing is in suspense, a payment of which no money came ends by `mark_failed`.',
  },
  second_settlement: {
    what: 'A second settlement is in suspense.',
    ask: 'money',
    rows: NOT_TAKEN,
  },
  expired_after_authorized: {
    what: 'An authorized payment expired at the bank.',
    ask: 'outcome',
    rows: [
      { if: 'executed', run: ['payment act ID mark_settled'] },
      { if: 'not_executed', run: ['payment act ID mark_failed'] },
      { if: 'waiting', run: [] },
    ],
  },
};

const REFUND: Record<Exclude<RefundAttention, CommonAttention>, Remedy> = {
  refund_overdue: {
    what: 'The bank has not reported the end in time.',
    ask: 'outcome',
    rows: [
      { if: 'executed', run: ['refund act ID mark_settled'] },
      { if: 'not_executed', run: ['refund act ID mark_failed'] },
      { if: 'waiting', run: ['refund act ID snooze --hours 24'] },
    ],
  },
  failed_after_settled: {
    what: 'A settled refund failed at the bank; what came back is in suspense. If it never came, the customer has it.',
    ask: 'money',
    rows: CAME,
  },
  settled_after_failed: {
    what: 'The bank settled a failed refund. The first of its amount was debited again; anything else is in suspense.',
    ask: 'money',
    rows: [...SENT, { if: 'never', run: [ADJUST] }],
  },
  moved_after_failed: {
    what: 'The bank accepted a refund that an operator had marked as failed. Ask the bank to cancel it.',
  },
  second_completion: {
    what: 'The bank settled the refund again; what it sent is in suspense.',
    ask: 'money',
    rows: SENT,
  },
  amount_differs: {
    what: 'A different amount or currency was sent, and is in suspense.',
    ask: 'money',
    rows: [
      { if: 'sent', run: ['refund act ID mark_settled --movement MOVEMENT'] },
      ...SENT,
      { if: 'never', run: ['refund act ID mark_failed'] },
    ],
  },
};

/** Rows of a payout or crypto settlement whose bank is late before it has sent anything. */
const LATE_SENDING = [
  { if: 'executed', run: ['payout act ID mark_completed'] },
  { if: 'not_executed', run: ['payout act ID mark_failed'] },
  { if: 'waiting', run: ['payout act ID resubmit', 'payout act ID snooze --hours 24'] },
] as const;
const RESUBMIT = '`resubmit` asks the bank, and sends again only what it does not know.';

const CORRECTED = [
  { if: 'final', run: ['movement resolve MOVEMENT --as merchant'] },
  { if: 'again', run: ['movement resolve MOVEMENT --as bank'] },
] as const;

const MOVED_BACK: Remedy = {
  what: '',
  ask: 'money',
  rows: [{ if: 'came', run: ['payout act ID mark_returned --movement MOVEMENT'] }, ...CAME],
};

const PAYOUT: Record<Exclude<PayoutAttention, CommonAttention>, Remedy> = {
  not_submitted: {
    what: 'The bank has not taken the payout in time. Check the connector.',
    ask: 'outcome',
    rows: LATE_SENDING,
    note: RESUBMIT,
  },
  not_sent: {
    what: 'The bank has not handed the payout to the scheme in time.',
    ask: 'outcome',
    rows: LATE_SENDING,
    note: RESUBMIT,
  },
  not_completed: {
    what: 'The bank has not reported the outcome in time.',
    ask: 'outcome',
    rows: [
      { if: 'executed', run: ['payout act ID mark_completed'] },
      { if: 'not_executed', run: ['payout act ID mark_failed'] },
      { if: 'back', run: ['payout act ID mark_returned --amount AMOUNT'] },
      { if: 'waiting', run: ['payout act ID snooze --hours 24'] },
    ],
  },
  called_duplicate: {
    what: 'The bank says that the payout, or its file, had arrived before; it may execute that first copy. A booking clears this reason.',
    ask: 'outcome',
    rows: [
      { if: 'not_executed', run: ['payout act ID mark_failed --bank-confirmed-not-executed'] },
      { if: 'executed', run: [] },
      { if: 'waiting', run: [] },
    ],
    note: 'To pay it after all, run `sepa file resend FILE_ID --bank-confirmed-not-executed` where it was not executed.',
  },
  payee_not_verified: {
    what: 'The bank could not confirm that the account is the recipient’s: `payout show` has its result. It may hold the file (`awaiting_release`). The merchant decides whether it is paid all the same.',
    ask: 'outcome',
    rows: [
      { if: 'executed', run: ['payout act ID mark_completed'] },
      { if: 'not_executed', run: ['payout act ID release_unverified'] },
      { if: 'not_executed', run: ['payout act ID mark_failed'] },
      { if: 'waiting', run: [] },
    ],
    note: 'A booking clears this reason, too.',
  },
  restarted_in_flight: {
    what: 'The workflow was ended from outside and restarted; it asks the bank before it sends anything. Find out who ended it. `snooze` clears this reason.',
  },
  failed_after_completed: {
    what: 'A completed payout failed at the bank; nothing moved.',
    ask: 'outcome',
    rows: [
      { if: 'back', run: ['payout act ID mark_returned --amount AMOUNT'] },
      { if: 'executed', run: [ACKNOWLEDGE] },
    ],
  },
  moved_after_failed: {
    what: 'The bank continued a failed payout; what it sent is in suspense.',
    ask: 'money',
    rows: SENT,
  },
  moved_after_returned: {
    what: 'The bank reported another end of a returned payout; what it sent again is in suspense. The merchant was credited too much.',
    ask: 'money',
    rows: SENT,
  },
  second_return: {
    what: 'The bank reported a second return; one under another reference is in suspense. Both may be the same.',
    ask: 'money',
    rows: CAME,
  },
  second_completion: {
    what: 'The bank sent the payout again; the money is in suspense.',
    ask: 'money',
    rows: SENT,
  },
  return_too_late: { ...MOVED_BACK, what: 'A return after more than 60 days is in suspense.' },
  return_not_possible: {
    ...MOVED_BACK,
    what: 'A return on a rail without returns is in suspense.',
  },
  debit_reversed: {
    what: 'The bank reversed its debit; what came is in suspense. Another debit of this amount within ten days resolves it.',
    ask: 'correction',
    rows: CORRECTED,
    note: 'With `merchant`, the payout is `returned`.',
  },
  return_reversed: {
    what: 'The bank reversed a return; what it took is in suspense. Another return of this amount within ten days resolves it.',
    ask: 'correction',
    rows: CORRECTED,
    note: 'With `merchant`, the merchant owes what the balance does not hold.',
  },
  amount_differs: {
    what: 'A different amount or currency moved, and is in suspense.',
    ask: 'money',
    rows: [
      { if: 'sent', run: ['payout act ID mark_completed --movement MOVEMENT'] },
      { if: 'sent', run: [BORNE] },
      { if: 'came', run: ['payout act ID mark_returned --movement MOVEMENT'] },
      ...CAME,
    ],
  },
};

const DISPUTE: Record<Exclude<DisputeAttention, CommonAttention>, Remedy> = {
  dispute_differs: {
    what: 'A report of the dispute does not fit it, or its payment, and was not posted; the callback in `payment show` says why. A fee above what the connector has declared was left out.',
    ask: 'dispute',
    rows: [
      {
        if: 'taken',
        run: ['payment act PAYMENT claw_back --amount AMOUNT --operation-id REFERENCE'],
      },
      { if: 'counted', run: [ACKNOWLEDGE] },
      { if: 'error', run: ['dispute act ID dispute_won'] },
    ],
  },
  answer_refused: {
    what: 'The bank refused the evidence, or the acceptance; the activity log says why. Answer it in another way, where that matters.',
  },
  answer_overdue: {
    what: 'The bank has not confirmed that it has the evidence, or the acceptance. Check the connector.',
  },
};

const CRYPTO_PAYMENT: Record<Exclude<CryptoPaymentAttention, CommonAttention>, Remedy> = {
  deposit_held: {
    what: 'Screening holds a deposit, which is in suspense.',
    ask: 'decision',
    rows: [
      { if: 'accept', run: ['crypto-payment act ID release'] },
      { if: 'refuse', run: ['crypto-payment act ID reject'] },
    ],
  },
  late_deposit: {
    what: 'A deposit came after the window, or again after it was gone, and is in suspense.',
    ask: 'decision',
    rows: [
      { if: 'accept', run: ['crypto-payment act ID credit_late'] },
      { if: 'refuse', run: ['crypto-payment act ID reject'] },
    ],
  },
  deposit_to_return: {
    what: 'A deposit that counts for nothing is in suspense, and is to go back.',
    ask: 'chain',
    rows: [
      {
        if: 'sent_back',
        run: ['movement resolve MOVEMENT --as customer --transaction-id TX --address ADDRESS'],
      },
      { if: 'dropped', run: ['movement resolve MOVEMENT --as loss'] },
    ],
    note: '`loss` gives up returning it: the service has it.',
  },
  underpaid: {
    what: 'The window closed with less than is due; the merchant has what came.',
    ask: 'decision',
    rows: [
      { if: 'accept', run: ['crypto-payment act ID accept'] },
      { if: 'refuse', run: ['crypto-payment act ID return'] },
    ],
    note: '`return` debits it, until you have sent it back.',
  },
  deposit_undone: {
    what: 'The chain removed a credited deposit. Another block may include it.',
    ask: 'chain',
    rows: [
      { if: 'confirmed', run: [] },
      { if: 'dropped', run: ['movement resolve MOVEMENT --as merchant|loss'] },
    ],
    note: '`merchant` takes it from the merchant; `loss` makes it our loss.',
  },
  deposit_unconfirmed: {
    what: 'A deposit is not confirmed. Check the connector, too.',
    ask: 'chain',
    rows: [{ if: 'confirmed', run: ['crypto-payment act ID confirm --transaction-id TX'] }],
  },
  amount_differs: {
    what: 'The connector reports another amount for an applied deposit; nothing changed. Check the chain.',
  },
  too_many_deposits: {
    what: 'More deposits came than a payment stores; the rest was not applied. Check the address.',
  },
  wrong_asset: {
    what: 'Another asset came to the address; nothing was credited. Send it back from the wallet of the connector. If `show` lists it, then `movement resolve MOVEMENT --as customer --transaction-id TX --address ADDRESS`, or `--as loss`.',
  },
  address_in_use: {
    what: 'The connector gave the address of another payment, so this one was refused. Stop the connector and read docs/evm.md#after-a-restore.',
  },
};

const CRYPTO_SETTLEMENT: Record<Exclude<CryptoSettlementAttention, CommonAttention>, Remedy> = {
  settlement_overdue: {
    what: 'The chain has not confirmed it in time.',
    ask: 'chain',
    rows: [
      { if: 'confirmed', run: ['crypto-settlement act ID mark_completed'] },
      { if: 'unknown', run: ['crypto-settlement act ID resubmit'] },
      { if: 'dropped', run: ['crypto-settlement act ID mark_failed'] },
    ],
    note: RESUBMIT.replace('the bank', 'the connector'),
  },
  failed_after_completed: {
    what: 'A completed settlement failed at the connector; nothing moved. Check the chain.',
  },
  moved_after_failed: {
    what: 'The connector continued a failed settlement. Once it is completed, it is in suspense.',
    ask: 'chain',
    rows: [
      { if: 'confirmed', run: [BORNE] },
      { if: 'dropped', run: [NEVER_HAPPENED] },
    ],
  },
  amount_differs: {
    what: 'A different amount was completed, and is in suspense.',
    ask: 'chain',
    rows: [
      { if: 'confirmed', run: ['crypto-settlement act ID mark_completed --movement MOVEMENT'] },
      { if: 'confirmed', run: [BORNE] },
      { if: 'dropped', run: ['crypto-settlement act ID mark_failed'] },
    ],
  },
};

/** Attention reasons of each kind, without those that all have. */
export const REMEDIES = {
  payment: PAYMENT,
  refund: REFUND,
  payout: PAYOUT,
  dispute: DISPUTE,
  crypto_payment: CRYPTO_PAYMENT,
  crypto_settlement: CRYPTO_SETTLEMENT,
  sepa_file: {
    awaiting_release: {
      what: 'The bank has checked the recipients’ names of a file, and may hold it: `sepa file show` has the results. If all is to be paid, release the file at the bank, then run `sepa file released ID`; otherwise withdraw it there, wait for its answer, then run `sepa file resend ID`.',
    },
    file_overdue: {
      what: 'The bank has not answered in time for all payouts of an instant file: `sepa file show` lists those that are `in_file`. Ask it for its answer (`pain.002`), and put that into `SEPA_IN_DIR`. Without a file, run `payout act ID mark_completed`, or `mark_failed`, as it says; the reason ends with the last one.',
    },
  },
  bank_account: {
    sum_mismatch: {
      what: 'The lines of a statement do not lead from its opening to its closing balance; nothing of it is stored.',
      ask: 'statement',
      rows: [STATEMENT_FILE, { if: 'none', run: [ACKNOWLEDGE] }],
      note: 'Of a day that the connector makes, what is missing then becomes an open line, and the next days follow.',
    },
    statement_missing: STATEMENT_MISSING,
    bank_file_refused: {
      what: 'A file of the bank was refused; `sepa inbound list --refused` says why. Put the right file into `SEPA_IN_DIR`. If there is none, or nothing in it counts, run `sepa inbound dismiss FILE_ID --reason TEXT`.',
    },
    not_repeated: {
      what: 'Only a notification has a credit, and no statement after five days; it may be spent already.',
      ask: 'line',
      rows: [
        { if: 'later', run: [] },
        { if: 'none', run: [ACKNOWLEDGE] },
      ],
      note: 'If the bank never had it, debit what was credited first (`claw_back`, `balance adjust --owed`).',
    },
    lines_open: {
      what: 'Lines of its statements match no entry for longer than `--open-days` of the account; it ends when they are matched. `reconciliation show` and `statement show ID --status open` list them; ask the bank what they are.',
    },
  },
} as const satisfies Record<
  CallbackResource | 'bank_account' | 'sepa_file',
  Record<string, Remedy>
>;

export { COMMON as COMMON_REMEDIES };

/** Findings of the trial balance, and `different` of a reconciled day. @see docs/ledger.md#trial-balance */
export const FINDING_REMEDIES = {
  book_unbalanced: { what: 'The balances of a book do not sum to 0. Run `ledger verify`.' },
  in_transit: {
    what: 'No statement line matches a journal entry (`ours_only` of a day).',
    ask: 'line',
    rows: [
      { if: 'later', run: [] },
      { if: 'other_amount', run: [`${ADJUST} --bank-reference REFERENCE`] },
      {
        if: 'charge',
        run: [`balance adjust ACCOUNT ${ACCOUNT} --amount AMOUNT --against bank_fees`],
      },
      { if: 'never', run: ['statement clear ENTRY ENTRY'] },
    ],
  },
  unmatched: {
    what: 'A statement line matches no journal entry (`theirs_only` of a day).',
    ask: 'line',
    rows: [
      { if: 'ours', run: ['statement match LINE ENTRY'] },
      { if: 'charge', run: ['statement match LINE --difference-to expense.bank_fees'] },
      { if: 'merchant', run: [`${ADJUST} --bank-reference REFERENCE`] },
    ],
  },
  different: {
    what: 'A statement line names a journal entry of another amount.',
    ask: 'line',
    rows: [
      { if: 'ours', run: ['statement match LINE ENTRY'] },
      { if: 'charge', run: ['statement match LINE ENTRY --difference-to expense.bank_fees'] },
      {
        if: 'other_amount',
        run: [`${ADJUST} --bank-reference REFERENCE`, 'statement match LINE ENTRY ENTRY'],
      },
    ],
  },
  suspense: {
    what: 'Nobody has, or bears, the money of a movement yet: `attention list` says why.',
  },
  not_repeated: {
    what: 'A notification announced a movement, and no statement has it after 5 days.',
    ask: 'line',
    rows: [{ if: 'later', run: [] }],
  },
  funded_without_bank: {
    what: 'A live merchant was credited what no bank has. Reverse the funding, and repeat it with `--connector` and `--bank-reference`.',
  },
  transfer_open: {
    what: 'One end of a transfer between own accounts is posted, and the other is missing after 5 days.',
    ask: 'line',
    rows: [
      { if: 'later', run: [] },
      {
        if: 'ours',
        run: [
          'platform post --connector CONNECTOR --kind transfer --amount AMOUNT --currency CURRENCY --bank-reference REFERENCE',
        ],
      },
    ],
  },
  statement_missing: STATEMENT_MISSING,
  no_bank_account: {
    what: 'Money is at a bank whose statements no registered account takes. Register it with `bank-account add`.',
  },
  clearing_differs: {
    what: 'An entry bypassed a statement, or a match cleared another amount, so that merchants and a bank differ by what nothing in transit explains.',
  },
} as const satisfies Record<string, Remedy>;

/** @returns undefined for a reason that has none */
export function findRemedy(kind: keyof typeof REMEDIES, reason: string): Remedy | undefined {
  const own: Partial<Record<string, Remedy>> = REMEDIES[kind];
  const common: Partial<Record<string, Remedy>> = COMMON;
  return own[reason] ?? common[reason];
}

/** Lists the rows of a remedy; none where it asks nothing. */
export function listRows(remedy: Remedy): readonly Row<string>[] {
  return remedy.ask === undefined ? [] : remedy.rows;
}

/** Writes a remedy as sentences. */
export function describeRemedy(remedy: Remedy): string {
  if (remedy.ask === undefined) return remedy.what;
  const { ask, answers }: { ask: string; answers: Record<string, string> } = QUESTIONS[remedy.ask];
  const rows = listRows(remedy);
  const answered = [...new Set(rows.map((row) => row.if))];
  const sentences = answered.map((answer) => {
    const own = rows
      .filter((row) => row.if === answer)
      .map(({ run }) => run.map((command) => `\`${command}\``).join(', then ') || 'wait');
    return `If ${answers[answer]}: ${own.join(', or where that is refused ')}.`;
  });
  const note = remedy.note === undefined ? [] : [remedy.note];
  return [remedy.what, ask, ...sentences, ...note].join(' ');
}
