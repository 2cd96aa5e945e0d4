import type {
  BankResource,
  PaymentCallbackName,
  PayoutCallbackName,
  RefundCallbackName,
} from '../callback/callback';

type Name = PaymentCallbackName | RefundCallbackName | PayoutCallbackName;

/**
 * Movement of money on the service's account at the sandbox bank: a row that never changes.
 * @see docs/connectors.md#statements-of-the-sandbox-bank
 */
export interface Movement {
  resource: BankResource;
  resource_id: string;
  /** Decision that moved the money. */
  name: Name;
  /** The bank's own reference of the movement, unique. */
  bank_reference: string;
  /** Minor units; above 0: to the service, below 0: from it. */
  amount: number;
  /** ISO 4217. */
  currency: string;
}

export interface BankDecision {
  resource: BankResource;
  resource_id: string;
  name: Name;
  bank_reference: string;
  /** Minor units. */
  amount: number;
  currency: string;
}

interface Past {
  /** Sum of what moved for the resource, in the currency. */
  net: number;
  /** Part of it that customers paid. */
  received: number;
  /** Whether money moved under the decision's own reference. */
  isKnown: boolean;
}

type Rule = (amount: number, past: Past) => number[];

/** A customer may pay twice, under another reference. */
const receive: Rule = (amount, { isKnown }) => (isKnown ? [] : [amount]);
/** Sends back what came, and no more. */
const sendBack: Rule = (amount, { net }) => (net > 0 ? [-Math.min(amount, net)] : []);
/** Takes what a dispute says, its fee included, of money that came. */
const withdraw: Rule = (amount, { received, isKnown }) =>
  received > 0 && !isKnown ? [-amount] : [];
/** Sends once, and again under another reference, or after it came back. */
const send: Rule = (amount, { net, isKnown }) => (isKnown && net < 0 ? [] : [-amount]);
/** Returns what was sent, and no more. */
const recover: Rule = (amount, { net, received }) =>
  net < received ? [Math.min(amount, received - net)] : [];
/** Money that comes back was sent, even if the bank did not say so. */
const comeBack: Rule = (amount, past) => (past.isKnown ? recover(amount, past) : [-amount, amount]);

/** Decisions that move money; no other one does. */
const RULES: Record<BankResource, Partial<Record<Name, Rule>>> = {
  payment: {
    settled: receive,
    reversed: sendBack,
    reversal_failed: recover,
    clawed_back: sendBack,
    failed: sendBack,
    dispute_opened: withdraw,
    dispute_won: recover,
  },
  refund: { settled: send, failed: recover },
  payout: { sent: send, completed: send, failed: recover, returned: comeBack },
};

/**
 * Decides what a decision of the bank moves, in minor units.
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
  return rule(amount, { net: sum(own), received: sum(paid), isKnown });
}

function sum(movements: readonly Pick<Movement, 'amount'>[]): number {
  return movements.reduce((total, { amount }) => total + amount, 0);
}

const BANK_CODE = '99999999';
const CHECK_MODULUS = 97n;

/** Derives the IBAN of the service's account at the sandbox bank; each currency has its own. */
export function sandboxIban(currency: string): string {
  const account = toDigits(currency).padStart(10, '0');
  const rest = BigInt(`${BANK_CODE}${account}${toDigits('DE')}00`) % CHECK_MODULUS;
  return `DE${String(CHECK_MODULUS + 1n - rest).padStart(2, '0')}${BANK_CODE}${account}`;
}

/** Replaces letters as ISO 13616 does: A is 10, Z is 35. */
function toDigits(letters: string): string {
  return [...letters].map((letter) => Number.parseInt(letter, 36)).join('');
}
