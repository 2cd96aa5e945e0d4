import { decimalMoney } from '../../src/domain/money/money';

export interface CamtEntry {
  /** Minor units; below 0 goes out. */
  amount: number;
  reference?: string;
  bank_reference?: string;
  day?: string;
  value_date?: string;
  /** Domain, family and sub-family; a received credit transfer by default. */
  code?: string;
  status?: string;
  reversal?: boolean;
  /** Elements after `AcctSvcrRef` and `BkTxCd`, such as `Chrgs`. */
  more?: string;
  /** Instead of the one `TxDtls` of the reference. */
  details?: string;
  /** `AddtlNtryInf`. */
  info?: string;
}

export interface CamtStatement {
  id?: string;
  /** `ElctrncSeqNb`. */
  sequence?: number;
  iban?: string;
  currency?: string;
  day?: string;
  from?: string;
  opening?: number;
  closing?: number;
  entries?: readonly CamtEntry[];
}

export const TEST_IBAN = 'DE89370400440532013000';
export const TEST_DAY = '2026-11-20';

const sign = (amount: number) => (amount < 0 ? 'DBIT' : 'CRDT');

const money = (amount: number, currency: string) =>
  `<Amt Ccy="${currency}">${decimalMoney(Math.abs(amount), currency)}</Amt>`;

export const txDtls = (currency: string, amount: number, reference: string) =>
  `<TxDtls><Refs><EndToEndId>${reference}</EndToEndId></Refs>${money(amount, currency)}` +
  `<CdtDbtInd>${sign(amount)}</CdtDbtInd></TxDtls>`;

function entryText(entry: CamtEntry, currency: string, day: string, isOld: boolean): string {
  const { amount, reference = 'NOTPROVIDED', bank_reference, more = '' } = entry;
  const [domain, family, sub] = (entry.code ?? 'PMNT.RCDT.ESCT').split('.');
  const status = entry.status ?? 'BOOK';
  const booked = entry.day ?? day;
  const details =
    entry.details ?? `<TxDtls><Refs><EndToEndId>${reference}</EndToEndId></Refs></TxDtls>`;
  return [
    `<Ntry>${money(amount, currency)}<CdtDbtInd>${sign(amount)}</CdtDbtInd>`,
    entry.reversal ? '<RvslInd>true</RvslInd>' : '',
    isOld ? `<Sts>${status}</Sts>` : `<Sts><Cd>${status}</Cd></Sts>`,
    `<BookgDt><Dt>${booked}</Dt></BookgDt><ValDt><Dt>${entry.value_date ?? booked}</Dt></ValDt>`,
    bank_reference === undefined ? '' : `<AcctSvcrRef>${bank_reference}</AcctSvcrRef>`,
    `<BkTxCd><Domn><Cd>${domain}</Cd><Fmly><Cd>${family}</Cd>`,
    `<SubFmlyCd>${sub}</SubFmlyCd></Fmly></Domn></BkTxCd>${more}`,
    `<NtryDtls>${details}</NtryDtls>`,
    entry.info === undefined ? '' : `<AddtlNtryInf>${entry.info}</AddtlNtryInf>`,
    '</Ntry>',
  ].join('');
}

function balance(code: string, amount: number, currency: string, day: string): string {
  const type = `<Tp><CdOrPrtry><Cd>${code}</Cd></CdOrPrtry></Tp>`;
  const direction = `<CdtDbtInd>${sign(amount)}</CdtDbtInd>`;
  return `<Bal>${type}${money(amount, currency)}${direction}<Dt><Dt>${day}</Dt></Dt></Bal>`;
}

/** Writes a `camt.053`, or a `camt.054` of the same entries. */
export function camt(
  statements: readonly CamtStatement[],
  { message = 'camt.053.001.08' }: { message?: string } = {},
): Buffer {
  const isNotification = message.startsWith('camt.054');
  const isOld = message.endsWith('.02');
  const [group, name] = isNotification
    ? ['BkToCstmrDbtCdtNtfctn', 'Ntfctn']
    : ['BkToCstmrStmt', 'Stmt'];
  const texts = statements.map((statement) => {
    const { id = 'S-1', iban = TEST_IBAN, currency = 'EUR', day = TEST_DAY } = statement;
    const { opening = 0, from = day, entries = [] } = statement;
    const sum = entries.reduce((total, { amount, status }) => {
      return status === undefined ? total + amount : total;
    }, 0);
    const balances = isNotification
      ? ''
      : balance('OPBD', opening, currency, from) +
        balance('CLBD', statement.closing ?? opening + sum, currency, day);
    return [
      `<${name}><Id>${id}</Id>`,
      statement.sequence === undefined ? '' : `<ElctrncSeqNb>${statement.sequence}</ElctrncSeqNb>`,
      `<CreDtTm>${day}T23:59:00Z</CreDtTm>`,
      `<Acct><Id><IBAN>${iban}</IBAN></Id><Ccy>${currency}</Ccy></Acct>${balances}`,
      ...entries.map((entry) => `${entryText(entry, currency, day, isOld)}\n`),
      `</${name}>`,
    ].join('');
  });
  return Buffer.from(
    `<?xml version="1.0" encoding="UTF-8"?>\n` +
      `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:${message}"><${group}>` +
      `<GrpHdr><MsgId>M-1</MsgId><CreDtTm>${TEST_DAY}T23:59:00Z</CreDtTm></GrpHdr>\n` +
      `${texts.join('\n')}</${group}></Document>`,
  );
}
