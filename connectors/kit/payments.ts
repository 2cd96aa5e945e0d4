import type {
  CloseAnswer,
  ConnectorActivities,
  SessionAnswer,
  SessionInstruction,
} from '../contract/activities';
import { type Attempt, beginAttempt } from '../contract/guard';
import type { ActivityDeps } from './activity-deps';
import type { Settings, TakesPayments } from './definition';
import { assertEnvironment } from './environment';

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

export function createPaymentActivities<S extends Settings>(
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
