import { AMOUNT_MAX } from './callback/callback';
import { absent, Faults, flag, integer, object, positive, text, wholeNumber } from './shape';

/** Payload of every operator update, stored in the audit trail. */
export interface OperatorAct {
  operator: string;
  reason: string;
  approved_by?: string;
  /** Approval of a second operator, on live. */
  approval_id?: string;
  by?: ActSender;
  /** Whether the operator of `mark_failed` knows it from the bank, which is not asked. */
  bank_confirmed_not_executed?: boolean;
}

export interface ActSender {
  system_user: string;
  host: string;
}

export interface ActPayload extends OperatorAct {
  hours?: number;
  /** Minor units that actually moved; absent if they equal the requested amount. */
  amount?: number;
  /** Operator's own id of a chargeback: the same again posts nothing. */
  operation_id?: string;
  /** Dispute that is won; absent: the only one. */
  dispute_id?: string;
  /** Minor units of the fee that came back with a dispute. */
  fee?: number;
  /** Attention reason that the operator saw, of `acknowledge`: another one is not acknowledged. */
  attention?: string;
  /** Transaction of one deposit; absent: all to which the act applies. */
  deposit?: string;
  /** Transaction of the deposit to confirm, or the one that sent it back. */
  transaction_id?: string;
  /** Address to which it was sent back. */
  address?: string;
}

const SENDER = { system_user: text({ min: 1, max: 256 }), host: text({ min: 1, max: 256 }) };

function sender(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const result = object<ActSender>(value, SENDER);
  if (result instanceof Faults) return result.text;
  return Object.keys(Object(value)).length > 2 ? 'must have system_user and host only' : undefined;
}

const ACT = {
  operator: text({ min: 1, max: 100, trimmed: true }),
  reason: text({ min: 1, max: 500, trimmed: true }),
  approved_by: text({ min: 1, max: 100, optional: true, trimmed: true }),
  approval_id: text({ min: 1, max: 100, optional: true }),
  by: sender,
};

const SNOOZE_HOURS_MAX = 30 * 24;

/** Acts that may post an amount other than the requested one. */
const WITH_AMOUNT: readonly string[] = ['mark_settled', 'mark_returned', 'claw_back'];

const OPERATION_ID = text({ min: 1, max: 200, optional: true });

const ignored = () => undefined;

/** Acts on one of several deposits. */
const WITH_DEPOSIT: readonly string[] = ['mark_sent_back', 'write_off', 'debit_reorged'];
const WITH_TRANSACTION: readonly string[] = ['mark_sent_back', 'confirm'];
const CHAIN_TEXT = { min: 1, max: 200, optional: true };

/**
 * Parses the payload of an update; refuses an amount if the act posts none.
 * @param asksBank whether `mark_failed` asks the bank first
 */
export function readAct(name: string, raw: unknown, asksBank = false): ActPayload | Faults {
  const amount = integer({ min: 1, max: AMOUNT_MAX, optional: true });
  return object<ActPayload>(raw, {
    ...ACT,
    hours: name === 'snooze' ? positive(SNOOZE_HOURS_MAX) : ignored,
    attention: name === 'acknowledge' ? text({ min: 1, max: 100, optional: true }) : ignored,
    amount: WITH_AMOUNT.includes(name) ? amount : absent,
    operation_id: name === 'claw_back' ? OPERATION_ID : absent,
    dispute_id: name === 'dispute_won' ? OPERATION_ID : absent,
    fee: name === 'dispute_won' ? wholeNumber(AMOUNT_MAX) : absent,
    deposit: WITH_DEPOSIT.includes(name) ? text(CHAIN_TEXT) : absent,
    transaction_id: WITH_TRANSACTION.includes(name)
      ? text({ ...CHAIN_TEXT, optional: name !== 'confirm' })
      : absent,
    address: name === 'mark_sent_back' ? text(CHAIN_TEXT) : absent,
    bank_confirmed_not_executed: asksBank && name === 'mark_failed' ? flag : absent,
  });
}
