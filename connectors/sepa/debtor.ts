import { isIban, normalizeIban } from '../../src/domain/iban';
import { findSepaFaults, toLatin } from '../../src/domain/payout/sepa-text';

export interface Address {
  street: string | null;
  postal_code: string | null;
  town: string;
  /** ISO 3166-1, two letters. */
  country: string;
}

export interface Debtor {
  iban: string;
  bic: string | null;
  name: string;
  address: Address | null;
}

const CODE_AND_TOWN = /^(?<code>\S*\d\S*(?: [A-Z]{2}(?= ))?) +(?<town>\S.*)$/;

/**
 * Reads `Keizersgracht 1, 1015 CJ Amsterdam, NL`; the postal code may have its own commas.
 * @returns undefined without town and country
 */
export function parseAddress(text: string): Address | undefined {
  const parts = text
    .split(/[,\n]/)
    .map((part) => toLatin(part).trim())
    .filter((part) => part !== '');
  const country = parts.pop()?.toUpperCase() ?? '';
  const place = parts.pop() ?? '';
  const { code, town = place } = CODE_AND_TOWN.exec(place)?.groups ?? {};
  const separate = code === undefined && /\d/.test(parts.at(-1) ?? '') && parts.length > 1;
  const postal_code = code ?? (separate ? parts.pop() : undefined) ?? null;
  const street = parts.join(', ') || null;
  if (!/^[A-Z]{2}$/.test(country) || town === '') return undefined;
  const address = { street, postal_code, town, country };
  const details = { address_line1: street, postal_code, city: town, country };
  const faults = findSepaFaults({ first_name: '', last_name: '', ...details });
  return faults.length === 0 ? address : undefined;
}

/** @returns undefined for a name that a transfer cannot carry */
export function parseDebtorName(text: string): string | undefined {
  const name = toLatin(text).trim();
  const address = { address_line1: null, city: null, postal_code: null, country: null };
  const faults = findSepaFaults({ first_name: '', last_name: name, ...address });
  return name === '' || faults.length > 0 ? undefined : name;
}

export function parseDebtorIban(text: string): string | undefined {
  return isIban(text) ? normalizeIban(text) : undefined;
}
