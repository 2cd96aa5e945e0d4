import { z } from 'zod';
import type { PaymentCallbackName } from '../../src/domain/callback/callback';
import { PAYMENT_STATUSES, type PaymentStatus } from '../../src/domain/payment/payment';
import type { Answer, PatientClient, Request } from './patient-client';

/** State that each kind of request leads to: an event of its bank, or a cancellation. */
const LEADS_TO = {
  authorized: 'authorized',
  settled: 'settled',
  failed: 'failed',
  cancel: 'cancelled',
} as const satisfies Partial<Record<PaymentCallbackName | 'cancel', PaymentStatus>>;

type Step = keyof typeof LEADS_TO;

/** Dealt out in turn: half go the usual way. */
const PLANS: readonly (readonly Step[])[] = [
  ['authorized', 'settled'],
  ['settled'],
  ['authorized', 'settled'],
  ['cancel'],
  ['authorized', 'settled'],
  ['failed'],
  ['authorized', 'settled'],
  ['authorized', 'failed'],
];

/** Acknowledgements and moves of one payment, on average. */
export const STEPS_PER_PAYMENT = 1 + PLANS.flat().length / PLANS.length;

const Seen = z.object({ id: z.uuid(), status: z.enum(PAYMENT_STATUSES) });
type Seen = z.infer<typeof Seen>;

/** A payment that was acknowledged, as its merchant remembers it. */
export interface Acknowledged {
  idempotencyKey: string;
  request: unknown;
  id: string;
  /** The body of the 201, byte for byte. */
  body: string;
  /** The last state of its plan; it was seen to be reached. */
  goal: PaymentStatus;
}

export interface Load {
  /** Lets so many more payments begin. */
  release(payments: number): void;
  /** Acknowledgements and moves so far. */
  steps(): number;
  /** When the latest request that did something was sent, in ms of `performance.now()`. */
  lastGoodRequestAt(): number;
  /** Payments that are begun and have not reached their goal. */
  inFlight(): number;
  /** All of them, once each has reached its goal. @throws whatever the first to fail met. */
  done: Promise<Acknowledged[]>;
}

/** Drives `total` payments to their goals, `concurrency` at a time, as they are released. */
export function startLoad(client: PatientClient, total: number, concurrency: number): Load {
  const made: Acknowledged[] = [];
  const gate = createGate(total);
  const progress = { steps: 0, lastGoodRequestAt: Number.NEGATIVE_INFINITY, inFlight: 0 };
  const good = (sentAt: number): void => {
    progress.steps += 1;
    progress.lastGoodRequestAt = Math.max(progress.lastGoodRequestAt, sentAt);
  };
  const loop = async (): Promise<void> => {
    for (let index = await gate.next(); index !== undefined; index = await gate.next()) {
      progress.inFlight += 1;
      made.push(await onePayment(client, index, good));
      progress.inFlight -= 1;
    }
  };
  const done = Promise.all(Array.from({ length: concurrency }, loop)).then(() => made);
  done.catch(() => {});
  return {
    release: gate.release,
    steps: () => progress.steps,
    lastGoodRequestAt: () => progress.lastGoodRequestAt,
    inFlight: () => progress.inFlight,
    done,
  };
}

async function onePayment(
  client: PatientClient,
  index: number,
  good: (sentAt: number) => void,
): Promise<Acknowledged> {
  const idempotencyKey = `chaos-${index}`;
  const request = paymentRequest(index);
  const { id, body } = await create(client, idempotencyKey, request, good);
  let goal: PaymentStatus = 'awaiting_customer';
  for (const step of PLANS[index % PLANS.length] ?? []) {
    await take(client, id, step, good);
    goal = LEADS_TO[step];
  }
  return { idempotencyKey, request, id, body, goal };
}

function paymentRequest(index: number) {
  return {
    method: 'ideal',
    amount: 1_000 + index,
    currency: 'EUR',
    country: 'NL',
    success_url: 'https://shop.example/thanks',
    error_url: 'https://shop.example/sorry',
    reference: `chaos-order-${index}`,
    metadata: { index },
  };
}

async function create(
  client: PatientClient,
  idempotencyKey: string,
  body: unknown,
  good: (sentAt: number) => void,
): Promise<{ id: string; body: string }> {
  const call: Request = { method: 'POST', path: '/v1/payments', body, idempotencyKey };
  return await client.persevere(`POST /v1/payments ${idempotencyKey}`, async () => {
    const sentAt = performance.now();
    const outcome = await client.attempt(call);
    if (!outcome.known) return undefined;
    const { id } = seen(outcome.answer, 201);
    good(sentAt);
    return { id, body: outcome.answer.text };
  });
}

/** These calls carry no key: after an error the payment itself says whether it has moved. */
async function take(
  client: PatientClient,
  id: string,
  step: Step,
  good: (sentAt: number) => void,
): Promise<void> {
  const call: Request =
    step === 'cancel'
      ? { method: 'POST', path: `/v1/payments/${id}/cancel` }
      : { method: 'POST', path: `/v1/sandbox/payments/${id}/simulate`, body: { event: step } };
  await client.persevere(`${step} of ${id}`, async () => {
    const sentAt = performance.now();
    const outcome = await client.attempt(call);
    const now = outcome.known
      ? seen(outcome.answer, 200)
      : seen(await client.insist({ method: 'GET', path: `/v1/payments/${id}` }), 200);
    if (now.status !== LEADS_TO[step]) return undefined;
    good(sentAt);
    return now;
  });
}

function seen(answer: Answer, status: number): Seen {
  if (answer.status === status) return Seen.parse(JSON.parse(answer.text));
  throw new Error(`${status} was expected, not ${answer.status}: ${answer.text}`);
}

/** Hands out 0, 1, … up to what was released; undefined when all were handed out. */
function createGate(total: number) {
  let released = 0;
  let handedOut = 0;
  let waiting: (() => void)[] = [];
  return {
    release(more: number): void {
      released = Math.min(total, released + more);
      for (const wake of waiting.splice(0)) wake();
    },
    async next(): Promise<number | undefined> {
      while (handedOut >= released) {
        if (released >= total) return undefined;
        await new Promise<void>((wake) => {
          waiting = [...waiting, wake];
        });
      }
      handedOut += 1;
      return handedOut - 1;
    },
  };
}
