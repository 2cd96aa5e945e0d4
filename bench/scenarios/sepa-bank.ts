import { decimalMoney } from '../../src/domain/money';
import { shortenId } from '../../src/service/sepa/book';

/** Day of a bank that books payouts. */
export interface BankDay {
  /** Day of October 2026. */
  day: number;
  iban: string;
  ids: readonly string[];
  /** Minor units of each. */
  amount: number;
  /** Balance before, in minor units. */
  opening: number;
}

const ELEMENTS = {
  'camt.054': ['BkToCstmrDbtCdtNtfctn', 'Ntfctn'],
  'camt.053': ['BkToCstmrStmt', 'Stmt'],
} as const;

/** Writes what a bank says about a day: the notification, or the statement with its balances. */
export function writeCamt(message: keyof typeof ELEMENTS, bankDay: BankDay): string {
  const [container, name] = ELEMENTS[message];
  const { day, iban, ids, amount, opening } = bankDay;
  const date = `2026-10-${String(day).padStart(2, '0')}`;
  const id = `${message}-${day}`;
  const balance = (code: string, value: number) =>
    `<Bal><Tp><CdOrPrtry><Cd>${code}</Cd></CdOrPrtry></Tp>${writeMoney(value)}` +
    `<Dt><Dt>${date}</Dt></Dt></Bal>`;
  const closing = opening - ids.length * amount;
  const balances = balance('OPBD', opening) + balance('CLBD', closing);
  const dates = `<BookgDt><Dt>${date}</Dt></BookgDt><ValDt><Dt>${date}</Dt></ValDt>`;
  const money = writeMoney(-amount);
  const entries = ids.map(
    (payout, index) =>
      `<Ntry>${money}<Sts><Cd>BOOK</Cd></Sts>${dates}<AcctSvcrRef>B-${day}-${index}</AcctSvcrRef>` +
      '<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>ICDT</Cd><SubFmlyCd>ESCT</SubFmlyCd></Fmly></Domn>' +
      `</BkTxCd><NtryDtls><TxDtls><Refs><EndToEndId>${shortenId(payout)}</EndToEndId></Refs>` +
      `${money}</TxDtls></NtryDtls></Ntry>\n`,
  );
  return (
    `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:${message}.001.08"><${container}>` +
    `<GrpHdr><MsgId>${id}</MsgId><CreDtTm>${date}T10:00:00Z</CreDtTm></GrpHdr><${name}>` +
    `<Id>${id}</Id><CreDtTm>${date}T10:00:00Z</CreDtTm><Acct><Id><IBAN>${iban}</IBAN></Id>` +
    `<Ccy>EUR</Ccy></Acct>${message === 'camt.053' ? balances : ''}${entries.join('')}` +
    `</${name}></${container}></Document>`
  );
}

function writeMoney(amount: number): string {
  const side = amount < 0 ? 'DBIT' : 'CRDT';
  return `<Amt Ccy="EUR">${decimalMoney(Math.abs(amount), 'EUR')}</Amt><CdtDbtInd>${side}</CdtDbtInd>`;
}
