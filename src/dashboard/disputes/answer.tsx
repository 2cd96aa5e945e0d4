import {
  type DisputeAnswer,
  EVIDENCE_LENGTH_MAX,
  isDisputeClosed,
} from '../../domain/dispute/dispute';
import { computeBorneFee, type DisputeTransfer } from '../../domain/dispute/report';
import { Refusal } from '../../domain/errors';
import { formatCount } from '../../domain/format-count';
import { formatMoney } from '../../domain/money';
import { SubmitEvidence } from '../../domain/wire/disputes';
import { validate } from '../../domain/wire/validate';
import type { Documents } from '../../service/money/resources/read';
import { startOfDay } from '../../service/paging';
import { Field } from '../frame/fields';
import { field } from '../frame/form';
import { Note, Panel, PostForm, useCall, When } from '../frame/parts';
import type { Call } from '../frame/route';

type Dispute = Documents['dispute'];

const FIELDS = [
  {
    name: 'explanation',
    label: 'Explanation',
    type: 'lines',
    hint: 'What the customer bought, and why the payment is right. The bank reads only what is here.',
    maxLength: EVIDENCE_LENGTH_MAX,
    required: true,
  },
  { name: 'customer_reference', label: 'Customer', hint: 'Your own name or number for them.' },
  { name: 'shipped_at', label: 'Shipped on', type: 'date' },
  { name: 'carrier', label: 'Carrier', maxLength: 255 },
  { name: 'tracking_number', label: 'Tracking number', maxLength: 255 },
  {
    name: 'refund_reference',
    label: 'Refund',
    hint: 'If the customer already has the money back: the refund’s id, or yours.',
  },
] as const;

export interface RefusedEvidence {
  form: URLSearchParams;
  /** By the field's name. */
  faults: Partial<Record<string, string>>;
  note: string;
  status: 400 | 503;
}

export function readEvidence({
  form,
}: Pick<Call, 'form'>):
  | { evidence: SubmitEvidence; refused?: undefined }
  | { evidence?: undefined; refused: RefusedEvidence } {
  const written = FIELDS.flatMap(({ name }) => {
    // Browsers send a line's end as two characters.
    const text = field(form, name).replaceAll('\r\n', '\n');
    const value = name === 'shipped_at' && startOfDay(text) ? `${text}T00:00:00Z` : text;
    return value === '' ? [] : [[name, value]];
  });
  try {
    return { evidence: validate(SubmitEvidence, Object.fromEntries(written)) };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const faults = (error.details ?? []).map(({ field: name, message }) => [
      // The length of all texts is of no field.
      name || 'explanation',
      name === 'shipped_at' ? 'It must be a day, such as 2026-03-01.' : `It ${message}.`,
    ]);
    const note = 'Nothing was sent: correct what is marked.';
    return { refused: { form, faults: Object.fromEntries(faults), note, status: 400 } };
  }
}

/** Says what the merchant lost, or has back, and which fee is in addition. */
export function formatMoved(
  { transfers, currency }: Pick<Dispute, 'transfers' | 'currency'>,
  direction: DisputeTransfer['direction'],
): string | null {
  const own = transfers.filter((transfer) => transfer.direction === direction);
  const amount = own.reduce((sum, transfer) => sum + transfer.amount, 0);
  const fee = own.reduce((sum, transfer) => sum + computeBorneFee(transfer), 0);
  if (amount + fee === 0) return null;
  const text = formatMoney(amount, currency);
  return fee === 0 ? text : `${text}, and a fee of ${formatMoney(fee, currency)}`;
}

/** Finds until when the bank waits for an answer. */
export function findDeadline({
  status,
  evidence_due_at,
}: Pick<Dispute, 'status' | 'evidence_due_at'>): string | null {
  return status === 'needs_response' ? evidence_due_at : null;
}

const isOver = ({ evidence_due_at }: Dispute, now: Date) =>
  evidence_due_at !== null && evidence_due_at <= now.toISOString();

const STANDS: Readonly<Record<Exclude<Dispute['status'], 'needs_response'>, string>> = {
  under_review: 'The bank decides. That often takes weeks.',
  won: 'The bank decided for you.',
  lost: 'The bank decided for the customer, who keeps the money.',
  accepted: 'You accepted it: the customer keeps the money.',
};

interface StandProps {
  dispute: Dispute;
  /** Answers that the bank accepts through us. */
  takes: Readonly<Record<DisputeAnswer, boolean>>;
}

/** Says what the status means for the merchant, and what to do. */
export function StandNote({ dispute, takes }: StandProps) {
  const { now } = useCall();
  const { status, evidence_due_at, answering = null } = dispute;
  if (answering !== null) {
    return <Note tone="note">Your answer is being sent to the bank.</Note>;
  }
  if (status !== 'needs_response') {
    return <Note tone={status === 'won' ? 'good' : 'plain'}>{STANDS[status]}</Note>;
  }
  if (!takes.evidence && !takes.acceptance) {
    const text = 'The bank accepts no answer through us. Answer it yourself, before its deadline.';
    return <Note tone="note">{text}</Note>;
  }
  if (isOver(dispute, now)) {
    return <Note tone="note">The time to answer is over. The bank decides without evidence.</Note>;
  }
  return (
    <Note tone="note">
      {'The bank waits for your answer'}
      {evidence_due_at !== null && (
        <>
          {' until '}
          <When at={evidence_due_at} />
        </>
      )}
      {': send evidence once, or accept. Without an answer it usually decides for the customer.'}
    </Note>
  );
}

const HOUR_MS = 3_600_000;
/** Up to three days are counted in hours. */
const HOURS_MAX = 72;

export function Deadline({ dispute }: { dispute: Dispute }) {
  const { now } = useCall();
  const { evidence_due_at, status } = dispute;
  if (evidence_due_at === null || status !== 'needs_response') return <When at={evidence_due_at} />;
  const hours = Math.floor((Date.parse(evidence_due_at) - now.getTime()) / HOUR_MS);
  const left =
    hours > HOURS_MAX ? formatCount(Math.floor(hours / 24), 'day') : formatCount(hours, 'hour');
  return (
    <>
      <When at={evidence_due_at} />
      {isOver(dispute, now) ? ', which is over' : `, ${left} from now`}
    </>
  );
}

interface AnswerProps extends StandProps {
  refused: RefusedEvidence | undefined;
}

/** Forms to answer with, for those who may, while the bank takes an answer. */
export function AnswerForms({ dispute, takes, refused }: AnswerProps) {
  const { may, now } = useCall();
  const { _id, status, evidence, answering = null } = dispute;
  if (isDisputeClosed(status) || !may('disputes.answer')) return null;
  const path = `/disputes/${_id}`;
  if (answering !== null) return null;
  const mayAnswer = takes.evidence && evidence === undefined && !isOver(dispute, now);
  return (
    <>
      {mayAnswer && <EvidencePanel path={`${path}/evidence`} refused={refused} />}
      {status === 'needs_response' && takes.acceptance && (
        <Panel title="Accept">
          <p class="muted">
            If the customer is right: this ends the dispute, and they keep the money.
          </p>
          <PostForm path={`${path}/accept`} button="Accept dispute" tone="danger" />
        </Panel>
      )}
    </>
  );
}

function EvidencePanel({ path, refused }: Pick<AnswerProps, 'refused'> & { path: string }) {
  return (
    <Panel title="Send evidence">
      <p class="muted">
        {'The bank gets it once: you can neither change it later nor add to it. All texts together ' +
          `have at most ${EVIDENCE_LENGTH_MAX.toLocaleString('en')} characters, and no file.`}
      </p>
      {refused && <Note tone="bad">{refused.note}</Note>}
      <PostForm path={path} button="Send evidence" busy="Sending…">
        {FIELDS.map((each) => (
          <Field
            key={each.name}
            {...each}
            value={refused?.form.get(each.name) ?? ''}
            fault={refused?.faults[each.name]}
          />
        ))}
      </PostForm>
    </Panel>
  );
}
