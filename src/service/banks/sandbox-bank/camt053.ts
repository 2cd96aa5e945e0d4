import { decimalMoney } from '../../../domain/money';
import type { Movement } from '../../../domain/sandbox/movement';

/** Amounts in minor units. */
export interface StatementFacts {
  _id: string;
  iban: string;
  currency: string;
  sequence: number;
  day: string;
  from: Date;
  to: Date;
  created_at: Date;
  opening: number;
  credits: Total;
  debits: Total;
}

interface Total {
  count: number;
  sum: number;
}

type Entry = Movement & { day: string };

/** ISO 20022 `camt.053.001.08`. */
export async function* writeCamt053(
  statement: StatementFacts,
  entries: AsyncIterable<Entry>,
): AsyncGenerator<string> {
  const { _id, currency, created_at } = statement;
  const created = element('CreDtTm', created_at.toISOString());
  yield [
    '<?xml version="1.0" encoding="UTF-8"?>\n',
    '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt>\n',
    `${element('GrpHdr', element('MsgId', text(_id)), created)}\n<Stmt>\n`,
    element('Id', text(_id)),
    element('ElctrncSeqNb', String(statement.sequence)),
    created,
    element(
      'FrToDt',
      element('FrDtTm', statement.from.toISOString()),
      element('ToDtTm', statement.to.toISOString()),
    ),
    element(
      'Acct',
      element('Id', element('IBAN', text(statement.iban))),
      element('Ccy', text(currency)),
    ),
    '\n',
    buildBalance('OPBD', statement.opening, statement),
    buildBalance('CLBD', closingBalance(statement), statement),
    buildTotals(statement),
  ].join('');
  for await (const entry of entries) yield buildEntry(entry);
  yield '</Stmt>\n</BkToCstmrStmt></Document>\n';
}

export function closingBalance({ opening, credits, debits }: StatementFacts): number {
  return opening + credits.sum - debits.sum;
}

function buildBalance(
  code: 'OPBD' | 'CLBD',
  amount: number,
  { currency, day }: StatementFacts,
): string {
  const type = element('Tp', element('CdOrPrtry', element('Cd', code)));
  const date = element('Dt', element('Dt', day));
  return `${element('Bal', type, buildAmount(amount, currency), date)}\n`;
}

function buildTotals({ credits, debits, currency }: StatementFacts): string {
  const buildTotal = (name: string, { count, sum }: Total) =>
    element(
      name,
      element('NbOfNtries', String(count)),
      element('Sum', decimalMoney(sum, currency)),
    );
  return `${element(
    'TxsSummry',
    buildTotal('TtlCdtNtries', credits),
    buildTotal('TtlDbtNtries', debits),
  )}\n`;
}

/** A reference has at most 35 characters, so our id loses its dashes. */
function buildEntry(entry: Entry): string {
  const { resource, resource_id, amount, fee = 0, currency, bank_reference, day } = entry;
  const net = amount - fee;
  const isIncoming = resource === 'payment';
  const isReturn = isIncoming ? amount < 0 : amount > 0;
  const family = element(
    'Fmly',
    element('Cd', isIncoming ? 'RCDT' : 'ICDT'),
    element('SubFmlyCd', isReturn ? 'RRTN' : 'ESCT'),
  );
  const reference = element('AcctSvcrRef', text(bank_reference));
  const date = element('Dt', day);
  const details = element(
    'TxDtls',
    element('Refs', reference, element('EndToEndId', text(resource_id.replaceAll('-', '')))),
    buildAmount(net, currency),
    ...(fee > 0 ? buildFee(amount, fee, currency) : []),
    // No reason given.
    ...(isReturn ? [element('RtrInf', element('Rsn', element('Cd', 'MS03')))] : []),
  );
  return `${element(
    'Ntry',
    buildAmount(net, currency),
    element('Sts', element('Cd', 'BOOK')),
    element('BookgDt', date),
    element('ValDt', date),
    reference,
    element('BkTxCd', element('Domn', element('Cd', 'PMNT'), family)),
    element('NtryDtls', details),
  )}\n`;
}

/** Amount before the fee, and the fee in what the entry has. */
function buildFee(amount: number, fee: number, currency: string): string[] {
  const [gross, charge] = [amount, fee].map(
    (each) => `<Amt Ccy="${text(currency)}">${decimalMoney(each, currency)}</Amt>`,
  );
  const record = [charge ?? '', element('CdtDbtInd', 'DBIT'), element('ChrgInclInd', 'true')];
  return [
    element('AmtDtls', element('TxAmt', gross ?? '')),
    element('Chrgs', element('Rcrd', ...record)),
  ];
}

function buildAmount(amount: number, currency: string): string {
  const direction = element('CdtDbtInd', amount < 0 ? 'DBIT' : 'CRDT');
  const decimal = decimalMoney(Math.abs(amount), currency);
  return `<Amt Ccy="${text(currency)}">${decimal}</Amt>${direction}`;
}

function element(name: string, ...content: readonly string[]): string {
  return `<${name}>${content.join('')}</${name}>`;
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};

/** @throws RangeError for a character that XML 1.0 does not allow */
function text(value: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: XML 1.0 has no way to write them.
  if (/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Cs}/u.test(value)) {
    throw new RangeError('A text has a character that XML does not allow.');
  }
  return value.replace(/[&<>"]/g, (character) => ESCAPES[character] ?? character);
}
