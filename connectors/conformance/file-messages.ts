import { decimalMoney, parseDecimalMoney } from '../../src/domain/money/money';
import { shortenId } from '../../src/service/banks/sepa/book';
import { readFiles } from '../../src/statements/intake';
import {
  type Element,
  find,
  findAll,
  type Part,
  readMessages,
  textAt,
} from '../../src/statements/xml';

/** Minor units. */
interface ReadTransfer {
  end_to_end_id: string;
  amount: number;
  currency: string;
}

export interface ReadFile {
  id: string;
  iban: string;
  transfers: ReadTransfer[];
}

const ORDERS = {
  kinds: { 'pain.001': { versions: [9, 9], container: 'CstmrCdtTrfInitn', parts: [] } },
  expected: 'a bank reads pain.001.001.09',
} as const;

export async function readPain001(bytes: Uint8Array): Promise<ReadFile> {
  const initiation: Element[] = [];
  const reader = { take: ({ element }: Part) => void initiation.push(element), note: () => {} };
  await readFiles(bytes, (file) => readMessages(file, ORDERS, reader));
  const batches = initiation.flatMap((each) => findAll(each, 'PmtInf'));
  const transfers = batches.flatMap((batch) =>
    findAll(batch, 'CdtTrfTxInf').map((transfer) => {
      const { text = '', currency = '' } = find(transfer, 'Amt/InstdAmt') ?? {};
      const amount = parseDecimalMoney(text, currency) ?? 0;
      return { end_to_end_id: textAt(transfer, 'PmtId/EndToEndId') ?? '', amount, currency };
    }),
  );
  const id = textAt(initiation[0], 'GrpHdr/MsgId') ?? '';
  return { id, iban: textAt(batches[0], 'DbtrAcct/Id/IBAN') ?? '', transfers };
}

/** Negative when money leaves. */
export interface Booking {
  payout_id: string;
  amount: number;
  currency: string;
  reference: string;
  /** ISO code of a return. */
  code?: string;
}

interface Message {
  id: string;
  at: Date;
}

const NAMESPACE = 'urn:iso:std:iso:20022:tech:xsd';
const RECIPIENT = 'Zephyrine Quackenbush';

const CONTAINERS = {
  'camt.054': ['BkToCstmrDbtCdtNtfctn', 'Ntfctn'],
  'camt.053': ['BkToCstmrStmt', 'Stmt'],
} as const;

export function writeCamt(
  kind: keyof typeof CONTAINERS,
  { id, at }: Message,
  { iban, bookings }: { iban: string; bookings: readonly Booking[] },
): string {
  const [container, name] = CONTAINERS[kind];
  const closing = bookings.reduce((sum, { amount }) => sum + amount, 0);
  const day = at.toISOString().slice(0, 10);
  const balances = [writeBalance('OPBD', 0, day), writeBalance('CLBD', closing, day)].join('');
  const time = at.toISOString();
  return writeDocument(
    `${kind}.001.08`,
    `<${container}><GrpHdr><MsgId>${id}</MsgId><CreDtTm>${time}</CreDtTm></GrpHdr><${name}>` +
      `<Id>${id}</Id><CreDtTm>${time}</CreDtTm><Acct><Id><IBAN>${iban}</IBAN></Id><Ccy>EUR</Ccy>` +
      `</Acct>${kind === 'camt.053' ? balances : ''}` +
      `${bookings.map((booking) => writeEntry(booking, day)).join('')}</${name}></${container}>`,
  );
}

function writeEntry({ payout_id, reference, code, ...money }: Booking, day: string): string {
  const family = money.amount < 0 ? 'ICDT' : 'RCDT';
  const reason = code === undefined ? '' : `<RtrInf><Rsn><Cd>${code}</Cd></Rsn></RtrInf>`;
  return (
    `<Ntry>${writeMoney(money)}<Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>${day}</Dt></BookgDt>` +
    `<ValDt><Dt>${day}</Dt></ValDt><AcctSvcrRef>${reference}</AcctSvcrRef><BkTxCd><Domn>` +
    `<Cd>PMNT</Cd><Fmly><Cd>${family}</Cd><SubFmlyCd>ESCT</SubFmlyCd></Fmly></Domn></BkTxCd>` +
    `<NtryDtls><TxDtls><Refs><EndToEndId>${shortenId(payout_id)}</EndToEndId></Refs>` +
    `${writeMoney(money)}<RltdPties><Cdtr><Pty><Nm>${RECIPIENT}</Nm></Pty></Cdtr></RltdPties>` +
    `${reason}</TxDtls></NtryDtls></Ntry>`
  );
}

function writeBalance(code: string, amount: number, day: string): string {
  const money = writeMoney({ amount, currency: 'EUR' });
  return `<Bal><Tp><CdOrPrtry><Cd>${code}</Cd></CdOrPrtry></Tp>${money}<Dt><Dt>${day}</Dt></Dt></Bal>`;
}

function writeMoney({ amount, currency }: Pick<Booking, 'amount' | 'currency'>): string {
  const side = amount < 0 ? 'DBIT' : 'CRDT';
  const text = decimalMoney(Math.abs(amount), currency);
  return `<Amt Ccy="${currency}">${text}</Amt><CdtDbtInd>${side}</CdtDbtInd>`;
}

/** Contains a text that names the recipient. */
export interface Status {
  status: string;
  code?: string;
  payout_id?: string;
}

/** Reasons by which what a rejection names had arrived before. */
export const ARRIVED_BEFORE = ['DUPL', 'AM05', 'DU01', 'DU02', 'DU03', 'DU04', 'DU05'] as const;

export function writePain002(
  { id, at }: Message,
  file: string,
  { status, code, payout_id }: Status,
): string {
  const reason =
    code === undefined
      ? ''
      : `<StsRsnInf><Rsn><Cd>${code}</Cd></Rsn><AddtlInf>Transfer to ${RECIPIENT}</AddtlInf></StsRsnInf>`;
  const transaction =
    payout_id === undefined
      ? ''
      : `<OrgnlPmtInfAndSts><OrgnlPmtInfId>${file}</OrgnlPmtInfId><TxInfAndSts>` +
        `<OrgnlEndToEndId>${shortenId(payout_id)}</OrgnlEndToEndId><TxSts>${status}</TxSts>` +
        `${reason}</TxInfAndSts></OrgnlPmtInfAndSts>`;
  // A check of a name leaves its file waiting.
  const others = status === 'RJCT' ? 'PART' : 'PDNG';
  const group =
    payout_id === undefined ? `<GrpSts>${status}</GrpSts>${reason}` : `<GrpSts>${others}</GrpSts>`;
  return writeDocument(
    'pain.002.001.10',
    `<CstmrPmtStsRpt><GrpHdr><MsgId>${id}</MsgId><CreDtTm>${at.toISOString()}</CreDtTm></GrpHdr>` +
      `<OrgnlGrpInfAndSts><OrgnlMsgId>${file}</OrgnlMsgId><OrgnlMsgNmId>pain.001.001.09` +
      `</OrgnlMsgNmId>${group}</OrgnlGrpInfAndSts>${transaction}</CstmrPmtStsRpt>`,
  );
}

function writeDocument(message: string, content: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n<Document xmlns="${NAMESPACE}:${message}">${content}</Document>\n`;
}
