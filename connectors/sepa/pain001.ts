import { decimalMoney } from '../../src/domain/money';
import { shortenId } from '../../src/service/banks/sepa/book';
import type { Address, Debtor } from './debtor';

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
  execution_day,
  debtor,
  transfers,
}: PaymentFile): string {
  const totals = [
    leaf('NbOfTxs', String(transfers.length)),
    leaf(
      'CtrlSum',
      decimalMoney(
        transfers.reduce((sum, { amount }) => sum + amount, 0),
        'EUR',
      ),
    ),
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
    element('PmtTpInf', [element('SvcLvl', [leaf('Cd', 'SEPA')])]),
    element('ReqdExctnDt', [leaf('Dt', execution_day)]),
    element('Dbtr', [leaf('Nm', debtor.name), ...writeAddress(debtor.address)]),
    writeAccount('DbtrAcct', debtor.iban),
    element('DbtrAgt', [writeBank(debtor.bic)]),
    leaf('ChrgBr', 'SLEV'),
    ...transfers.map(writeTransfer),
  ]);
  const initiation = element('CstmrCdtTrfInitn', [group, batch]);
  return `<?xml version="1.0" encoding="UTF-8"?>\n<Document xmlns="${NAMESPACE}">${initiation}</Document>\n`;
}

function writeTransfer({ payout_id, amount, name, iban, bic, address, text }: Transfer): string {
  const id = shortenId(payout_id);
  return element('CdtTrfTxInf', [
    element('PmtId', [leaf('InstrId', id), leaf('EndToEndId', id)]),
    element('Amt', [`<InstdAmt Ccy="EUR">${decimalMoney(amount, 'EUR')}</InstdAmt>`]),
    ...(bic === null ? [] : [element('CdtrAgt', [writeBank(bic)])]),
    element('Cdtr', [leaf('Nm', name), ...writeAddress(address)]),
    writeAccount('CdtrAcct', iban),
    ...(text === null ? [] : [element('RmtInf', [leaf('Ustrd', text)])]),
  ]);
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
