import type {
  DisputeInstruction,
  DisputeLookup,
  DisputeQuestion,
  DisputeReply,
  Evidence,
} from '../kit';
import { buildFailure, type Params, readStripe, type StripeTools } from './api';
import { OPEN_DISPUTES } from './codes';
import { DisputeHead } from './objects';
import { sendOnce } from './sending';

type IsDone = (dispute: DisputeHead, instruction_id: string) => boolean;

const ACCEPTED = { outcome: 'accepted' } as const;

/** Longest text of evidence at Stripe. */
const TEXT_MAX = 20_000;

const isLost: IsDone = ({ status }) => status === 'lost';

/** Whether the evidence at Stripe is ours: somebody may answer in Stripe's dashboard, too. */
const isSubmitted: IsDone = ({ metadata, evidence_details: { submission_count } }, id) =>
  metadata?.['instruction_id'] === id && submission_count > 0;

const readHead = (tools: StripeTools, id: string) =>
  readStripe(tools, { path: `disputes/${encodeURIComponent(id)}` }, DisputeHead);

const lookUpBy =
  (isDone: IsDone) =>
  async (
    { bank_dispute_id, instruction_id }: DisputeQuestion,
    tools: StripeTools,
  ): Promise<DisputeLookup> => {
    const dispute = await readHead(tools, bank_dispute_id);
    return isDone(dispute, instruction_id) ? ACCEPTED : { outcome: 'not_found' };
  };
export const lookUpEvidence = lookUpBy(isSubmitted);
export const lookUpAcceptance = lookUpBy(isLost);

async function send(
  input: DisputeInstruction,
  tools: StripeTools,
  { act = '', params, isDone }: { act?: string; params: Params; isDone: IsDone },
): Promise<DisputeReply> {
  const { instruction_id: id, bank_dispute_id } = input;
  const find = async () => {
    const dispute = await readHead(tools, bank_dispute_id);
    return isDone(dispute, id) ? dispute : undefined;
  };
  const path = `disputes/${encodeURIComponent(bank_dispute_id)}${act}`;
  const own = { id, path, schema: DisputeHead, buildParams: () => params, find };
  const { problem } = await sendOnce(tools, own);
  if (problem === undefined) return ACCEPTED;
  const dispute = await readHead(tools, bank_dispute_id);
  // An earlier attempt may have done it.
  if (isDone(dispute, id)) return ACCEPTED;
  if (dispute.status in OPEN_DISPUTES && !dispute.evidence_details.past_due) {
    throw buildFailure(problem);
  }
  const message = 'Stripe takes no answer to this dispute any more.';
  return { outcome: 'refused', code: 'dispute_closed', message };
}

/** Submits the evidence, which Stripe passes on at once. */
export function submitEvidence(input: DisputeInstruction, tools: StripeTools, evidence: Evidence) {
  const { explanation, customer_reference: customer, refund_reference: refund } = evidence;
  // References that Stripe has no field for stand before the explanation.
  const texts = [customer && `Customer: ${customer}`, refund && `Refund: ${refund}`, explanation];
  const params = {
    evidence: {
      uncategorized_text: texts.filter(Boolean).join('\n').slice(0, TEXT_MAX),
      shipping_date: evidence.shipped_at ?? undefined,
      shipping_carrier: evidence.carrier ?? undefined,
      shipping_tracking_number: evidence.tracking_number ?? undefined,
    },
    submit: 'true',
    metadata: { instruction_id: input.instruction_id },
  };
  return send(input, tools, { params, isDone: isSubmitted });
}

/** Gives in: Stripe calls the dispute lost. */
export function acceptDispute(input: DisputeInstruction, tools: StripeTools) {
  return send(input, tools, { act: '/close', params: {}, isDone: isLost });
}
