import { shortenId } from '../../../src/service/sepa/book';
import { IBAN } from './world';

const CAMT_054 = 'urn:iso:std:iso:20022:tech:xsd:camt.054.001.08';
const PAIN_002 = 'urn:iso:std:iso:20022:tech:xsd:pain.002.001.10';

interface Entry {
  id: string;
  amount?: string;
  currency?: string;
  reference?: string;
  iban?: string;
  message?: string;
  /** ISO code of a return; a booked debit by default. */
  returned?: string;
}

/** Writes a notification of a movement, as a bank does. */
export function writeNotification({
  id,
  amount = '10.00',
  currency = 'EUR',
  reference = 'BANK-1',
  iban = IBAN,
  message = 'N-1',
  returned,
}: Entry): string {
  const side = returned === undefined ? 'DBIT' : 'CRDT';
  const family = returned === undefined ? 'ICDT' : 'RCDT';
  const reason = returned === undefined ? '' : `<RtrInf><Rsn><Cd>${returned}</Cd></Rsn></RtrInf>`;
  const money = `<Amt Ccy="${currency}">${amount}</Amt><CdtDbtInd>${side}</CdtDbtInd>`;
  return (
    `<?xml version="1.0" encoding="UTF-8"?><Document xmlns="${CAMT_054}"><BkToCstmrDbtCdtNtfctn>` +
    `<GrpHdr><MsgId>${message}</MsgId><CreDtTm>2026-10-05T10:00:00Z</CreDtTm></GrpHdr><Ntfctn>` +
    `<Id>${message}</Id><CreDtTm>2026-10-05T10:00:00Z</CreDtTm><Acct><Id><IBAN>${iban}</IBAN></Id>` +
    `<Ccy>${currency}</Ccy></Acct><Ntry>${money}` +
    '<Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-10-05</Dt></BookgDt><ValDt><Dt>2026-10-05</Dt>' +
    `</ValDt><AcctSvcrRef>${reference}</AcctSvcrRef><BkTxCd><Domn><Cd>PMNT</Cd><Fmly>` +
    `<Cd>${family}</Cd><SubFmlyCd>ESCT</SubFmlyCd></Fmly></Domn></BkTxCd><NtryDtls><TxDtls><Refs>` +
    `<EndToEndId>${shortenId(id)}</EndToEndId></Refs>${money}${reason}` +
    '</TxDtls></NtryDtls></Ntry></Ntfctn></BkToCstmrDbtCdtNtfctn></Document>'
  );
}

/** Writes an answer to a whole file. @param rejected payouts that it lists as rejected, too */
export function writeStatus(
  file: string,
  status: string,
  code: string,
  message = 'S-1',
  rejected: readonly string[] = [],
): string {
  const transactions = rejected.map(
    (id) =>
      `<TxInfAndSts><OrgnlEndToEndId>${shortenId(id)}</OrgnlEndToEndId><TxSts>RJCT</TxSts>` +
      '<StsRsnInf><Rsn><Cd>AC04</Cd></Rsn></StsRsnInf></TxInfAndSts>',
  );
  const batch =
    rejected.length === 0
      ? ''
      : '<OrgnlPmtInfAndSts><OrgnlPmtInfId>B-1</OrgnlPmtInfId>' +
        `${transactions.join('')}</OrgnlPmtInfAndSts>`;
  return (
    `<?xml version="1.0" encoding="UTF-8"?><Document xmlns="${PAIN_002}"><CstmrPmtStsRpt><GrpHdr>` +
    `<MsgId>${message}</MsgId><CreDtTm>2026-10-05T10:00:00Z</CreDtTm></GrpHdr><OrgnlGrpInfAndSts>` +
    `<OrgnlMsgId>${file}</OrgnlMsgId><OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId>` +
    `<GrpSts>${status}</GrpSts><StsRsnInf><Rsn><Cd>${code}</Cd></Rsn></StsRsnInf>` +
    `</OrgnlGrpInfAndSts>${batch}</CstmrPmtStsRpt></Document>`
  );
}
