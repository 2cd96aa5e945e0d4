import type { WorkflowHandle } from '@temporalio/client';
import type { PaymentInput } from '../../../src/domain/payment/workflow';
import type { RefundInput, RefundState } from '../../../src/domain/refund/workflow';
import {
  openRefund,
  refundInput,
  type ScriptedBank,
  settledPayment,
  type WorkflowSetting,
  withBank,
} from '../../support/workflow-setting';

export interface Refunding {
  handle: WorkflowHandle;
  opened: RefundState;
  /** The refund's. */
  id: string;
  payment: PaymentInput;
}

/** Settles a payment of 1,050 at `bank`, opens a refund of it and runs `story` with both. */
export function refunding(
  setting: WorkflowSetting,
  bank: ScriptedBank,
  story: (refunding: Refunding) => Promise<void>,
  changes: Partial<RefundInput> = {},
): Promise<void> {
  return withBank(setting, bank, async (connector) => {
    const payment = await settledPayment(setting, connector);
    const input = refundInput(payment, changes);
    await story({ ...(await openRefund(setting, input)), id: input.refund_id, payment });
  });
}

export async function storedRefund({ stores }: WorkflowSetting, id: string) {
  const refund = await stores.refunds.get(id);
  if (refund === null) throw new Error('not stored');
  return refund;
}

/** Amounts that count as refunded, and that the merchant has; minor units. */
export async function moneyOf({ stores }: WorkflowSetting, payment: PaymentInput) {
  const { payment_id, account_id, livemode } = payment;
  const [balance] = await stores.ledger.balances(account_id, livemode);
  const stored = await stores.payments.get(payment_id);
  return { refunded: stored?.refunded, available: balance?.available };
}

/** The kinds of the postings about a resource, oldest first. */
export async function postingsOf({ stores }: WorkflowSetting, id: string): Promise<string[]> {
  return (await stores.ledger.forResource(id)).map(({ kind }) => kind);
}

/** Code with which an update or an opening was refused; undefined when it was not. */
export async function refusalOf(sent: Promise<unknown>) {
  const failure = await sent.then(
    () => undefined,
    (error: Error) => error.cause,
  );
  return failure instanceof Error && 'type' in failure
    ? { code: failure.type, message: failure.message }
    : undefined;
}
