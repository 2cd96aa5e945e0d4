import type { Client } from '@temporalio/client';
import type { CallbackResource } from '../domain/callback';
import { isFinal, PAYMENT_STATUSES, paymentWorkflowId } from '../domain/payment';
import { isEnded, PAYOUT_STATUSES, payoutWorkflowId } from '../domain/payout';
import { isFinalRefund, REFUND_STATUSES, refundWorkflowId } from '../domain/refund';
import type { Stores } from '../store';
import type { PaymentDocument } from '../store/payments';
import type { PayoutDocument } from '../store/payouts';
import type { RefundDocument } from '../store/refunds';
import { lifecycleLabels } from '../temporal/labels';
import { CliFailure } from './failure';

export type ResourceDocument = PaymentDocument | RefundDocument | PayoutDocument;
export type ResourceStores = Pick<Stores, 'payments' | 'refunds' | 'payouts'>;

const FINAL = 'a final state is never left';

/** What operators see, and can do, of each kind of resource. */
export const RESOURCES = {
  payment: {
    collection: 'payments',
    get: ({ payments }: ResourceStores, id: string) => payments.get(id),
    workflowId: paymentWorkflowId,
    resume: (payment_id: string) => ({ payment_id }),
    /** States with a workflow that runs. */
    inFlight: PAYMENT_STATUSES.filter((status) => !isFinal(status)),
    /** Updates of its workflow. */
    acts: ['mark_settled', 'mark_failed', 'snooze'],
    /** Why nothing can be done once it has ended; undefined where its workflow decides. */
    ended: FINAL,
  },
  refund: {
    collection: 'refunds',
    get: ({ refunds }: ResourceStores, id: string) => refunds.get(id),
    workflowId: refundWorkflowId,
    resume: (refund_id: string) => ({ refund_id }),
    inFlight: REFUND_STATUSES.filter((status) => !isFinalRefund(status)),
    acts: ['mark_settled', 'mark_failed', 'snooze'],
    ended: FINAL,
  },
  payout: {
    collection: 'payouts',
    get: ({ payouts }: ResourceStores, id: string) => payouts.get(id),
    workflowId: payoutWorkflowId,
    resume: (payout_id: string) => ({ payout_id }),
    inFlight: PAYOUT_STATUSES.filter((status) => !isEnded(status)),
    acts: ['resubmit', 'mark_failed', 'mark_completed', 'mark_returned', 'snooze'],
    // A completed one may still come back.
    ended: undefined,
  },
} as const satisfies Record<CallbackResource, ResourceRule>;

interface ResourceRule {
  collection: string;
  get: (stores: ResourceStores, id: string) => Promise<ResourceDocument | null>;
  workflowId: (id: string) => string;
  resume: (id: string) => object;
  inFlight: readonly string[];
  acts: readonly string[];
  ended: string | undefined;
}

/** One kind's rules under their general type. */
export function rulesOf(kind: CallbackResource): ResourceRule {
  return RESOURCES[kind];
}

export const KINDS = ['payment', 'refund', 'payout'] as const;

export function isInFlight(kind: CallbackResource, status: string): boolean {
  return rulesOf(kind).inFlight.includes(status);
}

/** @throws CliFailure `payment_not_found`, `refund_not_found`, `payout_not_found` */
export async function findResource(
  stores: ResourceStores,
  kind: CallbackResource,
  id: string,
): Promise<ResourceDocument> {
  const found = await rulesOf(kind).get(stores, id);
  if (found !== null) return found;
  throw new CliFailure(`${kind}_not_found`, `There is no ${kind} ${id}.`);
}

/** Facts of a resource that its workflow is started and labelled with. */
export type Startable = { _id: string } & Parameters<typeof lifecycleLabels>[1] & {
    status: ResourceDocument['status'];
  };

/** Starts the workflow of a resource that is stored, or joins the one that runs. */
export function resumption(
  kind: CallbackResource,
  resource: Startable,
  taskQueue: string,
  request_id: string,
) {
  const { workflowId, resume } = rulesOf(kind);
  return {
    workflowId: workflowId(resource._id),
    taskQueue,
    args: [{ ...resume(resource._id), resume: true, request_id }],
    workflowIdConflictPolicy: 'USE_EXISTING' as const,
    ...lifecycleLabels(kind, resource, resource.status),
  };
}

/** What acting on workflows takes. */
export interface WorkflowDeps {
  temporal: Client;
  /** Another queue than the product's, in tests. */
  lifecycleQueue?: string;
}
