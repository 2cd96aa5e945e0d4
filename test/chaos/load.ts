import type { PaymentCallbackName } from '../../src/domain/banks/callback';
import type { PaymentStatus } from '../../src/domain/payment/payment';
import { gate } from '../support/gate';
import { type Answer, idealPayment } from '../support/http';
import type { PatientClient, Request } from './patient-client';

/** State that each kind of request leads to: an event of its bank, or a cancellation. */
const LEADS_TO = {
  authorized: 'authorized',
  settled: 'settled',
  failed: 'failed',
  cancel: 'cancelled',
} as const satisfies Partial<Record<PaymentCallbackName | 'cancel', PaymentStatus>>;

type Step = keyof typeof LEADS_TO;

/** Dealt out in turn: half go the usual way. */
const USUAL: readonly Step[] = ['authorized', 'settled'];
const PLANS: readonly (readonly Step[])[] = [
  ...[USUAL, ['settled'] as const, USUAL, ['cancel'] as const],
  ...[USUAL, ['failed'] as const, USUAL, ['authorized', 'failed'] as const],
];

/** Acknowledgements and transitions of one payment, on average. */
export const STEPS_PER_PAYMENT = 1 + PLANS.flat().length / PLANS.length;

/** A payment that was acknowledged, as its merchant remembers it. */
export interface Acknowledged {
  idempotencyKey: string;
  request: object;
  /** The 201. */
  answer: Answer;
  /** The last state of its plan; it was seen to be reached. */
  goal: PaymentStatus;
}

export type Load = ReturnType<typeof startLoad>;

/** Drives `total` payments to their goals, `concurrency` at a time, as they are released. */
export function startLoad(client: PatientClient, total: number, concurrency: number) {
  const made: Acknowledged[] = [];
  const payments = createGate(total);
  const progress = { steps: 0, lastGoodRequestAt: Number.NEGATIVE_INFINITY, inFlight: 0 };
  const take = (what: string, call: () => Promise<Answer | undefined>): Promise<Answer> =>
    client.persevere(what, async () => {
      const sentAt = performance.now();
      const answer = await call();
      if (answer === undefined) return undefined;
      progress.steps += 1;
      progress.lastGoodRequestAt = Math.max(progress.lastGoodRequestAt, sentAt);
      return answer;
    });
  const makePayment = async (index: number): Promise<Acknowledged> => {
    const idempotencyKey = `chaos-${index}`;
    const request = idealPayment({
      ...{ amount: 1_000 + index, reference: `chaos-order-${index}`, metadata: { index } },
    });
    const call: Request = { method: 'POST', path: '/v1/payments', body: request, idempotencyKey };
    const answer = await take(`POST ${idempotencyKey}`, async () =>
      assertStatus(await client.attempt(call), 201),
    );
    const { id } = answer.body;
    let goal: PaymentStatus = 'awaiting_customer';
    for (const step of PLANS[index % PLANS.length] ?? []) {
      goal = LEADS_TO[step];
      await take(`${step} of ${id}`, () => transition(client, id, step));
    }
    return { idempotencyKey, request, answer, goal };
  };
  const loop = async (): Promise<void> => {
    for (let index = await payments.next(); index !== undefined; index = await payments.next()) {
      progress.inFlight += 1;
      made.push(await makePayment(index));
      progress.inFlight -= 1;
    }
  };
  const done = Promise.all(Array.from({ length: concurrency }, loop)).then(() => made);
  done.catch(() => {});
  return {
    release: payments.release,
    countSteps: () => progress.steps,
    /** When the latest request that did something was sent, in ms of `performance.now()`. */
    lastGoodRequestAt: () => progress.lastGoodRequestAt,
    countInFlight: () => progress.inFlight,
    /** All of them, once each has reached its goal. @throws whatever the first to fail met */
    done,
  };
}

/** These calls carry no key: after an error the payment itself says whether its status changed. */
async function transition(client: PatientClient, id: string, step: Step) {
  const call: Request =
    step === 'cancel'
      ? { method: 'POST', path: `/v1/payments/${id}/cancel` }
      : { method: 'POST', path: `/v1/sandbox/payments/${id}/simulate`, body: { event: step } };
  const answer = (await client.attempt(call)) ?? (await client.get(`/v1/payments/${id}`));
  return assertStatus(answer, 200)?.body.status === LEADS_TO[step] ? answer : undefined;
}

function assertStatus(answer: Answer | undefined, status: number): Answer | undefined {
  if (answer === undefined || answer.status === status) return answer;
  throw new Error(`${status} was expected, not ${answer.status}: ${answer.text}`);
}

/** Hands out 0, 1, … up to what was released; undefined when all were handed out. */
function createGate(total: number) {
  let released = 0;
  let handedOut = 0;
  let more = gate();
  return {
    release: (count: number): void => {
      released = Math.min(total, released + count);
      more.release();
      more = gate();
    },
    next: async (): Promise<number | undefined> => {
      while (handedOut >= released) {
        if (released >= total) return undefined;
        await more.opened;
      }
      handedOut += 1;
      return handedOut - 1;
    },
  };
}
