import {
  DISPUTE_STATUSES,
  type DisputeAnswer,
  EVIDENCE_LENGTH_MAX,
  isDisputeClosed,
} from '../../domain/dispute/dispute';
import { explainReason } from '../../domain/dispute/reason';
import { computeBorneFee, type DisputeTransfer } from '../../domain/dispute/report';
import { Refusal } from '../../domain/errors';
import { decimalMoney, formatMoney } from '../../domain/money/money';
import { PAYMENT_METHOD_IDS } from '../../domain/payment/catalog';
import { formatCount } from '../../domain/printable';
import { SubmitEvidence } from '../../domain/wire/disputes';
import { validate } from '../../domain/wire/validate';
import { acceptDispute, isSupported, submitEvidence } from '../../service/money/disputes';
import { type Documents, readDispute } from '../../service/money/resources/read';
import { startOfDay } from '../../service/paging';
import { Field } from '../frame/fields';
import { actOnMoney, field } from '../frame/form';
import { Note, Panel, PostForm, useCall, When } from '../frame/parts';
import {
  type Answer,
  type Call,
  type PageDeps,
  postRoute,
  type Route,
  viewRoute,
} from '../frame/route';
import { fieldColumns } from '../resources/csv';
import { answerResource, commonColumns, methodName, type ResourceList } from '../resources/kinds';
import { listRoutes } from '../resources/list';

const DISPUTES: ResourceList<'dispute'> = {
  kind: 'dispute',
  title: 'Disputes',
  path: '/disputes',
  statuses: DISPUTE_STATUSES,
  methods: PAYMENT_METHOD_IDS,
  hint: 'Dispute id or payment id',
  columns: [
    commonColumns.id,
    ['Withdrawn', (dispute) => formatMoved(dispute, 'out') ?? 'Nothing'],
    commonColumns.status,
    ['Reason', ({ reason }) => explainReason(reason)],
    ['Answer until', (dispute) => <When at={findDeadline(dispute)} />],
    commonColumns.created,
  ],
  csv: [
    ['id', ({ _id }) => _id],
    ...fieldColumns('created_at', 'status', 'payment_id'),
    ['amount', ({ amount, currency }) => decimalMoney(amount, currency)],
    ['fee', ({ fee, currency }) => decimalMoney(fee, currency)],
    ...fieldColumns('currency', 'method', 'reason'),
    ...fieldColumns('evidence_due_at', 'evidence_submitted_at', 'closed_at'),
  ],
};

/** Holds evidence of the most characters, which browsers send in up to nine bytes each. */
const FORM_BYTES_MAX = 9 * EVIDENCE_LENGTH_MAX + 8 * 1_024;

export const DISPUTE_ROUTES: readonly Route[] = [
  ...listRoutes(DISPUTES),
  viewRoute('/disputes/:id', 'Dispute', (call, deps) => show(call, deps)),
  postRoute('/disputes/:id/evidence', 'disputes.answer', {
    title: 'Send evidence',
    bytesMax: FORM_BYTES_MAX,
    confirmation: {
      question:
        'Send this evidence to the bank? It is sent once: it can be neither changed nor added to.',
      button: 'Send evidence',
      refuse: async (call, deps) => {
        const { refused } = readEvidence(call);
        return refused && (await show(call, deps, refused));
      },
    },
    handle: async (call, deps) => {
      const { evidence, refused } = readEvidence(call);
      if (evidence === undefined) return await show(call, deps, refused);
      if ((await findDispute(call, deps)) === null) return 'not_found';
      const { scope, id: target } = call;
      const path = `/disputes/${target}`;
      return await actOnMoney(deps, call, {
        ...{ act: 'dispute.answered', target, path },
        run: () => submitEvidence(deps, scope, target, evidence).then(() => ({})),
        success: () => ({ go: path, good: 'The evidence is sent. Now the bank decides.' }),
        // What was written may be long, and the service cannot show what it has stored.
        unknown: () => {
          const note =
            'It is not known yet whether the evidence was sent. Send it again as it is: it is not ' +
            'sent twice.';
          return show(call, deps, { form: call.form, faults: {}, note, status: 503 });
        },
      });
    },
  }),
  postRoute('/disputes/:id/accept', 'disputes.answer', {
    title: 'Accept the dispute',
    confirmation: {
      question:
        'Accept the dispute? The customer keeps the money, and the bank gets no evidence. You ' +
        'cannot change your mind.',
      button: 'Accept dispute',
      proof: async (call, deps) => {
        const { viewer, scope } = call;
        const dispute = scope.livemode ? await findDispute(call, deps) : null;
        const limit = dispute === null ? undefined : viewer.account.refundStepUp[dispute.currency];
        if (dispute === null || limit === undefined) return undefined;
        return dispute.amount <= limit ? undefined : 'step_up';
      },
    },
    handle: async (call, deps) => {
      if ((await findDispute(call, deps)) === null) return 'not_found';
      const { scope, id: target } = call;
      const path = `/disputes/${target}`;
      return await actOnMoney(deps, call, {
        ...{ act: 'dispute.accepted', target, path },
        run: () => acceptDispute(deps, scope, target).then(() => ({})),
        success: () => ({ go: path, good: 'The dispute is accepted.' }),
        unknown: {
          go: path,
          bad: 'It is not known yet whether the dispute was accepted. Look at its status, and try again.',
        },
      });
    },
  }),
];

function findDispute({ scope, id }: Call, { stores }: Pick<PageDeps, 'stores'>) {
  return stores.disputes.find(id, scope.account_id, scope.livemode);
}

async function show(call: Call, deps: PageDeps, refused?: RefusedEvidence): Promise<Answer> {
  const result = await readDispute(deps, call.scope, call.id);
  if (result === null) return 'not_found';
  const { resource: dispute, payment } = result;
  const { payment_id } = dispute;
  const takes = {
    evidence: await isSupported(deps, dispute, 'evidence'),
    acceptance: await isSupported(deps, dispute, 'acceptance'),
  };
  const answer = answerResource(call, result, {
    title: `Dispute of a payment of ${formatMoney(payment.amount, payment.currency)}`,
    attention: dispute.attention,
    note: <StandNote dispute={dispute} takes={takes} />,
    facts: [
      ['Id', <code key="id">{dispute._id}</code>],
      [
        'Payment',
        <a key="payment" href={call.href(`/payments/${payment_id}`)}>
          <code>{payment_id}</code>
        </a>,
      ],
      ['Method', methodName(dispute.method)],
      ['Withdrawn', formatMoved(dispute, 'out') ?? 'Nothing'],
      ['Came back', formatMoved(dispute, 'in')],
      ['Reason', explainReason(dispute.reason)],
      ['Answer until', <Deadline key="due" dispute={dispute} />],
      ['Evidence sent', <When key="sent" at={dispute.evidence_submitted_at} />],
      ['Opened', <When key="created" at={dispute.created_at} />],
      ['Closed', <When key="closed" at={dispute.closed_at} />],
    ],
    children: <AnswerForms dispute={dispute} takes={takes} refused={refused} />,
  });
  return { ...answer, status: refused?.status ?? 200 };
}

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

interface RefusedEvidence {
  form: URLSearchParams;
  /** By the field's name. */
  faults: Partial<Record<string, string>>;
  note: string;
  status: 400 | 503;
}

function readEvidence({
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
      name,
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
function StandNote({ dispute, takes }: StandProps) {
  const { now } = useCall();
  const { status, evidence_due_at, evidence_submitted_at, answering = null } = dispute;
  const { answers_refused = [] } = dispute;
  const isRefused = answers_refused.includes('evidence');
  // The bank may decide before it has the answer.
  if (answering !== null && !isDisputeClosed(status)) {
    return <Note tone="note">Your answer is being sent to the bank.</Note>;
  }
  if (status !== 'needs_response') {
    return <Note tone={status === 'won' ? 'good' : 'plain'}>{STANDS[status]}</Note>;
  }
  if (!takes.evidence && !takes.acceptance) {
    const text = 'The bank accepts no answer through us. Answer it yourself, before its deadline.';
    return <Note tone="note">{text}</Note>;
  }
  if (evidence_submitted_at !== null || isRefused) {
    const text = isRefused
      ? 'The bank has refused the evidence, and accepts no other through us.'
      : 'The bank asks again, and accepts no further evidence through us.';
    const advice = isOver(dispute, now)
      ? 'The time to answer is over.'
      : 'Answer it yourself, before its deadline.';
    return <Note tone="note">{`${text} ${advice}`}</Note>;
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

function Deadline({ dispute }: { dispute: Dispute }) {
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
function AnswerForms({ dispute, takes, refused }: AnswerProps) {
  const { may, now } = useCall();
  const { _id, status, evidence_submitted_at, answers_refused = [], answering = null } = dispute;
  if (isDisputeClosed(status) || !may('disputes.answer')) return null;
  const path = `/disputes/${_id}`;
  if (answering !== null) return null;
  // Evidence that is stored may not have been sent: the same is taken again.
  const isAnswered = evidence_submitted_at !== null || answers_refused.includes('evidence');
  const mayAnswer = takes.evidence && !isAnswered && !isOver(dispute, now);
  return (
    <>
      {mayAnswer && (
        <Panel title="Send evidence">
          <p class="muted">
            {'The bank gets it once: you can neither change it later nor add to it. All texts ' +
              `together have at most ${EVIDENCE_LENGTH_MAX.toLocaleString('en')} characters, and no file.`}
          </p>
          {!refused && dispute.evidence !== undefined && (
            <Note tone="note">
              Evidence is stored, and may not have been sent: only the same texts are accepted.
            </Note>
          )}
          {refused && <Note tone="bad">{refused.note}</Note>}
          <PostForm path={`${path}/evidence`} button="Send evidence" busy="Sending…">
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
      )}
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
