import { decimalMoney } from '../../../src/domain/money/money';
import type { CamtEntry } from '../../support/camt';

export const VERSIONS = ['02', '08', '13'] as const;

/** How a bank writes what a booking names, and its charges. */
export interface Wording {
  version: (typeof VERSIONS)[number];
  /** Place of the name of each payout or payment. */
  name: 'EndToEndId' | 'Ustrd' | 'AddtlTxInf' | 'AddtlNtryInf' | 'nowhere';
  /** Form of the name in a text. */
  cut: 'as it is' | 'dashes' | 'spaces' | 'words';
  /** Level of the charges; `separate`: an entry of their own. */
  charges: 'none' | 'part' | 'entry' | 'separate';
  form: 'record' | 'total' | 'tax' | 'included' | 'foreign';
  /** Whether parts have the amount before charges, after them with the other next to it, or alone. */
  amount: 'gross' | 'net' | 'net alone';
  reference: 'entry' | 'part' | 'both' | 'none';
}

export interface Part {
  /** Resource ID, or creditor reference. */
  id: string;
  /** Minor units. */
  amount: number;
  /** Minor units, where charges are stated. */
  charge: number;
}

const money = (name: string, amount: number, currency = 'EUR') =>
  `<${name} Ccy="${currency}">${decimalMoney(amount, currency)}</${name}>`;

/** Writes entries of which the first is about all parts. @param sign below 0: debit */
export function writeBooking(
  parts: readonly Part[],
  wording: Wording,
  { sign, bank_reference, batch = '' }: { sign: 1 | -1; bank_reference: string; batch?: string },
): CamtEntry[] {
  const { charges, amount: stated, reference, name } = wording;
  const fees = parts.reduce((sum, { charge }) => sum + charge, 0);
  const gross = parts.reduce((sum, { amount }) => sum + amount, 0);
  const isWithin = charges === 'part' || charges === 'entry';
  const isInEntry = charges === 'entry' || (charges === 'separate' && wording.form !== 'included');
  const entry: CamtEntry = {
    amount: sign * gross - (isWithin ? fees : 0),
    code: sign < 0 ? 'PMNT.ICDT.ESCT' : 'PMNT.RCDT.ESCT',
    ...(reference === 'entry' || reference === 'both' ? { bank_reference } : {}),
    ...(isInEntry ? { more: writeCharges(fees, wording) } : {}),
    ...(name === 'AddtlNtryInf' ? { info: writeText(parts[0]?.id ?? '', wording.cut) } : {}),
  };
  const details = parts.map((part, index) => {
    const own = charges === 'part' ? part.charge : 0;
    const net = part.amount - sign * own;
    const ref = `${bank_reference}-${index + 1}`;
    const refs =
      (reference === 'part' || reference === 'both' ? `<AcctSvcrRef>${ref}</AcctSvcrRef>` : '') +
      `<EndToEndId>${name === 'EndToEndId' ? part.id.replaceAll('-', '') : 'NOTPROVIDED'}</EndToEndId>`;
    const text = writeText(part.id, wording.cut);
    return [
      `<TxDtls><Refs>${refs}</Refs>`,
      writeAmounts(part.amount, net, stated, wording.version),
      charges === 'part' ? writeCharges(own, wording) : '',
      '<RltdPties/>',
      name === 'Ustrd' ? `<RmtInf>${writeLines(text)}</RmtInf>` : '',
      name === 'AddtlTxInf' ? `<AddtlTxInf>${text}</AddtlTxInf>` : '',
      '</TxDtls>',
    ].join('');
  });
  const fee = { amount: -fees, code: 'PMNT.MDOP.CHRG', reference: 'NOTPROVIDED' };
  return [
    { ...entry, details: batch + details.join('') },
    ...(charges === 'separate' ? [fee] : []),
  ];
}

function writeAmounts(
  gross: number,
  net: number,
  stated: Wording['amount'],
  version: Wording['version'],
): string {
  const other = (name: string, amount: number) => `<${name}>${money('Amt', amount)}</${name}>`;
  const first = stated === 'gross' ? gross : net;
  const before = stated === 'net' ? other('InstdAmt', gross) : '';
  if (version === '02') return `<AmtDtls>${before}${other('TxAmt', first)}</AmtDtls>`;
  return money('Amt', first) + (before && `<AmtDtls>${before}</AmtDtls>`);
}

export function writeCharges(
  amount: number,
  { form, version }: Pick<Wording, 'form' | 'version'>,
): string {
  const isOld = version === '02';
  const tax = form === 'tax' ? Math.floor(amount / 5) : 0;
  const parts = [
    money('Amt', amount - tax, form === 'foreign' ? 'USD' : 'EUR'),
    '<CdtDbtInd>DBIT</CdtDbtInd>',
    form === 'included' && !isOld ? '<ChrgInclInd>true</ChrgInclInd>' : '',
    form === 'tax' ? `<Tax>${money('Amt', tax)}</Tax>` : '',
  ];
  const total = form === 'total' ? money('TtlChrgsAndTaxAmt', amount) : '';
  if (isOld) return `<Chrgs>${total}${parts.join('')}</Chrgs>`;
  return `<Chrgs>${total || `<Rcrd>${parts.join('')}</Rcrd>`}</Chrgs>`;
}

const PRIVATE = 'Thanks Ada Lovelace, FR76 3000 6000 0112 3456 7890 189';

function writeText(id: string, cut: Wording['cut']): string {
  const plain = id.replaceAll('-', '');
  const texts = {
    'as it is': plain,
    dashes: id,
    spaces: plain.replace(/.{4}/g, '$& ').trim(),
    words: `${PRIVATE} ref ${plain} of 20.11.2026`,
  };
  return texts[cut];
}

/** Cuts lines at 35 characters. */
const writeLines = (text: string) =>
  (text.match(/.{1,35}/g) ?? []).map((line) => `<Ustrd>${line}</Ustrd>`).join('');
