import type { RawJson } from '../../base/json';
import type { ErrorDetail, RuleViolation } from '../errors';
import { type AvailableBalance, balanceFault, type Debit } from '../money/insufficient-balance';
import { isBalanceAccountName, MAIN_BALANCE } from '../money/money';
import { methodRules } from '../payment/catalog';
import { isRailId, RAIL_IDS, type RailId, type RailRules, railRules } from './rails';
import { CARD_SCHEMES, type RecipientFacts } from './recipient';
import { describeSepaFault, findReferenceFaults } from './sepa-text';

export interface RailRequest {
  method: string;
  currency: string;
  recipient: RecipientFacts;
  /** Text of the recipient's statement. */
  reference: string | null;
}

const NOT_MET = 'The payout does not meet the requirements of the rail.';

/**
 * @param available rails of this account and environment
 * @see docs/api.md#recipients, docs/api.md#rails, docs/decisions.md#payouts
 */
export function railFault(
  { method, currency, recipient, reference }: RailRequest,
  available: ReadonlySet<string>,
  at: Date,
): RuleViolation | undefined {
  if (!isRailId(method)) {
    return notMet([detail('method_not_found', 'method', 'There is no such rail.')]);
  }
  const rules = railRules(method);
  const { display_name: name, recipient_type: requiredType } = rules;
  const disabled = available.has(method)
    ? []
    : [detail('method_not_enabled', 'method', `${name} is not enabled on this account.`)];
  const isOther = recipient.type !== requiredType;
  if (isOther && disabled.length === 0) {
    const message = `${name} pays out to a ${requiredType}; the recipient is a ${recipient.type}.`;
    return { code: 'recipient_type_mismatch', message };
  }
  const only = `${name} pays out only in ${rules.currencies.join(', ')}.`;
  const wrongCurrency = rules.currencies.includes(currency)
    ? []
    : [detail('currency_not_supported', 'currency', only)];
  // @see docs/sepa.md#text
  const texts = rules.latin
    ? [...(recipient.sepa_faults ?? []), ...findReferenceFaults(reference)]
    : [];
  const details = [
    ...disabled,
    ...wrongCurrency,
    ...(isOther
      ? []
      : [
          ...missingFields(rules, recipient),
          ...cardFaults(recipient, at),
          ...sepaFaults(rules, recipient),
          ...texts.map((fault) =>
            detail(fault.code, fault.field, `For ${name}, it ${describeSepaFault(fault)}.`),
          ),
        ]),
  ];
  return details.length === 0 ? undefined : notMet(details);
}

export type RailFacts = Pick<RecipientFacts, 'type' | 'has' | 'iban_in_sepa'>;

/** Ignores currency and account. */
export function findRails(recipient: RailFacts): RailId[] {
  return RAIL_IDS.filter((id) => {
    const rules = railRules(id);
    const faults = [...missingFields(rules, recipient), ...sepaFaults(rules, recipient)];
    return rules.recipient_type === recipient.type && faults.length === 0;
  });
}

/** @see docs/api.md#delete-a-recipient */
export const RECIPIENT_DELETED = {
  code: 'recipient_deleted',
  message: 'The recipient was deleted. Create another one.',
} as const satisfies RuleViolation;

function notMet(details: ErrorDetail[]): RuleViolation {
  return { code: 'rail_requirements_not_met', message: NOT_MET, details };
}

function detail(code: string, field: string, message: string): ErrorDetail {
  return { code, field, message };
}

function missingFields(rules: RailRules, { has }: RailFacts): ErrorDetail[] {
  const fields = rules.required_fields.filter((field) => !has.includes(field));
  return fields.map((field) =>
    detail('field_required', field, `${rules.display_name} requires this field of the recipient.`),
  );
}

/** A card is valid to the end of its last month, in UTC. */
function cardFaults({ type, scheme, card_expires }: RecipientFacts, at: Date): ErrorDetail[] {
  if (type !== 'card') return [];
  const isPast = card_expires !== null && card_expires < at.toISOString().slice(0, 7);
  const networks = CARD_SCHEMES.map((id) => methodRules(id).display_name).join(', ');
  return [
    ...(isPast ? [detail('card_expired', 'expiry_year', 'The card has expired.')] : []),
    ...(scheme === null
      ? [detail('scheme_not_supported', 'scheme', `Payouts go only to ${networks} cards.`)]
      : []),
  ];
}

function sepaFaults({ sepa, display_name }: RailRules, facts: RailFacts): ErrorDetail[] {
  if (!sepa || facts.iban_in_sepa !== false) return [];
  const message = `${display_name} reaches only accounts in the SEPA area.`;
  return [detail('iban_not_in_sepa', 'iban', message)];
}

/** Reads `metadata.balance_account`. @see docs/api.md#which-money-a-payout-draws */
export function readBalanceAccount(
  metadata: RawJson | null | undefined,
): { name: string } | { fault: RuleViolation } {
  const object: object = Object(metadata?.value() ?? {});
  const rawName: unknown = Object.getOwnPropertyDescriptor(object, 'balance_account')?.value;
  if (rawName == null) return { name: MAIN_BALANCE };
  if (typeof rawName !== 'string') {
    const field = 'metadata.balance_account';
    const message = 'must be a string';
    const details = [detail('invalid', field, message)];
    return { fault: { code: 'invalid_request', message: `${field}: ${message}`, details } };
  }
  return isBalanceAccountName(rawName) ? { name: rawName } : { fault: neverFunded() };
}

function neverFunded(): RuleViolation {
  const message = 'The balance account was never funded in this environment.';
  return { code: 'balance_account_not_found', message };
}

/** Refuses an account that was never credited; `main` always exists. */
export function unfundedFault(
  rows: readonly AvailableBalance[],
  balance_account: string,
): RuleViolation | undefined {
  const exists = rows.some((row) => row.balance_account === balance_account);
  return exists || balance_account === MAIN_BALANCE ? undefined : neverFunded();
}

export function payoutBalanceFault(
  rows: readonly AvailableBalance[],
  payout: Debit & { amount: number; fee: number },
): RuleViolation | undefined {
  const debit = { ...payout, amount: payout.amount + payout.fee };
  return unfundedFault(rows, payout.balance_account) ?? balanceFault(rows, debit);
}
