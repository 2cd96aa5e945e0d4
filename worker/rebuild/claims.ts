import { z } from 'zod';
import { assertNever } from '../../src/domain/assert';
import type { ClaimedRequest } from '../../src/domain/creation';
import type { Stores } from '../../src/store';
import type { Step, Write } from './steps';

/** Write that opens a resource. */
export type Opening = Extract<
  Write,
  { activity: 'openPayment' | 'openRefund' | 'abandonRefund' | 'openPayout' | 'abandonPayout' }
>;

/** Operation of a claim that is made here: no request of a merchant lands on it. */
const OPERATION = 'rebuild';

type Claims = Pick<Stores, 'idempotency'>;

/**
 * Makes the claim that an opening draws on, where the database holds none. Temporal knows neither the
 * idempotency key nor the texts of the merchant, so these stay empty.
 */
export async function claimFor(
  { idempotency }: Claims,
  resource_id: string,
  opening: Opening,
  steps: readonly Step[],
): Promise<void> {
  if ((await idempotency.forResource(resource_id)) !== null) return;
  const { account_id, livemode, request_id } = opening.input;
  const owner = { account_id, livemode, operation: OPERATION, key: resource_id };
  const request = requestOf(opening, steps);
  const claim = { ...owner, fingerprint: '', resource_id, request, request_id };
  await idempotency.claim(claim, new Date());
}

/** Whether the claim was made here, so that the merchant's own key is free. */
export async function isKeyLost({ idempotency }: Claims, resource_id: string): Promise<boolean> {
  return (await idempotency.forResource(resource_id))?.operation === OPERATION;
}

/** Takes a claim back that was made here, of a resource that could not be opened. */
export async function takeBack(stores: Claims, resource_id: string): Promise<void> {
  if (await isKeyLost(stores, resource_id)) await stores.idempotency.release(resource_id);
}

function requestOf(opening: Opening, steps: readonly Step[]): ClaimedRequest {
  switch (opening.activity) {
    case 'openPayment': {
      const { created_at, expires_at, session, payment_id, request_id, ...routing } = opening.input;
      const expires_in_seconds = (Date.parse(expires_at) - Date.parse(created_at)) / 1_000;
      const home = homeOf(steps);
      const customer = { email: null, first_name: null, last_name: null, reference: null };
      const urls = { success_url: home, error_url: home };
      const stored = { reference: null, customer, metadata: '{}', ...urls };
      return { stored, routing: { ...routing, expires_in_seconds } };
    }
    case 'openRefund':
    case 'abandonRefund': {
      const { refund_id, request_id, created_at, ...routing } = opening.input;
      return { refund: { reason: null }, routing };
    }
    case 'openPayout':
    case 'abandonPayout': {
      const { payout_id, request_id, created_at, accept_by_ms, ...routing } = opening.input;
      return { payout: { reference: null, metadata: '{}' }, routing };
    }
    default:
      return assertNever(opening);
  }
}

const Session = z.looseObject({ return_url: z.url() });

/** Address of the service itself, where the shop's own is lost: the bank was told it. */
function homeOf(steps: readonly Step[]): string {
  for (const { input } of steps) {
    const session = Session.safeParse(input);
    if (session.success) return new URL('/', session.data.return_url).href;
  }
  throw new RangeError('No step of this payment asked a bank for a session.');
}
