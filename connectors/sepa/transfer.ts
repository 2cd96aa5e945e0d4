import type { RecipientDetails } from '../../src/domain/payout/recipient';
import {
  findReferenceFaults,
  findSepaFaults,
  joinName,
  toLatin,
} from '../../src/domain/payout/sepa-text';
import type { Transfer } from './pain001';

/** Scheme's limit, in cents. */
const AMOUNT_MAX = 99_999_999_999;
const BIC = /^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}(?:[A-Z0-9]{3})?$/;

export interface Payee {
  details: RecipientDetails;
  reference: string | null;
}

export function findTransferFaults({ details, reference }: Payee, amount: number): string[] {
  const texts = [...findSepaFaults(details), ...findReferenceFaults(reference)];
  return [
    ...texts.map(({ field }) => field),
    ...(details.iban === null ? ['iban'] : []),
    ...(details.bic === null || BIC.test(details.bic) ? [] : ['bic']),
    ...(amount > AMOUNT_MAX ? ['amount'] : []),
  ];
}

/** Names fields, and nothing of their content. */
export function buildTextRefusal(fields: readonly string[]) {
  const names = [...new Set(fields)].join(', ');
  return {
    code: 'rail_requirements_not_met',
    message: `A SEPA transfer cannot carry ${names} of this payout.`,
  };
}

export function buildTransfer(
  { _id, amount }: { _id: string; amount: number },
  { details, reference }: Payee,
): Transfer {
  const { iban, bic, country, address_line1, postal_code, city } = details;
  const clean = (text: string | null) => toLatin(text ?? '').trim() || null;
  const town = clean(city);
  const street = clean(address_line1);
  const hasAddress = country !== null && town !== null;
  return {
    ...{ payout_id: _id, amount, name: joinName(details), iban: iban ?? '', bic },
    address: hasAddress ? { street, postal_code: clean(postal_code), town, country } : null,
    text: clean(reference),
  };
}
