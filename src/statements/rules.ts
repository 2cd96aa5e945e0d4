import { isDay } from '../domain/shape';

/** Form of a text that is read. */
type Rule = (text: string) => boolean;

const matches =
  (pattern: RegExp): Rule =>
  (text) =>
    pattern.test(text);
const isText =
  (max: number): Rule =>
  (text) =>
    text !== '' && text.length <= max;
/** Banks leave references empty. */
const isReference: Rule = (text) => text.length <= 35;
const isFlag = matches(/^(?:true|false|0|1)$/);
const isSide = matches(/^(?:CRDT|DBIT)$/);
const isCode = matches(/^[A-Z\d]{1,4}$/);
const isStatus = matches(/^[A-Z\d]{4}$/);
const isCount = matches(/^\d{1,18}$/);
const isAmount = matches(/^\+?\d{0,18}(?:[.]\d{0,18})?$/);
const isDate: Rule = (text) => /^.{10}(?:Z|[+-]\d\d:\d\d)?$/.test(text) && isDay(text.slice(0, 10));
const isTime: Rule = (text) =>
  /^.{10}T\d\d:\d\d:\d\d(?:[.]\d+)?(?:Z|[+-]\d\d:\d\d)?$/.test(text) && isDay(text.slice(0, 10));
/** Has elements of its own. */
const isNode: Rule = () => true;

/** Each of them comes once in its parent. */
const ROWS: readonly (readonly [parents: string, names: string, Rule])[] = [
  ['Stmt Ntfctn', 'Id', isText(35)],
  ['Stmt Ntfctn', 'Acct FrToDt', isNode],
  ['Stmt Ntfctn', 'ElctrncSeqNb LglSeqNb', isCount],
  ['Ntfctn GrpHdr', 'CreDtTm', isTime],
  ['FrToDt', 'FrDtTm ToDtTm', isTime],
  ['StmtPgntn NtfctnPgntn', 'PgNb', isCount],
  ['StmtPgntn NtfctnPgntn', 'LastPgInd', isFlag],
  ['Acct', 'Id', isNode],
  ['Acct', 'Ccy', matches(/^[A-Z]{3}$/)],
  ['Id', 'IBAN', matches(/^[A-Z]{2}\d\d[A-Za-z\d]{1,30}$/)],
  ['Id', 'Othr', isNode],
  ['Othr', 'Id', isText(34)],
  ['Bal', 'Tp Dt', isNode],
  ['Dt BookgDt ValDt', 'Dt', isDate],
  ['Dt BookgDt ValDt', 'DtTm', isTime],
  ['Ntry Bal TxDtls Rcrd Chrgs TtlChrgsAndTaxAmt', 'CdtDbtInd', isSide],
  ['Ntry Bal TxDtls Rcrd Chrgs TxAmt InstdAmt', 'Amt', isAmount],
  ['Ntry', 'RvslInd', isFlag],
  ['Ntry', 'Sts', (text) => text === '' || isCode(text)],
  ['Ntry', 'BookgDt ValDt BkTxCd', isNode],
  ['Sts', 'Cd', isStatus],
  ['Ntry', 'AcctSvcrRef', isReference],
  ['Domn', 'Cd Fmly', (text) => text === '' || isCode(text)],
  ['Fmly', 'Cd SubFmlyCd', isCode],
  ['Chrgs', 'TtlChrgsAndTaxAmt', isAmount],
  ['Rcrd Chrgs', 'Tax', isNode],
  ['Tax', 'Amt', isAmount],
  ['Btch', 'TtlAmt', isAmount],
  ['Btch', 'NbOfTxs', isCount],
  ['Btch', 'MsgId PmtInfId', isReference],
  ['TxDtls', 'Refs RtrInf', isNode],
  ['Refs', 'MsgId AcctSvcrRef PmtInfId InstrId EndToEndId TxId', isReference],
  ['Prtry', 'Ref', isReference],
  ['Rcrd Chrgs', 'ChrgInclInd', isFlag],
  ['Rsn', 'Cd', isCode],
  ['CstmrPmtStsRpt', 'GrpHdr OrgnlGrpInfAndSts', isNode],
  ['OrgnlGrpInfAndSts', 'OrgnlMsgId', isText(35)],
  ['OrgnlGrpInfAndSts', 'GrpSts', isStatus],
  ['OrgnlPmtInfAndSts', 'PmtInfSts', isStatus],
  ['TxInfAndSts', 'TxSts', isStatus],
  ['TxInfAndSts TxInf', 'OrgnlEndToEndId OrgnlInstrId', isReference],
  ['TxInf', 'RtrId', isReference],
  ['TxInf', 'RtrdIntrBkSttlmAmt', isAmount],
  ['ChrgsInf', 'Amt', isAmount],
  ['TxInf GrpHdr', 'IntrBkSttlmDt', isDate],
];

const RULES = new Map<string, Map<string, Rule>>();
for (const [parents, names, rule] of ROWS) {
  for (const parent of parents.split(' ')) {
    const rules = RULES.get(parent) ?? new Map<string, Rule>();
    for (const name of names.split(' ')) rules.set(name, rule);
    RULES.set(parent, rules);
  }
}

export function getRule(parent: string, name: string): Rule | undefined {
  return RULES.get(parent)?.get(name);
}

/** Elements that have to be in one that is read. */
export const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  Stmt: ['Id', 'Acct'],
  Ntfctn: ['Id', 'Acct'],
  Bal: ['Tp', 'Amt', 'CdtDbtInd', 'Dt'],
  Ntry: ['Amt', 'CdtDbtInd', 'Sts'],
  OrgnlGrpInfAndSts: ['OrgnlMsgId'],
  CstmrPmtStsRpt: ['OrgnlGrpInfAndSts'],
  TxInf: ['RtrdIntrBkSttlmAmt'],
};

/** Longest text of what is not read, and often wrong: empty, or too long. */
const LENGTHS: Readonly<Record<string, number>> = {
  ...{ Nm: 140, AdrLine: 70, Ustrd: 140, AddtlTxInf: 500, AddtlNtryInf: 500, AddtlInf: 105 },
  ...{ StrtNm: 70, BldgNb: 16, PstCd: 16, TwnNm: 35, Ctry: 2, CtrySubDvsn: 35 },
  ...{ Purp: 35, Cd: 35, Prtry: 35, Id: 256, BICFI: 11, BIC: 11, IBAN: 34, Ref: 35 },
  ...{ MsgId: 35, PmtInfId: 35, InstrId: 35, EndToEndId: 35, TxId: 35, MndtId: 35, NtryRef: 35 },
  ...{ AcctSvcrRef: 35, ClrSysRef: 35, ChqNb: 35, Issr: 35 },
};

/** Whether something is wrong in what is not read. */
export function isOdd(name: string, length: number): boolean {
  const max = LENGTHS[name];
  return max !== undefined && (length === 0 || length > max);
}
