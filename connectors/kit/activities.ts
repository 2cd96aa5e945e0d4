import type {
  CloseAnswer,
  ConnectorActivities,
  DisputeInstruction,
  DisputeQuestion,
  DisputeReply,
  Outdated,
  PayoutAnswer,
  PayoutInstruction,
  SessionAnswer,
  SessionInstruction,
} from '../contract/activities';
import { EvidenceTooLate } from '../contract/evidence';
import { type Attempt, beginAttempt } from '../contract/guard';
import { RecipientDeleted } from '../contract/recipients';
import type { ActivityDeps } from './activity-deps';
import { BankFailure } from './bank-client';
import type {
  AnswersDisputes,
  SendsPayouts,
  SendsRefunds,
  Settings,
  TakesPayments,
} from './definition';
import { assertEnvironment } from './environment';
import { AttemptInProgress } from './instructions';

/**
 * Wraps a connector's functions: each instruction has one effect, is compared with its document,
 * and is sent to the bank of its environment.
 * @see docs/connectors.md#one-instruction-one-effect
 */
export function createKitActivities<S extends Settings>(
  deps: ActivityDeps<S>,
): Partial<ConnectorActivities> {
  const { definition } = deps;
  const refunds = definition.sendRefund === undefined ? undefined : definition;
  const payouts = definition.sendPayout === undefined ? undefined : definition;
  const disputes = definition.submitEvidence === undefined ? undefined : definition;
  return {
    ...createPaymentActivities(deps),
    ...createRefundActivities(deps, refunds),
    ...createPayoutActivities(deps, payouts),
    ...createDisputeActivities(deps, disputes),
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
  const lookUpRefund = ({ refund_id }: { refund_id: string }, attempt = beginAttempt(deps.now)) =>
    lookUp(deps, `refund:${refund_id}`, () =>
      bank.lookUpRefund({ refund_id }, deps.buildTools(attempt)),
    );
  return {
    lookUpRefund: (input) => lookUpRefund(input),
    sendRefund: (input) =>
      send(deps, {
        ...{ id: `refund:${input.refund_id}`, livemode: input.livemode },
        lookUp: (attempt) => lookUpRefund(input, attempt),
        findOutdated: (attempt) => deps.findOutdated('refund', input, attempt),
        call: (attempt) => bank.sendRefund(input, deps.buildTools(attempt)),
      }),
  };
}

function createPayoutActivities<S extends Settings>(
  deps: ActivityDeps<S>,
  bank: SendsPayouts<S> | undefined,
): Pick<ConnectorActivities, 'sendPayout' | 'lookUpPayout' | 'cancelPayout'> {
  if (bank === undefined) {
    const refuse = refuseMissing('payouts');
    return { sendPayout: refuse, lookUpPayout: refuse };
  }
  const lookUpPayout = ({ payout_id }: { payout_id: string }, attempt = beginAttempt(deps.now)) =>
    lookUp(deps, `payout:${payout_id}`, () =>
      bank.lookUpPayout({ payout_id }, deps.buildTools(attempt)),
    );
  const sendPayout = async (input: PayoutInstruction, attempt: Attempt): Promise<PayoutAnswer> => {
    const { payout_id } = input;
    const recipient = () => deps.decryptRecipient(payout_id);
    const reference = () => deps.readReference(payout_id);
    try {
      return await bank.sendPayout(input, { ...deps.buildTools(attempt), recipient, reference });
    } catch (error) {
      if (error instanceof RecipientDeleted) return { outcome: 'refused', ...error.refusal };
      throw error instanceof BankFailure ? error : hideMessage(error);
    }
  };
  return {
    lookUpPayout: (input) => lookUpPayout(input),
    sendPayout: (input) =>
      send(deps, {
        ...{ id: `payout:${input.payout_id}`, livemode: input.livemode },
        lookUp: (attempt) => lookUpPayout(input, attempt),
        findOutdated: (attempt) => deps.findOutdated('payout', input, attempt),
        call: (attempt) => sendPayout(input, attempt),
      }),
    cancelPayout: async ({ payout_id }) => {
      const _id = `payout:${payout_id}`;
      const attempt = beginAttempt(deps.now);
      const found = await lookUpPayout({ payout_id }, attempt).catch((error: unknown) => {
        if (error instanceof AttemptInProgress) return undefined;
        throw error;
      });
      if (found === undefined) return { outcome: 'unknown' };
      if (found.outcome === 'refused') return { outcome: 'cancelled' };
      if (found.outcome === 'not_found') {
        // An attempt that has begun since may reach the bank.
        return { outcome: (await deps.instructions.cancel(_id)) ? 'cancelled' : 'unknown' };
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
  const find = (
    input: DisputeQuestion,
    ask: AnswersDisputes<S>['lookUpEvidence'],
    attempt = beginAttempt(deps.now),
  ) => lookUp(deps, input.instruction_id, () => ask(input, deps.buildTools(attempt)));
  const instruct = (
    input: DisputeInstruction,
    ask: AnswersDisputes<S>['lookUpEvidence'],
    call: (attempt: Attempt) => Promise<DisputeReply>,
  ) =>
    send(deps, {
      ...{ id: input.instruction_id, livemode: input.livemode },
      lookUp: (attempt) => find(input, ask, attempt),
      findOutdated: (attempt) => deps.findOutdated('dispute', input, attempt),
      call,
    });
  const submit = async (input: DisputeInstruction, attempt: Attempt): Promise<DisputeReply> => {
    const evidence = () => deps.decryptEvidence(input.dispute_id);
    try {
      return await bank.submitEvidence(input, { ...deps.buildTools(attempt), evidence });
    } catch (error) {
      if (error instanceof EvidenceTooLate) return { outcome: 'refused', ...error.refusal };
      throw error instanceof BankFailure ? error : hideMessage(error, 'The evidence');
    }
  };
  return {
    submitEvidence: (input) =>
      instruct(input, bank.lookUpEvidence, (attempt) => submit(input, attempt)),
    lookUpEvidence: (input) => find(input, bank.lookUpEvidence),
    acceptDispute: (input) =>
      instruct(input, bank.lookUpAcceptance, (attempt) =>
        bank.acceptDispute(input, deps.buildTools(attempt)),
      ),
    lookUpAcceptance: (input) => find(input, bank.lookUpAcceptance),
  };
}

/** Errors stay in Temporal's history, and this message may quote the recipient. */
function hideMessage(error: unknown, what = 'The payout'): Error {
  const name = error instanceof Error ? error.name : typeof error;
  const frames = error instanceof Error ? error.stack?.split('\n').filter(isFrame) : undefined;
  const hidden = new BankFailure(`${what} was not sent (${name}).`);
  hidden.stack = [`${hidden.name}: ${hidden.message}`, ...(frames ?? [])].join('\n');
  return hidden;
}

function isFrame(line: string): boolean {
  return /^ {4}at [^\n]*:\d+:\d+\)?$/.test(line);
}

interface Send<A> {
  id: string;
  livemode: boolean;
  lookUp: (attempt: Attempt) => Promise<A | { outcome: 'not_found' }>;
  findOutdated: (attempt: Attempt) => Promise<Outdated | undefined>;
  call: (attempt: Attempt) => Promise<A>;
}

/**
 * Sends an instruction once: looks it up, compares it with its document and records it before the
 * bank is called.
 * @throws AttemptInProgress while another attempt may reach the bank; Error of the bank or the
 *   guard
 */
async function send<S extends Settings, A extends { outcome: string }>(
  {
    definition,
    instructions,
    livemode,
    now,
  }: Pick<ActivityDeps<S>, 'definition' | 'instructions' | 'livemode' | 'now'>,
  { id, lookUp: find, findOutdated, call, ...input }: Send<A>,
): Promise<A | Outdated> {
  const attempt = beginAttempt(now);
  assertEnvironment(livemode, input.livemode);
  // A repeat changes nothing at the bank, so what has no record need not be looked up.
  const isFirst = definition.repeatsAnswers === true && (await instructions.get(id)) === null;
  const found = isFirst ? undefined : await find(attempt);
  if (found !== undefined && isFound(found)) return found;
  const outdated = await findOutdated(attempt);
  if (outdated !== undefined) return outdated;
  const existing = await instructions.begin(id, attempt.deadline);
  if (existing !== null) return existing.answer as A;
  const answer = await call(attempt);
  await instructions.answer(id, answer);
  return answer;
}

function isFound<A extends { outcome: string }>(found: A | { outcome: 'not_found' }): found is A {
  return found.outcome !== 'not_found';
}

/** @throws AttemptInProgress, Error when the bank does not know what it has accepted */
async function lookUp<A extends { outcome: string }>(
  { instructions, now }: Pick<ActivityDeps<never>, 'instructions' | 'now'>,
  id: string,
  ask: () => Promise<A>,
): Promise<A> {
  // Read before the bank is asked: an attempt that ends meanwhile may have reached it.
  const record = await instructions.get(id);
  const stored = record?.answer as A | null | undefined;
  if (stored?.outcome === 'refused') return stored;
  const found = await ask();
  if (found.outcome !== 'not_found') return found;
  if (stored) throw new Error('The bank does not find an instruction that it has answered.');
  if (record?.deadline && now() < record.deadline) throw new AttemptInProgress();
  return found;
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

/** @throws Error for a transfer of another amount than the payment's */
function assertAmount({ amount }: SessionInstruction, answer: SessionAnswer): void {
  if (answer.outcome === 'declined' || answer.instructions === undefined) return;
  if (answer.instructions.amount === amount) return;
  throw new Error('The instructions name another amount than that of the payment.');
}

function createPaymentActivities<S extends Settings>(
  deps: ActivityDeps<S>,
): Pick<ConnectorActivities, 'openSession'> | PaymentActivities {
  const { definition } = deps;
  if (definition.openSession === undefined) {
    return { openSession: async () => ({ outcome: 'declined', ...NOT_SUPPORTED }) };
  }
  return wrapPayments(deps, definition);
}

function wrapPayments<S extends Settings>(
  { buildTools, instructions, findOutdated, livemode, now }: ActivityDeps<S>,
  bank: TakesPayments<S>,
): PaymentActivities {
  const readSession = async (payment_id: string) => {
    const record = await instructions.get(`session:${payment_id}`);
    const answer = record?.answer as SessionAnswer | null | undefined;
    return { record, answer };
  };
  const closeAtBank = (
    payment_id: string,
    answer: SessionAnswer | null | undefined,
    attempt: Attempt,
  ) => {
    const bank_reference = answer?.outcome === 'opened' ? answer.bank_reference : null;
    return bank.closeSession({ payment_id, bank_reference }, buildTools(attempt));
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
      assertAmount(input, answer);
      if (await instructions.open(`session:${payment_id}`, answer)) return answer;
      // It was closed while the bank opened it.
      const { outcome } = await closeAtBank(payment_id, answer, attempt);
      return outcome === 'closed' ? CLOSED : answer;
    },
    closeSession: async ({ payment_id }): Promise<CloseAnswer> => {
      const attempt = beginAttempt(now);
      await instructions.close(`session:${payment_id}`);
      const { answer } = await readSession(payment_id);
      return await closeAtBank(payment_id, answer, attempt);
    },
    voidPayment: async (input) => {
      const attempt = beginAttempt(now);
      const { answer } = await readSession(input.payment_id);
      const bank_reference = answer?.outcome === 'opened' ? answer.bank_reference : null;
      return await bank.voidPayment({ ...input, bank_reference }, buildTools(attempt));
    },
    reversePayment: async (input) => {
      const attempt = beginAttempt(now);
      const id = input.instruction_id;
      const stored = (await instructions.get(id))?.answer;
      if (stored) return stored as Awaited<ReturnType<typeof bank.reversePayment>>;
      const outdated = await findOutdated('payment', input, attempt);
      if (outdated !== undefined) return outdated;
      const existing = await instructions.begin(id, attempt.deadline);
      if (existing !== null)
        return existing.answer as Awaited<ReturnType<typeof bank.reversePayment>>;
      const answer = await bank.reversePayment(input, buildTools(attempt));
      await instructions.answer(id, answer);
      return answer;
    },
  };
}
