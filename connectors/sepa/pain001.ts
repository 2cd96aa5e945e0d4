import { isIban, normalizeIban } from '../../src/domain/banks/iban';
import { decimalMoney } from '../../src/domain/money/money';
import type { RecipientDetails } from '../../src/domain/payout/recipient';
import {
  findReferenceFaults,
  findSepaFaults,
  joinName,
  toLatin,
} from '../../src/domain/payout/sepa-text';
import { shortenId } from '../../src/service/banks/sepa/book';

/** Transfer whose texts are Latin already. */
export interface Transfer {
  payout_id: string;
  /** Minor units of EUR. */
  amount: number;
  name: string;
  iban: string;
  bic: string | null;
  address: Address | null;
  text: string | null;
}

export interface PaymentFile {
  /** `MsgId` and `PmtInfId`. */
  id: string;
  created_at: Date;
  instant: boolean;
  /** Requested execution, `YYYY-MM-DD`. */
  execution_day: string;
  debtor: Debtor;
  transfers: readonly Transfer[];
}

export const PAIN_001 = 'pain.001.001.09';
const NAMESPACE = `urn:iso:std:iso:20022:tech:xsd:${PAIN_001}`;

/** @see docs/sepa.md#files-to-the-bank */
export function writePain001({
  id,
  created_at,
  instant,
  execution_day,
  debtor,
  transfers,
}: PaymentFile): string {
  const sum = transfers.reduce((all, { amount }) => all + amount, 0);
  const totals = [
    leaf('NbOfTxs', String(transfers.length)),
    leaf('CtrlSum', decimalMoney(sum, 'EUR')),
  ];
  const group = element('GrpHdr', [
    leaf('MsgId', id),
    leaf('CreDtTm', `${created_at.toISOString().slice(0, 19)}Z`),
    ...totals,
    element('InitgPty', [leaf('Nm', debtor.name)]),
  ]);
  const batch = element('PmtInf', [
    leaf('PmtInfId', id),
    leaf('PmtMtd', 'TRF'),
    leaf('BtchBookg', 'false'),
    ...totals,
    element('PmtTpInf', [
      element('SvcLvl', [leaf('Cd', 'SEPA')]),
      ...(instant ? [element('LclInstrm', [leaf('Cd', 'INST')])] : []),
    ]),
    element('ReqdExctnDt', [leaf('Dt', execution_day)]),
    element('Dbtr', [leaf('Nm', debtor.name), ...writeAddress(debtor.address)]),
    writeAccount('DbtrAcct', debtor.iban),
    element('DbtrAgt', [writeBank(debtor.bic)]),
    leaf('ChrgBr', 'SLEV'),
    ...transfers.map(({ payout_id, amount, name, iban, bic, address, text }) =>
      element('CdtTrfTxInf', [
        element('PmtId', [
          leaf('InstrId', shortenId(payout_id)),
          leaf('EndToEndId', shortenId(payout_id)),
        ]),
        element('Amt', [`<InstdAmt Ccy="EUR">${decimalMoney(amount, 'EUR')}</InstdAmt>`]),
        ...(bic === null ? [] : [element('CdtrAgt', [writeBank(bic)])]),
        element('Cdtr', [leaf('Nm', name), ...writeAddress(address)]),
        writeAccount('CdtrAcct', iban),
        ...(text === null ? [] : [element('RmtInf', [leaf('Ustrd', text)])]),
      ]),
    ),
  ]);
  const initiation = element('CstmrCdtTrfInitn', [group, batch]);
  return `<?xml version="1.0" encoding="UTF-8"?>\n<Document xmlns="${NAMESPACE}">${initiation}</Document>\n`;
}

function writeAccount(name: string, iban: string): string {
  return element(name, [element('Id', [leaf('IBAN', iban)])]);
}

function writeBank(bic: string | null): string {
  const id = bic === null ? element('Othr', [leaf('Id', 'NOTPROVIDED')]) : leaf('BICFI', bic);
  return element('FinInstnId', [id]);
}

/** Banks refuse the unstructured form since November 2026. */
function writeAddress(address: Address | null): string[] {
  if (address === null) return [];
  const { street, postal_code, town, country } = address;
  const parts = [
    ['StrtNm', street],
    ['PstCd', postal_code],
    ['TwnNm', town],
    ['Ctry', country],
  ] as const;
  return [
    element(
      'PstlAdr',
      parts.flatMap(([name, text]) => (text === null ? [] : [leaf(name, text)])),
    ),
  ];
}

function element(name: string, children: readonly string[]): string {
  return `<${name}>${children.join('')}</${name}>`;
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

function leaf(name: string, text: string): string {
  return `<${name}>${text.replace(/[&<>]/g, (character) => ESCAPES[character] ?? '')}</${name}>`;
}

/** Scheme's limit, in cents. */
const AMOUNT_MAX = 99_999_999_999;
export const BIC = /^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}(?:[A-Z0-9]{3})?$/;

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

interface Address {
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
