import { shortenId } from '../../../src/service/banks/sepa/book';
import { camt } from '../../support/camt';

export const IBAN = 'NL41MOCK0000000001';
export const DAY = '2026-10-05';

interface Movement {
  id: string;
  amount?: number;
  currency?: string;
  reference?: string;
  iban?: string;
  message?: string;
  /** ISO code of a return; a booked debit by default. */
  returned?: string;
  /** The bank takes its debit back. */
  reversal?: boolean;
}

/** Writes a notification of a movement, as a bank does. */
export function writeNotification({ id, amount = 1_000, message = 'N-1', ...more }: Movement) {
  const { currency = 'EUR', reference = 'BANK-1', iban = IBAN, returned, reversal = false } = more;
  const reason = returned && `<RtrInf><Rsn><Cd>${returned}</Cd></Rsn></RtrInf>`;
  const refs = `<Refs><EndToEndId>${shortenId(id)}</EndToEndId></Refs>`;
  const entry = {
    amount: returned === undefined && !reversal ? -amount : amount,
    reversal,
    code: returned === undefined && !reversal ? 'PMNT.ICDT.ESCT' : 'PMNT.RCDT.ESCT',
    bank_reference: reference,
    details: `<TxDtls>${refs}${reason ?? ''}</TxDtls>`,
  };
  const notification = { id: message, iban, currency, day: DAY, entries: [entry] };
  const text = camt([notification], { message: 'camt.054.001.08' }).toString();
  return text.replace('<MsgId>M-1', `<MsgId>${message}`);
}

/** Writes a `pacs.004` of a return of which the bank keeps charges. */
export function writeReturn(id: string, amount: number, charges: number): string {
  const euros = (cents: number) => `<Amt Ccy="EUR">${(cents / 100).toFixed(2)}</Amt>`;
  return (
    '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pacs.004.001.09"><PmtRtr><GrpHdr>' +
    `<MsgId>R-20</MsgId><CreDtTm>${DAY}T10:00:00</CreDtTm><NbOfTxs>1</NbOfTxs><SttlmInf>` +
    '<SttlmMtd>CLRG</SttlmMtd></SttlmInf></GrpHdr><TxInf><RtrId>RTR-20</RtrId>' +
    `<OrgnlEndToEndId>${shortenId(id)}</OrgnlEndToEndId>` +
    `${euros(amount).replaceAll('Amt', 'RtrdIntrBkSttlmAmt')}<IntrBkSttlmDt>${DAY}</IntrBkSttlmDt>` +
    `<ChrgsInf>${euros(charges)}<Agt><FinInstnId><BICFI>MOCKNL2A</BICFI></FinInstnId></Agt>` +
    '</ChrgsInf><RtrRsnInf><Rsn><Cd>AC04</Cd></Rsn></RtrRsnInf></TxInf></PmtRtr></Document>'
  );
}

/** Writes a `pain.002`. @param batch elements about payouts of the file */
export function writeStatus(
  file: string,
  group: string,
  { version = '10', message = 'S-1', batch = '', at = `${DAY}T10:00:00` } = {},
): string {
  const about = `<OrgnlPmtInfAndSts><OrgnlPmtInfId>${file}</OrgnlPmtInfId>${batch}</OrgnlPmtInfAndSts>`;
  return (
    `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.002.001.${version}"><CstmrPmtStsRpt>` +
    `<GrpHdr><MsgId>${message}</MsgId><CreDtTm>${at}</CreDtTm></GrpHdr>` +
    `<OrgnlGrpInfAndSts><OrgnlMsgId>${file}</OrgnlMsgId>` +
    `<OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId>${group}</OrgnlGrpInfAndSts>` +
    `${batch && about}</CstmrPmtStsRpt></Document>`
  );
}

/**
 * Writes what a bank says of the names in a file, with the name that it suggests.
 * @param statuses of payouts; empty: it lists the payout without one
 */
export function writeNameCheck(
  file: string,
  statuses: Readonly<Record<string, string>>,
  { group = 'PDNG', payments = '', ...more }: NameCheck = {},
): string {
  const transactions = Object.entries(statuses).map(
    ([id, status]) =>
      `<TxInfAndSts><OrgnlEndToEndId>${shortenId(id)}</OrgnlEndToEndId>` +
      `${status && `<TxSts>${status}</TxSts>`}` +
      '<StsRsnInf><AddtlInf>Lindqvist M</AddtlInf></StsRsnInf></TxInfAndSts>',
  );
  const own = payments && `<PmtInfSts>${payments}</PmtInfSts>`;
  const batch = own + transactions.join('');
  return writeStatus(file, group && `<GrpSts>${group}</GrpSts>`, { ...more, batch });
}

interface NameCheck {
  group?: string;
  /** Status of the batch. */
  payments?: string;
  version?: string;
  message?: string;
  at?: string;
}

type Results = Readonly<Record<string, readonly [status: string, code?: string]>>;

/** Writes the statuses of payouts. @param group of the whole file; by default none */
export function writeResults(file: string, results: Results, group = '', message = 'S-1'): string {
  const transactions = Object.entries(results).map(
    ([id, [status, code]]) =>
      `<TxInfAndSts><OrgnlEndToEndId>${shortenId(id)}</OrgnlEndToEndId>` +
      `<TxSts>${status}</TxSts>${writeReason(code)}</TxInfAndSts>`,
  );
  return writeStatus(file, group, { message, batch: transactions.join('') });
}

const writeReason = (code: string | undefined) =>
  code === undefined ? '' : `<StsRsnInf><Rsn><Cd>${code}</Cd></Rsn></StsRsnInf>`;

/** Writes the refusal of a whole file. @param rejected payouts that it lists as rejected, too */
export function writeRefusal(
  file: string,
  code: string,
  message: string,
  rejected: readonly string[] = [],
): string {
  const results = Object.fromEntries(rejected.map((id) => [id, ['RJCT', 'AC04'] as const]));
  return writeResults(file, results, `<GrpSts>RJCT</GrpSts>${writeReason(code)}`, message);
}
