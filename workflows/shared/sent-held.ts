import type { Known, Written } from '../../activities/shared/record-inputs';
import { omitUndefined } from '../../src/domain/defined';
import {
  findReportedSent,
  isOpenSent,
  type SendingKind,
  type SentHeld,
  takeSent,
} from '../../src/domain/sent-held';
import { timestamp } from './clock';
import type { Write } from './persist';
import type { Next } from './record-table';
import type { CommonFacts, WorkflowState } from './state';

interface Sending {
  sentHeld: readonly SentHeld[];
}

type Sender = WorkflowState<string, string, CommonFacts> & Sending;

interface SentReport {
  callback_id: string;
  says?: 'sent' | 'completed' | undefined;
  bank_reference?: string | undefined;
  amount?: number | string | undefined;
  currency?: string | undefined;
  value_date?: string | undefined;
}

interface Books<S> {
  book<Answer extends object>(
    sender: S,
    write: (known: Known) => Write<Written<Answer>>,
  ): Promise<Answer>;
}

/** @returns whether it was new: a report may repeat what the ledger has */
export async function holdSent<S extends Sender>(
  record: Books<S>,
  kind: SendingKind,
  sender: S,
  sent: SentReport,
): Promise<boolean> {
  const report = buildReport(kind, sender, sent);
  const result = await record.book(
    sender,
    (known) => (activities) => activities.recordSentHeld({ ...report, ...known }),
  );
  sender.sentHeld = result.sent_held;
  return findReportedSent(result.sent_held, sent) !== undefined;
}

/** Takes money that the bank has back out of suspense. */
export async function takeSentBack<S extends Sender>(
  record: Books<S>,
  kind: SendingKind,
  sender: S,
  back: SentReport,
): Promise<void> {
  if (!sender.sentHeld.some(isOpenSent)) return;
  const report = buildReport(kind, sender, back);
  const result = await record.book(
    sender,
    (known) => (activities) => activities.recordSentBack({ ...report, ...known }),
  );
  sender.sentHeld = result.sent_held;
}

function buildReport(
  kind: SendingKind,
  sender: Sender,
  { callback_id, bank_reference, says, amount, currency, value_date }: SentReport,
) {
  const facts = { bank_reference: bank_reference || undefined, says, amount, currency, value_date };
  return {
    ...{ kind, resource_id: sender.id, at: timestamp(sender), callback_id },
    ...omitUndefined(facts),
  };
}

interface Sent {
  units: bigint;
  currency: string;
}

interface NamedChange {
  bank_reference?: string;
  transaction_id?: string;
}

export function leaveSentHeld(
  { sentHeld }: Sending,
  { to, at, change, isAct }: Next<string, NamedChange>,
  { units, currency }: Sent,
): SentHeld[] {
  const named = omitUndefined({ bank_reference: change.transaction_id ?? change.bank_reference });
  const isFailed = to.includes('failed');
  return takeSent(sentHeld, { isFailed, sent: units, currency, isAct, at, ...named }).items;
}

export function keepsSentReason(attention: string | null, sentHeld: readonly SentHeld[]): boolean {
  const isOfSent = attention === 'amount_differs' || attention === 'moved_after_failed';
  return isOfSent && sentHeld.some(isOpenSent);
}
