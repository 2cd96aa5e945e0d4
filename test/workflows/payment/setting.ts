import { WithStartWorkflowOperation } from '@temporalio/client';
import type { Workflow } from '@temporalio/common';
import type { BankCallback, PaymentCallbackName } from '../../../src/domain/callback/callback';
import type { PaymentAct } from '../../../src/domain/payment/payment';
import { verifyLedger } from '../../../src/ledger-check/verify';
import type { PaymentDocument } from '../../../src/store/payments';
import { readBalances } from '../../support/book';
import type { WorkflowSetting } from '../../support/workflow-setting';

export const ACT = { operator: 'mia', reason: 'the bank told me so' };

export async function storedPayment(
  { stores }: WorkflowSetting,
  id: string,
): Promise<PaymentDocument> {
  const payment = await stores.payments.get(id);
  if (payment === null) throw new Error('not stored');
  return payment;
}

const resumed = ({ queues }: WorkflowSetting, id: string) => ({
  workflowId: `payment:${id}`,
  taskQueue: queues.lifecycle,
  args: [{ payment_id: id, resume: true, request_id: 'late' }],
});

/** Starts the workflow again, as `orphan restart` does. */
export function resume(setting: WorkflowSetting, id: string) {
  return setting.env.client.workflow.start('payment', resumed(setting, id));
}

/** Reports something after the workflow has ended, as the connector's kit does. */
export async function reportAfterEnd(
  setting: WorkflowSetting,
  id: string,
  name: PaymentCallbackName,
  callback: BankCallback,
) {
  const { workflow } = setting.env.client;
  const started = await workflow.signalWithStart('payment', {
    ...resumed(setting, id),
    signal: name,
    signalArgs: [callback],
  });
  const handle = workflow.getHandle(started.workflowId);
  await handle.result();
  return handle;
}

/** Acts on a payment that has ended, as the command line does. */
export async function actAfterEnd(
  setting: WorkflowSetting,
  id: string,
  what: PaymentAct,
  act: object = ACT,
): Promise<unknown> {
  const startWorkflowOperation = new WithStartWorkflowOperation('payment', {
    ...resumed(setting, id),
    workflowIdConflictPolicy: 'USE_EXISTING',
  });
  return await setting.env.client.workflow.executeUpdateWithStart<Workflow, object, object[]>(
    what,
    {
      args: [act],
      startWorkflowOperation,
    },
  );
}

/** The balances of a merchant's book with what is open; minor units. */
export async function bookOf({ stores }: WorkflowSetting, account_id: string) {
  const posting = await stores.ledger.collections.postings.findOne({
    book: { $gte: `${account_id}:`, $lt: `${account_id};` },
    'legs.account': /^clearing/,
  });
  const at = await readBalances(stores, posting?.book ?? '');
  const clearing = posting?.legs.find(({ account }) => account.startsWith('clearing.'));
  return {
    available: at('balances.main.available'),
    clearing: at(clearing?.account ?? ''),
    suspense: at('suspense.late'),
    receivable: at('receivable.merchant'),
  };
}

/** Differences that `ledger verify` finds about one account, or one resource. */
export async function differencesOf({ mongo, stores }: WorkflowSetting, subject: string) {
  const { dbName } = stores.ledger.collections.books;
  const { differences } = await verifyLedger(mongo, dbName);
  return differences.filter((difference) => difference.subject.includes(subject));
}
