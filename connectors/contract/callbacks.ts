import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { BankCallback, PaymentCallbackName } from '../../src/domain/callback';
import { paymentWorkflowId } from '../../src/domain/payment';
import { BankCallback as Payload } from '../../src/domain/wire/callback';
import type { CallbackStore } from '../../src/store/callbacks';
import type { PaymentDocument, PaymentStore } from '../../src/store/payments';
import { paymentLabels } from '../../src/workflow-labels';

export interface CallbackDeps {
  callbacks: CallbackStore;
  payments: Pick<PaymentStore, 'get'>;
  temporal: Client;
  /** Task queue of the lifecycles; tests have their own. */
  lifecycleQueue: string;
  now: () => Date;
}

export interface PaymentCallback {
  connector: string;
  payment_id: string;
  name: PaymentCallbackName;
  callback: BankCallback;
}

/** `parked`: no such payment at this connector; kept for an operator, nothing is started. */
export type CallbackReceipt = 'delivered' | 'duplicate' | 'parked';

/**
 * Takes in what a bank said: kept first, then signalled to the payment's workflow, which is started
 * again when it has ended. Safe to repeat with the same `callback_id`: it counts once.
 * @throws ZodError on a malformed callback; any error of MongoDB or Temporal: repeat the call.
 */
export async function deliverCallback(
  deps: CallbackDeps,
  { connector, payment_id, name, callback }: PaymentCallback,
): Promise<CallbackReceipt> {
  const body = Payload.parse(callback);
  const received_at = deps.now().toISOString();
  const resource = { resource: 'payment', resource_id: payment_id, name } as const;
  const kept = await deps.callbacks.keep({ connector, ...resource, body, received_at });
  if (kept.name !== name || kept.resource_id !== payment_id) {
    throw new Error(`callback_id ${body.callback_id} was used for another callback`);
  }
  if (kept.signalled_at !== null) return 'duplicate';

  const payment = await deps.payments.get(payment_id);
  const known =
    payment === null
      ? await signalUnwritten(deps, payment_id, name, body)
      : payment.connector === connector &&
        (await signalOrReopen(deps, payment, name, body, kept._id));
  if (!known) {
    await deps.callbacks.park(kept._id, 'no such payment at this connector');
    return 'parked';
  }
  await deps.callbacks.markSignalled(kept._id, deps.now().toISOString());
  return 'delivered';
}

/** Faster than the payment's own first write: its workflow may run already, else nothing does. */
async function signalUnwritten(
  deps: CallbackDeps,
  paymentId: string,
  name: PaymentCallbackName,
  body: BankCallback,
): Promise<boolean> {
  try {
    await deps.temporal.workflow.getHandle(paymentWorkflowId(paymentId)).signal(name, body);
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

async function signalOrReopen(
  deps: CallbackDeps,
  payment: PaymentDocument,
  name: PaymentCallbackName,
  body: BankCallback,
  requestId: string,
): Promise<boolean> {
  await deps.temporal.workflow.signalWithStart('payment', {
    workflowId: paymentWorkflowId(payment._id),
    taskQueue: deps.lifecycleQueue,
    signal: name,
    signalArgs: [body],
    args: [{ payment_id: payment._id, resume: true, request_id: requestId }],
    // Of the run that this starts when the payment has ended.
    ...paymentLabels(payment, payment.status),
  });
  return true;
}
