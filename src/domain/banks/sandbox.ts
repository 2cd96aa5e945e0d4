import type {
  BankResource,
  PaymentCallbackName,
  PayoutCallbackName,
  RefundCallbackName,
} from './callback';

type Name = PaymentCallbackName | RefundCallbackName | PayoutCallbackName;

/** Row that never changes. @see docs/connectors.md#statements-of-the-sandbox-bank */
export interface Movement {
  resource: BankResource;
  resource_id: string;
  name: Name;
  /** Unique at the bank. */
  bank_reference: string;
  /** Minor units; above 0: to the service. */
  amount: number;
  /** Minor units that the bank keeps of it. */
  fee?: number;
  /** ISO 4217. */
  currency: string;
}

/** Fact that the bank decides on; its amount has no sign. */
export type BankDecision = Movement;

interface Past {
  /** Sum of the resource's movements, in the currency. */
  net: number;
  /** Paid by customers. */
  received: number;
  /** Money moved under the decision's own reference. */
  isKnown: boolean;
}

type Rule = (amount: number, past: Past) => number[];

/** A customer may pay twice, under another reference. */
const receive: Rule = (amount, { isKnown }) => (isKnown ? [] : [amount]);
/** Sends back at most what came. */
const sendBack: Rule = (amount, { net }) => (net > 0 ? [-Math.min(amount, net)] : []);
/** Takes a dispute with its fee, of money that came. */
const withdraw: Rule = (amount, { received, isKnown }) =>
  received > 0 && !isKnown ? [-amount] : [];
/** Sends once, and again under another reference or after a return. */
const send: Rule = (amount, { net, isKnown }) => (isKnown && net < 0 ? [] : [-amount]);
/** Returns at most what was sent. */
const recover: Rule = (amount, { net, received }) =>
  net < received ? [Math.min(amount, received - net)] : [];
/** Money that comes back was sent, even without a report. */
const comeBack: Rule = (amount, past) => (past.isKnown ? recover(amount, past) : [-amount, amount]);

/** Other decisions move no money. */
const RULES: Record<BankResource, Partial<Record<Name, Rule>>> = {
  payment: {
    settled: receive,
    reversed: sendBack,
    reversal_failed: recover,
    clawed_back: sendBack,
    failed: sendBack,
    dispute_opened: withdraw,
    dispute_withdrawn: withdraw,
    dispute_won: recover,
    dispute_reinstated: recover,
  },
  refund: { settled: send, failed: recover },
  payout: { sent: send, completed: send, failed: recover, returned: comeBack },
};

/**
 * Amounts in minor units.
 * @param earlier movements of the same resource
 */
export function decideMovements(
  { resource, name, bank_reference, amount, currency }: BankDecision,
  earlier: readonly Pick<Movement, 'name' | 'bank_reference' | 'amount' | 'currency'>[],
): number[] {
  const rule = RULES[resource][name];
  if (rule === undefined) return [];
  const own = earlier.filter((each) => each.currency === currency);
  const paid = own.filter((each) => resource === 'payment' && each.name === 'settled');
  const isKnown = earlier.some((each) => each.bank_reference === bank_reference);
  const moved = rule(amount, { net: sum(own), received: sum(paid), isKnown });
  return moved.filter((each) => each !== 0);
}

function sum(movements: readonly Pick<Movement, 'amount'>[]): number {
  return movements.reduce((total, { amount }) => total + amount, 0);
}

const BANK_CODE = '99999999';
const CHECK_MODULUS = 97n;

/** Each currency has an account of its own. */
export function sandboxIban(currency: string): string {
  const account = toDigits(currency).padStart(10, '0');
  const rest = BigInt(`${BANK_CODE}${account}${toDigits('DE')}00`) % CHECK_MODULUS;
  return `DE${String(CHECK_MODULUS + 1n - rest).padStart(2, '0')}${BANK_CODE}${account}`;
}

/** ISO 13616: A is 10, Z is 35. */
function toDigits(letters: string): string {
  return [...letters].map((letter) => Number.parseInt(letter, 36)).join('');
}
