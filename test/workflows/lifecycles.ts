import { randomBytes, randomUUID } from 'node:crypto';
import { Client, WithStartWorkflowOperation, type WorkflowHandle } from '@temporalio/client';
import type { Workflow } from '@temporalio/common';
import { createLogger } from '../../src/base/log';
import type { CallbackName, CallbackResource } from '../../src/domain/banks/callback';
import type { PaymentInput } from '../../src/domain/payment/payment';
import type { PayoutInput, PayoutState } from '../../src/domain/payout/payout';
import type { RefundInput } from '../../src/domain/refund/refund';
import { verifyLedger } from '../../src/ledger-check/verify';
import { type Documents, LIFECYCLES } from '../../src/lifecycles';
import type { Stores } from '../../src/store';
import { messages } from '../../workflows/payment/state';
import { operatorsAudit } from '../support/audit';
import { readBalances } from '../support/book';
import { eventually } from '../support/eventually';
import { FREED_MS_MAX } from '../support/skipping-server';
import {
  callback,
  fund,
  open,
  openPayment,
  openPayout,
  openRefund,
  paymentInput,
  payoutInput,
  recordPaymentKey,
  recordPayoutKey,
  refundInput,
  type ScriptedBank,
  scriptedBank,
  settledPayment,
  useWorkflowSetting,
  type WorkflowSetting,
  withBank,
} from '../support/workflow-setting';

/** Operator's input of each act, unless a test gives more. */
export const ACT = { operator: 'ada', reason: 'confirmed by telephone' };

/** The workflows for one file's tests, and stories of one payment, refund or payout each. */
export function useLifecycles(...args: Parameters<typeof useWorkflowSetting>) {
  const setting = useWorkflowSetting(...args);

  /** Opens a payment of 1,050 at `bank`, and runs the story with it. */
  const withPayment = (
    bank: ScriptedBank,
    story: (payment: TrackedPayment) => Promise<unknown>,
    changes: Partial<PaymentInput> = {},
  ) =>
    withBank(setting, bank, async (connector) => {
      const input = paymentInput(connector, changes);
      const { handle, opened } = await openPayment(setting, input);
      await story({ ...trackPayment(setting, input, handle), ...bank, opened });
    });

  /** As `withPayment`, where workers of its own write to other stores. */
  const withPaymentOn = async (
    stores: Stores,
    story: (payment: Omit<TrackedPayment, keyof ScriptedBank | 'opened'>) => Promise<unknown>,
  ) => {
    const queue = `${setting.queues.lifecycle}-${randomUUID()}`;
    const stop = await setting.startWorkers(queue, stores);
    const opening = withBank(setting, scriptedBank(), async (connector) => {
      const input = paymentInput(connector);
      await recordPaymentKey(setting, input);
      const { payment_id } = input;
      const { handle } = await open(setting, 'payment', payment_id, input, messages.open, queue);
      await story(trackPayment(setting, input, handle));
    });
    await opening.finally(stop);
  };

  /** Settles a payment of 1,050 at `bank`, opens a refund of it, and runs the story with both. */
  const withRefund = (
    bank: ScriptedBank,
    story: (refund: TrackedRefund) => Promise<unknown>,
    changes: Partial<RefundInput> = {},
  ) =>
    withBank(setting, bank, async (connector) => {
      const payment = await settledPayment(setting, connector);
      const input = refundInput(payment, changes);
      const { handle, opened } = await openRefund(setting, input);
      await story({ ...trackRefund(setting, input.refund_id, payment, handle), ...bank, opened });
    });

  /** Funds an account, opens a payout of 1,000, and runs the story when the bank has answered. */
  const withPayout = (
    bank: ScriptedBank,
    story: (payout: TrackedPayout & { opened: PayoutState }) => Promise<unknown>,
    changes: Partial<PayoutInput> = {},
  ) =>
    withBank(setting, bank, async (connector) => {
      const { input, opened } = await openAccepted(
        setting,
        connector,
        changes,
        async (asked) => (await openPayout(setting, asked)).opened,
      );
      const payout = { ...trackPayout(setting, input), ...bank };
      await story({ ...payout, opened: await waitForAnswer(payout, opened) });
    });

  /** As `withPayout`, while nobody waits for the bank to send it. */
  const withUnsentPayout = (
    bank: ScriptedBank,
    story: (payout: TrackedPayout) => Promise<unknown>,
    changes: Partial<PayoutInput> = {},
  ) =>
    withBank(setting, bank, async (connector) => {
      const { input } = await openAccepted(setting, connector, changes, async (asked) => {
        await recordPayoutKey(setting, asked);
        await setting.env.client.workflow.start('payout', {
          workflowId: `payout:${asked.payout_id}`,
          taskQueue: setting.queues.lifecycle,
          args: [asked],
        });
      });
      await story({ ...trackPayout(setting, input), ...bank });
    });

  /** Stories of a resource in a status. */
  const withStatus = {
    awaiting_customer: (story: (payment: TrackedPayment) => Promise<unknown>) =>
      withPayment(scriptedBank(), async (payment) => {
        await isAt(payment.handle, 'awaiting_customer');
        await story(payment);
      }),
    authorized: (story: (payment: TrackedPayment) => Promise<unknown>) =>
      withPayment(scriptedBank(), async (payment) => {
        await payment.signal('authorized');
        await isAt(payment.handle, 'authorized');
        await story(payment);
      }),
    /** The bank has accepted it, and its name for it is stored. */
    processing: (story: (refund: TrackedRefund) => Promise<unknown>) =>
      withRefund(scriptedBank(), async (refund) => {
        await refund.becomes({ bank_reference: `ref-${refund.id}` });
        await story(refund);
      }),
    submitted: (story: (payout: TrackedPayout) => Promise<unknown>) =>
      withUnsentPayout(submittingBank(), async (payout) => {
        // The details tell of the answer before its transition is written.
        await isAt(payout.handle, 'submitted');
        await story(payout);
      }),
    sent: (story: (payout: TrackedPayout) => Promise<unknown>) => withPayout(scriptedBank(), story),
  };

  /** Builds what activities, services and the API's client need, to call them next to a workflow. */
  const buildDeps = () => {
    const { mongo, stores, env, queues } = setting;
    return {
      ...{ mongo, stores, temporal: env.client, client: env.client },
      ...{ webhookQueue: queues.webhooks, lifecycleQueue: queues.lifecycle },
      ...{ audit: operatorsAudit(stores), log: createLogger('test', 'silent') },
      ...{ now: () => new Date(), payTokenKey: randomBytes(32) },
    };
  };

  const stories = { withPayment, withPaymentOn, withRefund, withPayout, withUnsentPayout };
  return { setting, buildDeps, withStatus, ...stories };
}

const PAYOUTS_MAX = 20;

/**
 * Opens a payout of a funded account, and another where a busy machine has not accepted it in its
 * seconds.
 * @returns the accepted one, with what `open` gave
 */
async function openAccepted<Opened>(
  setting: WorkflowSetting,
  connector: string,
  changes: Partial<PayoutInput>,
  open: (input: PayoutInput) => Promise<Opened>,
): Promise<{ input: PayoutInput; opened: Opened | undefined }> {
  for (let left = PAYOUTS_MAX; ; left -= 1) {
    const input = payoutInput(connector, changes);
    await fund(setting, input);
    const opened = await open(input).catch((error: unknown) => {
      if (Object(error).cause?.type !== 'temporarily_unavailable') throw error;
      return undefined;
    });
    if (await isAccepted(setting, input)) return { input, opened };
    if (left === 1) throw new Error('No payout was accepted.');
  }
}

/** Waits until it is stored, or its workflow has ended without. */
async function isAccepted(
  { env, stores }: WorkflowSetting,
  { payout_id }: PayoutInput,
): Promise<boolean> {
  const handle = env.client.workflow.getHandle(`payout:${payout_id}`);
  return await eventually('the acceptance of the payout', async () => {
    // Asked first: what is accepted late may end at once.
    const { status } = await handle.describe();
    if ((await stores.payouts.get(payout_id)) !== null) return { accepted: true };
    return status.name !== 'RUNNING' && { accepted: false };
  }).then(({ accepted }) => accepted);
}

/** A bank that queues each payout. */
export function submittingBank(): ScriptedBank {
  const sendPayout = async () => ({ outcome: 'submitted', bank_reference: 'queue-1' }) as const;
  return scriptedBank({ sendPayout });
}

/** Waits until the workflow itself says so. */
export async function isAt(handle: WorkflowHandle, status: string): Promise<void> {
  await eventually(status, async () => {
    const state = await handle.query<{ status: string }>('state');
    return state.status === status;
  });
}

export type TrackedPayment = ReturnType<typeof trackPayment> &
  ScriptedBank &
  Pick<Awaited<ReturnType<typeof openPayment>>, 'opened'>;
export type TrackedRefund = ReturnType<typeof trackRefund> &
  ScriptedBank &
  Pick<Awaited<ReturnType<typeof openRefund>>, 'opened'>;
export type TrackedPayout = ReturnType<typeof trackPayout> & ScriptedBank;

type Kind = CallbackResource;

/** Queries, signals and updates of every resource in a test. */
export type Tracked = ReturnType<typeof track<'payment' | 'refund' | 'payout'>> &
  ScriptedBank & { money: () => Promise<object> };

interface Change {
  status?: string;
  attention?: string | null;
  bank_reference?: string;
  amount_received?: string;
  amount?: number;
  fee?: number;
}

/** The resource's workflow and record, as a story asks and changes them. */
export function track<K extends Kind>(
  kind: K,
  { mongo, stores, env, queues }: WorkflowSetting,
  id: string,
  account_id: string,
  handle: WorkflowHandle,
  read: (id: string) => Promise<Documents[K] | null>,
) {
  const { workflowId, workflowType } = LIFECYCLES[kind];
  const resumed = {
    workflowId: workflowId(id),
    taskQueue: queues.lifecycle,
    args: [{ [`${kind}_id`]: id, resume: true, request_id: 'late' }],
  };
  const stored = async (): Promise<Documents[K]> => {
    const document = await read(id);
    if (document === null) throw new Error('not stored');
    return document;
  };
  /** An operator's update, with `ACT` unless the arguments are named. */
  const act = (update: string, ...args: [] | [unknown]) =>
    handle.executeUpdate<object, [unknown]>(update, { args: args.length === 0 ? [ACT] : args });
  /** As `act`, sent with a start: for a resource whose workflow has ended. */
  const actAfterEnd = async (update: string, args: object = ACT): Promise<unknown> =>
    await env.client.workflow.executeUpdateWithStart<Workflow, object, object[]>(update, {
      args: [args],
      startWorkflowOperation: new WithStartWorkflowOperation(workflowType, {
        ...resumed,
        workflowIdConflictPolicy: 'USE_EXISTING',
      }),
    });
  /** Reports as the connector's kit does: the workflow is started again when it has ended. */
  const signalAfterEnd = async (name: CallbackName, facts: object = {}) => {
    const report = { signal: name, signalArgs: [callback(facts)] };
    await env.client.workflow.signalWithStart(workflowType, { ...resumed, ...report });
    return handle;
  };
  return {
    id,
    account_id,
    handle,
    stored,
    attention: async () => (await stored()).attention,
    /** Waits until the record says so. */
    becomes: (change: Change) =>
      eventually(
        `${kind} ${JSON.stringify(change)}`,
        async () => {
          const document = await stored();
          const facts = Object.entries(change);
          return facts.every(([name, value]) => Reflect.get(document, name) === value) && document;
        },
        FREED_MS_MAX,
      ),
    /** Reports as the bank does, under a new callback id. */
    signal: (name: CallbackName, facts: object = {}) => handle.signal(name, callback(facts)),
    /** Reports what ends the workflow. @returns the result of the workflow */
    endBy: async (name: CallbackName, facts: object = {}): Promise<object> => {
      await handle.signal(name, callback(facts));
      return await handle.result();
    },
    act,
    refusal: (update: string, ...args: [] | [unknown]) => refusalOf(act(update, ...args)),
    signalAfterEnd,
    /** As `signalAfterEnd`, until the workflow has ended again. */
    report: async (name: CallbackName, facts: object = {}): Promise<object> =>
      await (await signalAfterEnd(name, facts)).result(),
    actAfterEnd,
    refusalAfterEnd: (update: string, args?: object) => refusalOf(actAfterEnd(update, args)),
    /** Starts the workflow again, as `orphan restart` does. */
    restart: () => env.client.workflow.start(workflowType, resumed),
    shows: (words: string) => shows(handle, words),
    /** Oldest first. */
    eventTypes: async () => {
      const about = { account_id, livemode: false, resource_id: id, limit: 50 };
      return (await stores.events.list(about)).map(({ type }) => type).reverse();
    },
    /** Kinds of the journal entries about it, oldest first. */
    entryKinds: async () => (await stores.ledger.forResource(id)).map(({ kind }) => kind),
    /** Why callbacks about it were not applied. */
    unapplied: async () => {
      const rows = await stores.callbacks.forResource(id);
      return rows.map(({ name, unapplied }) => `${name}: ${unapplied}`);
    },
    /** Differences that `ledger verify` finds about it, or about another subject. */
    differences: async (subject = id) => {
      const { differences } = await verifyLedger(mongo, stores.ledger.collections.books.dbName);
      return differences.filter((difference) => difference.subject.includes(subject));
    },
  };
}

export function trackPayment(
  setting: WorkflowSetting,
  input: PaymentInput,
  handle: WorkflowHandle,
) {
  const { stores } = setting;
  const { payment_id, account_id } = input;
  return {
    ...track('payment', setting, payment_id, account_id, handle, stores.payments.get),
    input,
    /** The merchant's book with what is pending; minor units. */
    money: async () => {
      const entry = await stores.ledger.collections.entries.findOne({
        book: { $gte: `${account_id}:`, $lt: `${account_id};` },
        'lines.account': /^clearing/,
      });
      const at = await readBalances(stores, entry?.book ?? '');
      const clearing = entry?.lines.find(({ account }) => account.startsWith('clearing.'));
      return {
        available: at('balances.main.available'),
        clearing: at(clearing?.account ?? ''),
        suspense: at('suspense.late'),
        receivable: at('receivable.merchant'),
      };
    },
  };
}

export function trackRefund(
  setting: WorkflowSetting,
  refund_id: string,
  payment: PaymentInput,
  handle: WorkflowHandle,
) {
  const { stores } = setting;
  return {
    ...track('refund', setting, refund_id, payment.account_id, handle, stores.refunds.get),
    payment,
    money: () => readRefunded(setting, payment),
  };
}

/** Amounts that count as refunded, and that the merchant has; minor units. */
export async function readRefunded({ stores }: WorkflowSetting, payment: PaymentInput) {
  const { payment_id, account_id, livemode } = payment;
  const [balance] = await stores.ledger.balances(account_id, livemode);
  const stored = await stores.payments.get(payment_id);
  return { refunded: stored?.refunded, available: balance?.available };
}

export function trackPayout(setting: WorkflowSetting, input: PayoutInput) {
  const { stores, env } = setting;
  const { payout_id, account_id, currency, connector } = input;
  // This client does not skip time while it waits for a result: with nothing left to wait for, the
  // time-skipping server would skip ten years, to where runs time out.
  const { connection, namespace = 'default' } = env;
  const handle = new Client({ connection, namespace }).workflow.getHandle(`payout:${payout_id}`);
  return {
    ...track('payout', setting, payout_id, account_id, handle, stores.payouts.get),
    input,
    /** Balances of the account; minor units. */
    money: async () => {
      const at = await readBalances(stores, `${account_id}:sandbox:${currency}`);
      return {
        available: at('balances.main.available') ?? 0,
        reserved: at('balances.main.reserved') ?? 0,
        fees: at('income.fees') ?? 0,
        atBank: at(`clearing.${connector}`) ?? 0,
      };
    },
  };
}

/** Books of a payout of 1,000 with its fee of 25 in each of its states. */
export const MONEY = {
  untouched: { available: 10_000, reserved: 0, fees: 0, atBank: 0 },
  reserved: { available: 8_975, reserved: 1_025, fees: 0, atBank: 0 },
  captured: { available: 8_975, reserved: 0, fees: 25, atBank: 1_000 },
  returned: { available: 9_975, reserved: 0, fees: 25, atBank: 0 },
} as const;

/** Longest that the answer of a bank is waited for. */
const ANSWER_MS_MAX = 60_000;

/** The payout with the bank's answer, where one comes: on a busy machine the API answers before it. */
async function waitForAnswer(
  payout: TrackedPayout,
  opened: PayoutState | undefined,
): Promise<PayoutState> {
  if (opened !== undefined && opened.status !== 'created') return opened;
  const isAnswered = async () => (await payout.stored()).status !== 'created';
  await eventually('the answer of the bank', isAnswered, ANSWER_MS_MAX).catch(() => undefined);
  const { status, version } = await payout.stored();
  return { payout_id: payout.id, status, version };
}

/** Waits until the Temporal UI's details of the workflow say so. */
export async function shows(handle: WorkflowHandle, words: string): Promise<string> {
  return await eventually(`the details to say "${words}"`, async () => {
    const metadata = await handle.query<{ currentDetails?: string }>(
      '__temporal_workflow_metadata',
    );
    const details = metadata.currentDetails ?? '';
    return details.includes(words) && details;
  });
}

const QUESTIONS_MAX = 10;

/** Repeats work while a busy machine fails it. */
async function repeatWhile<T>(isSlow: (error: unknown) => boolean, work: () => Promise<T>) {
  for (let left = QUESTIONS_MAX; ; left -= 1) {
    try {
      return await work();
    } catch (error) {
      if (!isSlow(error) || left === 1) throw error;
    }
  }
}

/** Sends an act again when the bank could not be asked in the seconds that it has for an answer. */
export const unlessUnreachable = <T>(act: () => Promise<T>): Promise<T> =>
  repeatWhile((error) => Object(error).cause?.type === 'bank_unreachable', act);

/** Asks the API's client again where a busy machine could not answer it in time. */
export const unlessUnavailable = <T>(ask: () => Promise<T>): Promise<T> =>
  repeatWhile((error) => Object(error).code === 'temporarily_unavailable', ask);

/** Code and message with which an update or an opening was refused; undefined when it was not. */
export async function refusalOf(sent: Promise<unknown>) {
  const failure = await sent.then(
    () => undefined,
    (error: Error) => error.cause,
  );
  return failure instanceof Error && 'type' in failure
    ? { code: failure.type, message: failure.message }
    : undefined;
}
