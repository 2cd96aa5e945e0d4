import type { Evidence } from '../../src/domain/dispute/evidence';
import type { RecipientDetails } from '../../src/domain/payout/recipient';
import type {
  CloseAnswer,
  ConnectorActivities,
  DisputeInstruction,
  DisputeReply,
  Outdated,
  PayoutAnswer,
  PayoutInstruction,
  RefundAnswer,
  RefundInstruction,
  SessionAnswer,
} from '../contract/activities';
import { EvidenceTooLate } from '../contract/evidence';
import { type Attempt, beginAttempt, type InstructionGuard } from '../contract/guard';
import { RecipientDeleted } from '../contract/recipients';
import { BankFailure } from './bank-client';
import type {
  AnswersDisputes,
  ConnectorDefinition,
  SendsPayouts,
  SendsRefunds,
  Settings,
  TakesPayments,
  Tools,
} from './definition';
import { AttemptInProgress, type InstructionStore } from './instructions';

export interface ActivityDeps<S extends Settings> {
  definition: ConnectorDefinition<S>;
  /** Ends the tools of an activity with its attempt. */
  buildTools: (attempt: Attempt) => Tools<S>;
  instructions: InstructionStore;
  findOutdated: InstructionGuard['findOutdated'];
  decryptRecipient: (payout_id: string) => Promise<RecipientDetails>;
  decryptEvidence: (dispute_id: string) => Promise<Evidence>;
  readReference: (payout_id: string) => Promise<string | null>;
  livemode: boolean;
  now: () => Date;
}

/**
 * Wraps a connector's functions: each instruction has one effect, is compared with its document,
 * and is sent to the bank of its environment.
 * @see docs/connectors.md#one-instruction-one-effect
 */
export function createKitActivities<S extends Settings>(
  deps: ActivityDeps<S>,
): Partial<ConnectorActivities> {
  const { definition } = deps;
  return {
    ...createPaymentActivities(deps, definition.openSession === undefined ? undefined : definition),
    ...createRefundActivities(deps, definition.sendRefund === undefined ? undefined : definition),
    ...createPayoutActivities(deps, definition.sendPayout === undefined ? undefined : definition),
    ...createDisputeActivities(
      deps,
      definition.submitEvidence === undefined ? undefined : definition,
    ),
  };
}

function refuseMissing(what: string) {
  const message = `The bank has no ${what}.`;
  return async () => ({ outcome: 'refused' as const, code: 'not_supported', message });
}

function createRefundActivities<S extends Settings>(
  deps: ActivityDeps<S>,
  bank: SendsRefunds<S> | undefined,
): Pick<ConnectorActivities, 'sendRefund' | 'lookUpRefund'> {
  if (bank === undefined) {
    const refuse = refuseMissing('refunds');
    return { sendRefund: refuse, lookUpRefund: refuse };
  }
  const { send, lookUp } = wrapInstruction<
    S,
    { refund_id: string },
    RefundInstruction,
    RefundAnswer
  >(deps, {
    getId: ({ refund_id }) => `refund:${refund_id}`,
    lookUp: ({ refund_id }, tools) => bank.lookUpRefund({ refund_id }, tools),
    findOutdated: (input, attempt) => deps.findOutdated('refund', input, attempt),
    call: (input, attempt) => bank.sendRefund(input, deps.buildTools(attempt)),
  });
  return { sendRefund: send, lookUpRefund: (input) => lookUp(input) };
}

function createPayoutActivities<S extends Settings>(
  deps: ActivityDeps<S>,
  bank: SendsPayouts<S> | undefined,
): Pick<ConnectorActivities, 'sendPayout' | 'lookUpPayout' | 'cancelPayout'> {
  if (bank === undefined) {
    const refuse = refuseMissing('payouts');
    return { sendPayout: refuse, lookUpPayout: refuse };
  }
  const { send, lookUp } = wrapInstruction<
    S,
    { payout_id: string },
    PayoutInstruction,
    PayoutAnswer
  >(deps, {
    getId: ({ payout_id }) => `payout:${payout_id}`,
    lookUp: ({ payout_id }, tools) => bank.lookUpPayout({ payout_id }, tools),
    findOutdated: (input, attempt) => deps.findOutdated('payout', input, attempt),
    call: async (input, attempt): Promise<PayoutAnswer> => {
      const recipient = () => deps.decryptRecipient(input.payout_id);
      const reference = () => deps.readReference(input.payout_id);
      try {
        return await bank.sendPayout(input, { ...deps.buildTools(attempt), recipient, reference });
      } catch (error) {
        if (error instanceof RecipientDeleted) return { outcome: 'refused', ...error.refusal };
        throw hideMessage(error, 'The payout');
      }
    },
  });
  return {
    lookUpPayout: (input) => lookUp(input),
    sendPayout: send,
    cancelPayout: async ({ payout_id }) => {
      const attempt = beginAttempt(deps.now);
      const found = await lookUp({ payout_id }, attempt).catch((error: unknown) => {
        if (error instanceof AttemptInProgress) return undefined;
        throw error;
      });
      if (found === undefined) return { outcome: 'unknown' };
      if (found.outcome === 'refused') return { outcome: 'cancelled' };
      if (found.outcome === 'not_found') {
        // An attempt that has begun since may reach the bank.
        const isCancelled = await deps.instructions.cancel(`payout:${payout_id}`);
        return { outcome: isCancelled ? 'cancelled' : 'unknown' };
      }
      const answer = await bank.cancelPayout?.({ payout_id }, deps.buildTools(attempt));
      return answer ?? { outcome: 'too_late' };
    },
  };
}

type DisputeActivities = Required<
  Pick<
    ConnectorActivities,
    'submitEvidence' | 'lookUpEvidence' | 'acceptDispute' | 'lookUpAcceptance'
  >
>;

function createDisputeActivities<S extends Settings>(
  deps: ActivityDeps<S>,
  bank: AnswersDisputes<S> | undefined,
): DisputeActivities {
  if (bank === undefined) {
    const refuse = refuseMissing('answers to disputes');
    return {
      submitEvidence: refuse,
      lookUpEvidence: refuse,
      acceptDispute: refuse,
      lookUpAcceptance: refuse,
    };
  }
  const wrap = (
    lookUp: AnswersDisputes<S>['lookUpEvidence'],
    call: (input: DisputeInstruction, attempt: Attempt) => Promise<DisputeReply>,
  ) =>
    wrapInstruction(deps, {
      getId: ({ instruction_id }) => instruction_id,
      findOutdated: (input: DisputeInstruction, attempt) =>
        deps.findOutdated('dispute', input, attempt),
      lookUp,
      call,
    });
  const evidence = wrap(bank.lookUpEvidence, async (input, attempt) => {
    const read = () => deps.decryptEvidence(input.dispute_id);
    try {
      return await bank.submitEvidence(input, { ...deps.buildTools(attempt), evidence: read });
    } catch (error) {
      if (error instanceof EvidenceTooLate) return { outcome: 'refused', ...error.refusal };
      throw hideMessage(error, 'The evidence');
    }
  });
  const acceptance = wrap(bank.lookUpAcceptance, (input, attempt) =>
    bank.acceptDispute(input, deps.buildTools(attempt)),
  );
  return {
    submitEvidence: evidence.send,
    lookUpEvidence: (input) => evidence.lookUp(input),
    acceptDispute: acceptance.send,
    lookUpAcceptance: (input) => acceptance.lookUp(input),
  };
}

/** Errors stay in Temporal's history, and this message may quote the recipient. */
function hideMessage(error: unknown, what: string): Error {
  if (error instanceof BankFailure) return error;
  const name = error instanceof Error ? error.name : typeof error;
  const lines = (error instanceof Error ? error.stack?.split('\n') : undefined) ?? [];
  const frames = lines.filter((line) => /^ {4}at [^\n]*:\d+:\d+\)?$/.test(line));
  const hidden = new BankFailure(`${what} was not sent (${name}).`);
  hidden.stack = [`${hidden.name}: ${hidden.message}`, ...frames].join('\n');
  return hidden;
}

type NotFound = { outcome: 'not_found' };

/** Instruction of one kind. */
interface Kind<S extends Settings, Q, I extends Q, A> {
  /** Reads its ID, of the instruction or the question about it. */
  getId: (question: Q) => string;
  lookUp: (question: Q, tools: Tools<S>) => Promise<A | NotFound>;
  findOutdated: (input: I, attempt: Attempt) => Promise<Outdated | undefined>;
  call: (input: I, attempt: Attempt) => Promise<A>;
}

/** Wraps an instruction, which is sent once, and its look-up. */
function wrapInstruction<
  S extends Settings,
  Q,
  I extends Q & { livemode: boolean },
  A extends { outcome: string },
>(deps: ActivityDeps<S>, { getId, lookUp: ask, findOutdated, call }: Kind<S, Q, I, A>) {
  const { instructions, now } = deps;
  /** @throws AttemptInProgress, Error when the bank does not know what it has accepted */
  const lookUp = async (question: Q, attempt = beginAttempt(now)): Promise<A | NotFound> => {
    // Read before the bank is asked: an attempt that ends meanwhile may have reached it.
    const record = await instructions.get(getId(question));
    const stored = record?.answer as A | null | undefined;
    if (stored?.outcome === 'refused') return stored;
    const found = await ask(question, deps.buildTools(attempt));
    if (found.outcome !== 'not_found') return found;
    if (stored) throw new Error('The bank does not find an instruction that it has answered.');
    if (record?.deadline && now() < record.deadline) throw new AttemptInProgress();
    return found;
  };
  /**
   * Looks the instruction up, compares it with its document and records it before the bank is called.
   * @throws AttemptInProgress while another attempt may reach the bank; Error of the bank or the
   *   guard
   */
  const send = async (input: I): Promise<A | Outdated> => {
    const attempt = beginAttempt(now);
    assertEnvironment(deps.livemode, input.livemode);
    const id = getId(input);
    // A repeat changes nothing at the bank, so what has no record need not be looked up.
    const isFirst =
      deps.definition.repeatsAnswers === true && (await instructions.get(id)) === null;
    const found = isFirst ? undefined : await lookUp(input, attempt);
    if (found !== undefined && found.outcome !== 'not_found') return found as A;
    return await sendOnce(deps, id, attempt, {
      findOutdated: () => findOutdated(input, attempt),
      call: () => call(input, attempt),
    });
  };
  return { send, lookUp };
}

/** Calls the bank unless another attempt was answered; it is recorded before. */
async function sendOnce<A extends object>(
  { instructions }: Pick<ActivityDeps<never>, 'instructions'>,
  id: string,
  { deadline }: Attempt,
  {
    findOutdated,
    call,
  }: {
    findOutdated: () => Promise<Outdated | undefined>;
    call: () => Promise<A>;
  },
): Promise<A | Outdated> {
  const outdated = await findOutdated();
  if (outdated !== undefined) return outdated;
  const existing = await instructions.begin(id, deadline);
  if (existing !== null) return existing.answer as A;
  const answer = await call();
  await instructions.answer(id, answer);
  return answer;
}

/** @throws Error for an instruction of the other environment, which has another bank */
function assertEnvironment(isLive: boolean, livemode: boolean): void {
  if (isLive === livemode) return;
  const environment = isLive ? 'live' : 'the sandbox';
  throw new Error(`This connector serves ${environment} only: not instructed.`);
}

type PaymentActivities = Pick<
  ConnectorActivities,
  'openSession' | 'closeSession' | 'voidPayment' | 'reversePayment'
>;

const NOT_SUPPORTED = { code: 'not_supported', message: 'The bank takes no payments.' };
const CLOSED: SessionAnswer = {
  outcome: 'declined',
  code: 'session_closed',
  message: 'The payment was cancelled before the bank opened it.',
};

function createPaymentActivities<S extends Settings>(
  deps: ActivityDeps<S>,
  bank: TakesPayments<S> | undefined,
): Pick<ConnectorActivities, 'openSession'> | PaymentActivities {
  if (bank === undefined) {
    return { openSession: async () => ({ outcome: 'declined', ...NOT_SUPPORTED }) };
  }
  const { buildTools, instructions, findOutdated, livemode, now } = deps;
  const readSession = async (payment_id: string) => {
    const record = await instructions.get(`session:${payment_id}`);
    const answer = record?.answer as SessionAnswer | null | undefined;
    const bank_reference = answer?.outcome === 'opened' ? answer.bank_reference : null;
    return { record, answer, bank_reference };
  };
  return {
    openSession: async (input) => {
      const attempt = beginAttempt(now);
      const { payment_id } = input;
      assertEnvironment(livemode, input.livemode);
      const { record, answer: stored } = await readSession(payment_id);
      if (record?.closed) return CLOSED;
      if (stored) return stored;
      const answer = await bank.openSession(input, buildTools(attempt));
      const transfer = answer.outcome === 'opened' ? answer.instructions : undefined;
      if (transfer !== undefined && transfer.amount !== input.amount) {
        throw new Error('The instructions name another amount than that of the payment.');
      }
      if (await instructions.open(`session:${payment_id}`, answer)) return answer;
      // It was closed while the bank opened it.
      const bank_reference = answer.outcome === 'opened' ? answer.bank_reference : null;
      const session = { payment_id, bank_reference };
      const { outcome } = await bank.closeSession(session, buildTools(attempt));
      return outcome === 'closed' ? CLOSED : answer;
    },
    closeSession: async ({ payment_id }): Promise<CloseAnswer> => {
      const attempt = beginAttempt(now);
      await instructions.close(`session:${payment_id}`);
      const { bank_reference } = await readSession(payment_id);
      return await bank.closeSession({ payment_id, bank_reference }, buildTools(attempt));
    },
    voidPayment: async (input) => {
      const attempt = beginAttempt(now);
      const { bank_reference } = await readSession(input.payment_id);
      return await bank.voidPayment({ ...input, bank_reference }, buildTools(attempt));
    },
    reversePayment: async (input) => {
      const attempt = beginAttempt(now);
      const { instruction_id: id } = input;
      const stored = (await instructions.get(id))?.answer;
      if (stored) return stored as RefundAnswer;
      return await sendOnce(deps, id, attempt, {
        findOutdated: () => findOutdated('payment', input, attempt),
        call: () => bank.reversePayment(input, buildTools(attempt)),
      });
    },
  };
}
