import type { Db, Filter } from 'mongodb';
import type { PayeeResult } from '../../../domain/banks/callback';
import type { PayeeCounts } from '../../../domain/banks/capabilities';
import type { StatementFacts } from '../../../domain/banks/statement';
import type { PayeeVerification } from '../../../domain/payout/payout';
import type { RailId } from '../../../domain/payout/rails';
import type { Encrypted } from '../../../encryption/encrypter';
import type { SetAside } from '../statements/plan';

/** Payout in the connector's batch book, without personal data. @see docs/sepa.md */
export interface SepaLine {
  /** Payout ID: a payout has one line, in one file at most. */
  _id: string;
  state: LineState;
  /** Null while the payout waits for a file. */
  file_id: string | null;
  /** Refused files that had it, and those that never left. */
  former_files: string[];
  version: number;
  /** Minor units. */
  amount: number;
  currency: string;
  method: string;
  livemode: boolean;
  added_at: Date;
  /** No cut-off takes it before, or continues with its file; null: any. */
  wait_until: Date | null;
  failure: LineFailure | null;
  /** The bank says that the payout, or its file, had arrived before. */
  duplicate: { code: string; at: string } | null;
  /** Absent before the bank has checked the recipient's name. */
  verification?: PayeeVerification;
  /** Code with which the bank took the payout alone out of its file, unexecuted. */
  withdrawn?: string;
  /** The bank's final status of an instant payout, whose booking may come later. */
  executed?: { status: string; at: string };
  booked: LineMovement | null;
  returned: LineMovement | null;
  /** Further movements: once more, in another amount, or corrections of the bank. */
  others: LineOther[];
  /** A fact waits for its report. */
  unreported: boolean;
  /** Reports that are being delivered. */
  report_batch: string | null;
}

type LineState =
  /** In the open batch. */
  | 'open'
  /** In a file that is being written. */
  | 'assigned'
  /** In a file that may have left. */
  | 'in_file'
  /** Freed by the refusal of its file; an operator decides. */
  | 'waiting'
  /** In no file until an operator releases it, since its recipient is not verified. */
  | 'unverified'
  /** Cancelled before it left. */
  | 'cancelled'
  /** Left out of its file: nothing was to be sent for it anymore. */
  | 'dropped'
  /** Refused by the bank, or when its file was cut. */
  | 'failed'
  /** Reached the recipient, and is not booked yet. */
  | 'executed'
  | 'booked'
  | 'returned';

interface LineFailure {
  /** ISO code, if any. */
  code: string | null;
  message: string;
  at: string;
}

/** Payment by transfer, without personal data. */
export interface SepaPayment {
  /** Payment ID. */
  _id: string;
  /** Creditor reference that the transfer has to name. */
  reference: string;
  /** Minor units. */
  amount: number;
  currency: string;
  opened_at: Date;
  /** Order: that of the messages. */
  credits: LineMovement[];
  /** A credit waits for its report. */
  unreported: boolean;
  /** Reports that are being delivered. */
  report_batch: string | null;
}

export interface LineMovement {
  amount: number;
  currency: string;
  value_date: string | null;
  /** Reference in the message that came first. */
  bank_reference: string | null;
  /** References in all messages. */
  references: MovementReference[];
  /** ISO code of a return, if any. */
  code: string | null;
  at: string;
  /** The bank took a credit back. */
  isReversal?: true;
}

/** Each kind of message may have its own. */
export interface MovementReference {
  source: 'notification' | 'statement' | 'interbank';
  id: string;
  /** That of the entry, where `id` is of a part of it, or the reverse. */
  also?: string;
}

interface LineOther extends LineMovement {
  kind: 'booked' | 'returned' | 'debit_reversed' | 'return_reversed';
}

type FileState = 'open' | 'cut' | 'sent' | 'acknowledged' | 'booked' | 'refused';

export interface SepaFile {
  /** `MsgId`, 32 hex digits, made before the bytes. */
  _id: string;
  state: FileState;
  name: string;
  iban: string;
  /** Carries instant payouts alone. */
  instant?: true;
  /** Leaves by `SEPA_VERIFIED_DIR`, as decided when it was cut. */
  verified?: true;
  /** Its bytes may be at the bank: its payouts stay in it. */
  leaving?: true;
  /** `YYYY-MM-DD`, requested. */
  execution_day: string;
  created_at: Date;
  payouts: number;
  /** Minor units. */
  amount: number;
  /** Null before the bytes are written. */
  sha256: string | null;
  /** Compressed and encrypted for `sepa_file/{id}`; null before and after. */
  bytes: Encrypted | null;
  sent_at: Date | null;
  /** The bank's newest. */
  bank_status: string | null;
  /** The bank has accepted it, or called a payout of it a duplicate, also where it refused it, too. */
  may_be_executed: boolean;
  refusal: { code: string | null; at: Date } | null;
  /** All of the bank's answers, by its time; of many the newest. */
  statuses?: FileStatus[];
  /** Sums that the bank has booked of it, none of which is all of it. */
  sums?: FilePart[];
  /** The bank has checked names, and may wait for the release of the file; absent: it does not. */
  awaiting_release?: AwaitedRelease;
  /** Noted by an operator. */
  released?: { checked_at: string; at: string; operator?: string; reason?: string };
  /** Booked or refused, or never left. */
  ended_at: Date | null;
}

export interface FilePart {
  source: MovementReference['source'];
  bank_reference: string;
  /** Minor units. */
  amount: number;
  /** Null: not stated. */
  count: number | null;
  value_date: string | null;
}

interface FileStatus {
  /** `CreDtTm`, ISO 8601 in UTC. */
  created_at: string;
  message_id: string | null;
  status: string | null;
  code: string | null;
}

interface AwaitedRelease {
  since: Date;
  /** Time of the check, ISO 8601. */
  checked_at: string;
}

export const STATUSES_MAX = 50;

export interface SepaInbound {
  /** SHA-256 of the bytes. */
  _id: string;
  /** Such as `camt.053.001.08`; null: not a message. */
  message: string | null;
  /** `taken`: its facts are stored; `done`: it has left the folder, too. */
  state: 'taken' | 'done';
  folder: 'processed' | 'refused' | 'other';
  /** Name in that folder. */
  name: string;
  taken_at: Date;
  refusal: { code: string; message: string } | null;
  /** Name under which it came. */
  received_as?: string;
  /** Refused: calls an operator until it is taken or dismissed. */
  attention?: true;
  dismissed?: { operator: string; reason: string; at: Date };
  /** Name in `refused/`, while an import puts the file there. */
  refused_as?: string;
  /** Statements that wait for their import, or were imported. */
  statement: InboundStatement | null;
}

interface InboundStatement {
  /** First day. */
  from_day: string;
  imported_at: Date | null;
  /** Statements of accounts that are not registered: the file is taken again. */
  set_aside: SetAside[];
  /** Those that were believed. */
  believed?: StatementFacts[];
  /** Why nothing of it was believed: the import refuses it. */
  fault?: { code: string; message: string };
  /** Last day of the statement that the import refused, and its kind. */
  refused_day?: string;
  refused_kind?: StatementFacts['kind'];
  /** Ends of the accounts when a gap refused it. */
  waits_after?: string;
}

/** A process reads a file of the bank. */
interface FileReading {
  /** SHA-256 of the bytes. */
  _id: string;
  /** Processes that began to read it, and had not ended before the next one did. */
  attempts: number;
  /** Process that reads it. */
  by: string;
  /** No other process reads it before. */
  until: Date;
}

/** An operator requests to cut a file now. */
export interface CutRequest {
  _id: string;
  at: Date;
  /** Null until all were cut. */
  files: string[] | null;
  /** Files that were cut for it so far. */
  cut?: string[];
}

export const SEPA_CONNECTOR = 'sepa';

/** Rail whose payouts have files of their own. */
export const INSTANT_RAIL = 'sepa_instant' satisfies RailId;

const COLLECTIONS = {
  lines: 'lines',
  files: 'files',
  inbound: 'inbound',
  readings: 'readings',
  payments: 'payments',
  requests: 'cut_requests',
} as const;

export type SepaBook = ReturnType<typeof openSepaBook>;

export function sepaDatabase(database: string, connector: string): string {
  return `${database}_${connector}`;
}

export function openSepaBook(db: Db) {
  const lines = db.collection<SepaLine>(COLLECTIONS.lines);
  const files = db.collection<SepaFile>(COLLECTIONS.files);
  const inbound = db.collection<SepaInbound>(COLLECTIONS.inbound);
  const readings = db.collection<FileReading>(COLLECTIONS.readings);
  const payments = db.collection<SepaPayment>(COLLECTIONS.payments);
  const requests = db.collection<CutRequest>(COLLECTIONS.requests);
  return {
    ...{ lines, files, inbound, readings, payments, requests },
    ensureIndexes: async (): Promise<void> => {
      await Promise.all([
        lines.createIndexes([
          { key: { state: 1, added_at: 1 }, name: 'state' },
          { key: { file_id: 1, state: 1 }, name: 'file' },
          {
            key: { unreported: 1 },
            name: 'unreported',
            partialFilterExpression: { unreported: true },
          },
        ]),
        payments.createIndexes([
          { key: { reference: 1 }, name: 'reference', unique: true },
          {
            key: { unreported: 1 },
            name: 'unreported',
            partialFilterExpression: { unreported: true },
          },
        ]),
        files.createIndexes([
          { key: { created_at: -1 }, name: 'newest' },
          { key: { state: 1 }, name: 'state' },
          {
            key: { 'awaiting_release.since': 1 },
            name: 'awaiting',
            partialFilterExpression: { 'awaiting_release.since': { $type: 'date' } },
          },
          {
            key: { iban: 1, instant: 1 },
            name: 'one_open',
            unique: true,
            partialFilterExpression: { state: 'open' },
          },
        ]),
        inbound.createIndexes([
          { key: { 'statement.imported_at': 1 }, name: 'imported' },
          { key: { 'statement.believed.to_day': 1 }, name: 'believed' },
          { key: { taken_at: -1 }, name: 'newest' },
          {
            key: { attention: 1, taken_at: 1 },
            name: 'attention',
            partialFilterExpression: { attention: true },
          },
        ]),
      ]);
    },
  };
}

/** Counts payouts by the result of their name check. */
export async function countResults(
  lines: SepaBook['lines'],
  filter: Filter<SepaLine>,
): Promise<PayeeCounts> {
  const groups = await lines
    .aggregate<{ _id: PayeeResult | null; count: number }>([
      { $match: filter },
      { $group: { _id: '$verification.result', count: { $sum: 1 } } },
    ])
    .toArray();
  const counts = { match: 0, close_match: 0, no_match: 0, not_possible: 0 };
  for (const { _id, count } of groups) if (_id !== null) counts[_id] = count;
  return counts;
}

/**
 * Ends the attention of refused files when another of their name is taken. A name that the bank had
 * used before says nothing: the next day's file has it, too.
 */
export async function endByName(
  { inbound }: Pick<SepaBook, 'inbound'>,
  { _id, received_as, taken_at }: Pick<SepaInbound, '_id' | 'received_as' | 'taken_at'>,
): Promise<void> {
  if (received_as === undefined) return;
  const refused = { received_as, attention: true, taken_at: { $lte: taken_at } } as const;
  const [first] = await inbound.find(refused).sort({ taken_at: 1 }).limit(1).toArray();
  if (first === undefined) return;
  const earlier = { _id: { $ne: _id }, taken_at: { $lte: first.taken_at } };
  const before = { received_as, refusal: null, ...earlier };
  if ((await inbound.findOne(before)) !== null) return;
  await inbound.updateMany(refused, { $unset: { attention: true } });
}

/** A bank's field has 35 characters. */
export function shortenId(id: string): string {
  return id.replaceAll('-', '');
}
