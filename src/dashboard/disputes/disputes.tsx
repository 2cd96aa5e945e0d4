import { DISPUTE_STATUSES, EVIDENCE_LENGTH_MAX } from '../../domain/dispute/dispute';
import { explainReason } from '../../domain/dispute/reason';
import { decimalMoney, formatMoney } from '../../domain/money';
import { PAYMENT_METHOD_IDS } from '../../domain/payment/catalog';
import { acceptDispute, isSupported, submitEvidence } from '../../service/money/disputes';
import { readDispute } from '../../service/money/resources/read';
import { actOnMoney, redirect } from '../frame/form';
import { When } from '../frame/parts';
import {
  type Answer,
  type Call,
  type PageDeps,
  postRoute,
  type Route,
  viewRoute,
} from '../frame/route';
import { fieldColumns } from '../resources/csv';
import { commonColumns, methodName, type ResourceList } from '../resources/kinds';
import { listRoutes } from '../resources/list';
import { answerResource } from '../resources/resource-page';
import {
  AnswerForms,
  Deadline,
  findDeadline,
  formatMoved,
  type RefusedEvidence,
  readEvidence,
  StandNote,
} from './answer';

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
      const { id = '' } = call.params;
      const { evidence, refused } = readEvidence(call);
      if (evidence === undefined) return await show(call, deps, refused);
      if ((await findDispute(call, deps)) === null) return 'not_found';
      const path = `/disputes/${id}`;
      return await actOnMoney(deps, call, {
        act: 'dispute.answered',
        target: id,
        run: async () => {
          await submitEvidence(deps, call.scope, id, evidence);
          return {};
        },
        success: () => [path, 'The evidence is sent. Now the bank decides.'],
        // What was written may be long, and is stored nowhere yet.
        unknown: () => {
          const note =
            'It is not known yet whether the evidence was sent. Send it again as it is: it is not ' +
            'sent twice.';
          return show(call, deps, { form: call.form, faults: {}, note, status: 503 });
        },
        refusedPath: path,
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
      const { id = '' } = call.params;
      if ((await findDispute(call, deps)) === null) return 'not_found';
      const path = `/disputes/${id}`;
      return await actOnMoney(deps, call, {
        act: 'dispute.accepted',
        target: id,
        run: async () => {
          await acceptDispute(deps, call.scope, id);
          return {};
        },
        success: () => [path, 'The dispute is accepted.'],
        unknown: () => {
          const text =
            'It is not known yet whether the dispute was accepted. Look at its status, and try again.';
          return redirect(call, path, 'bad', text);
        },
        refusedPath: path,
      });
    },
  }),
];

function findDispute({ scope, params }: Call, { stores }: Pick<PageDeps, 'stores'>) {
  return stores.disputes.find(params['id'] ?? '', scope.account_id, scope.livemode);
}

async function show(call: Call, deps: PageDeps, refused?: RefusedEvidence): Promise<Answer> {
  const result = await readDispute(deps, call.scope, call.params['id'] ?? '');
  if (result === null) return 'not_found';
  const { resource: dispute, payment, timeline } = result;
  const { payment_id } = dispute;
  const takes = {
    evidence: await isSupported(deps, dispute, 'evidence'),
    acceptance: await isSupported(deps, dispute, 'acceptance'),
  };
  const answer = answerResource(call, {
    title: `Dispute of a payment of ${formatMoney(payment.amount, payment.currency)}`,
    status: dispute.status,
    attention: dispute.attention,
    timeline,
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
