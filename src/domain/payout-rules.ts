import type { RawJson } from '../json';
import { isBalanceAccountName, MAIN_BALANCE } from './balance-account';
import type { ErrorDetail } from './errors';
import type { RuleViolation } from './lifecycle';
import { formatMoney } from './money';
import { isRailId, type RailRules, railRules } from './rails';
import type { CardScheme, RecipientFacts } from './recipient';

/** Fields of a request that the rail has rules about. */
export interface RailRequest {
  /** Rail as the merchant wrote it. */
  method: string;
  currency: string;
  recipient: RecipientFacts;
}

const NOT_MET = 'The payout does not meet the requirements of the rail.';

/**
 * Finds why the rail can't take the payout; undefined when it can. `rail_requirements_not_met`
 * names every field at fault.
 * @param available ids of the rails this account can use in this environment
 * @param at time when the payout was asked for
 * @see docs/api.md#recipients, docs/api.md#rails, docs/decisions.md#payouts
 */
export function railFault(
  { method, currency, recipient }: RailRequest,
  available: ReadonlySet<string>,
  at: Date,
): RuleViolation | undefined {
  if (!isRailId(method)) {
    return notMet([detail('method_not_found', 'method', 'There is no such rail.')]);
  }
  const rules = railRules(method);
  const { display_name: name, recipient_type: wanted } = rules;
  const disabled = available.has(method)
    ? []
    : [detail('method_not_enabled', 'method', `${name} is not enabled on this account.`)];
  const isOther = recipient.type !== wanted;
  if (isOther && disabled.length === 0) {
    const message = `${name} pays out to a ${wanted}; the recipient is a ${recipient.type}.`;
    return { code: 'recipient_type_mismatch', message };
  }
  const details = [
    ...disabled,
    ...currencyFaults(rules, currency),
    ...(isOther ? [] : recipientFaults(rules, recipient, at)),
  ];
  return details.length === 0 ? undefined : notMet(details);
}

/** Refusal of a recipient whose details are gone. @see docs/api.md#delete-a-recipient */
export const DELETED = {
  code: 'recipient_deleted',
  message: 'The recipient was deleted. Make another one.',
} as const satisfies RuleViolation;

function notMet(details: ErrorDetail[]): RuleViolation {
  return { code: 'rail_requirements_not_met', message: NOT_MET, details };
}

function detail(code: string, field: string, message: string): ErrorDetail {
  return { code, field, message };
}

function currencyFaults({ currencies, display_name }: RailRules, currency: string): ErrorDetail[] {
  if (currencies.includes(currency)) return [];
  const message = `${display_name} pays out only in ${currencies.join(', ')}.`;
  return [detail('currency_not_supported', 'currency', message)];
}

function recipientFaults(rules: RailRules, facts: RecipientFacts, at: Date): ErrorDetail[] {
  return [...missingFields(rules, facts), ...cardFaults(facts, at), ...sepaFaults(rules, facts)];
}

function missingFields(rules: RailRules, { has }: RecipientFacts): ErrorDetail[] {
  const missing = rules.required_fields.filter((field) => !has.includes(field));
  return missing.map((field) =>
    detail('field_required', field, `${rules.display_name} requires it of the recipient.`),
  );
}

const SCHEME_NAMES: Record<CardScheme, string> = {
  visa: 'Visa',
  mastercard: 'Mastercard',
  amex: 'American Express',
};

/** A card is valid to the end of its last month, counted in UTC as every time of the API. */
function cardFaults({ type, scheme, card_expires }: RecipientFacts, at: Date): ErrorDetail[] {
  if (type !== 'card') return [];
  const isPast = card_expires !== null && card_expires < at.toISOString().slice(0, 7);
  const networks = Object.values(SCHEME_NAMES).join(', ');
  return [
    ...(isPast ? [detail('card_expired', 'expiry_year', 'The card has expired.')] : []),
    ...(scheme === null
      ? [detail('scheme_not_supported', 'scheme', `Payouts go only to ${networks} cards.`)]
      : []),
  ];
}

function sepaFaults({ sepa, display_name }: RailRules, facts: RecipientFacts): ErrorDetail[] {
  if (!sepa || facts.iban_in_sepa !== false) return [];
  const message = `${display_name} reaches only accounts in the SEPA area.`;
  return [detail('iban_not_in_sepa', 'iban', message)];
}

/**
 * Balance account that `metadata.balance_account` names; `main` where it names none.
 * @see docs/api.md#which-money-a-payout-draws
 */
export function balanceAccountOf(
  metadata: RawJson | null | undefined,
): { name: string } | { fault: RuleViolation } {
  const object: object = Object(metadata?.value() ?? {});
  const named: unknown = Object.getOwnPropertyDescriptor(object, 'balance_account')?.value;
  if (named == null) return { name: MAIN_BALANCE };
  if (typeof named !== 'string') {
    const field = 'metadata.balance_account';
    const message = 'must be a string';
    const details = [detail('invalid', field, message)];
    return { fault: { code: 'invalid_request', message: `${field}: ${message}`, details } };
  }
  return isBalanceAccountName(named) ? { name: named } : { fault: neverFunded() };
}

function neverFunded(): RuleViolation {
  const message = 'The balance account was never funded in this environment.';
  return { code: 'balance_account_not_found', message };
}

/** Facts about a balance account that decide on a payout. Minor units. */
export interface Available {
  balance_account: string;
  currency: string;
  available: number | bigint;
}

/**
 * Finds that a balance account was never credited; undefined when it was. `main` always exists,
 * another account once it was credited in any currency.
 * @param rows all balances of the account in this environment
 */
export function unfundedFault(
  rows: readonly Available[],
  balance_account: string,
): RuleViolation | undefined {
  const exists = rows.some((row) => row.balance_account === balance_account);
  return exists || balance_account === MAIN_BALANCE ? undefined : neverFunded();
}

/**
 * Why the balance can't bear amount and fee; undefined when it can. Asked before a payout is
 * accepted, and again when its reservation fails.
 * @param rows all balances of the account in this environment
 * @param draw minor units, with the fee
 */
export function balanceFault(
  rows: readonly Available[],
  draw: { balance_account: string; currency: string; amount: number; fee: number },
): RuleViolation | undefined {
  const { balance_account, currency, amount, fee } = draw;
  const unfunded = unfundedFault(rows, balance_account);
  if (unfunded !== undefined) return unfunded;
  const own = rows.find(
    (row) => row.balance_account === balance_account && row.currency === currency,
  );
  const available = own?.available ?? 0;
  if (available >= amount + fee) return undefined;
  const [held, drawn] = [available, amount + fee].map((minor) => formatMoney(minor, currency));
  const message = `The balance holds ${held}; the payout and its fee draw ${drawn}.`;
  return { code: 'insufficient_balance', message };
}

/**
 * Why a payout passes the limit of its day; undefined when it doesn't, or there is none.
 * @param spent minor units that count already
 */
export function limitFault(
  limit: number | undefined,
  spent: number,
  { amount, currency }: { amount: number; currency: string },
): RuleViolation | undefined {
  if (limit === undefined || spent + amount <= limit) return undefined;
  const left = formatMoney(Math.max(0, limit - spent), currency);
  const message = `The account may pay out ${left} more today, by the day of UTC.`;
  return { code: 'payout_limit_exceeded', message };
}
