import { createHmac, randomUUID } from 'node:crypto';
import type { Context } from 'koa';
import type { CreationRequest } from '../domain/creation';
import { Refusal } from '../domain/errors';
import type { ClaimDocument, ClaimKey, IdempotencyStore } from '../store/idempotency';

const KEY_LENGTH_MAX = 255;

/** @throws Refusal 400. @see spec §4 */
export function idempotencyKeyOf(ctx: Context): string {
  const values = ctx.req.headersDistinct['idempotency-key'] ?? [];
  const key = values[0];
  if (key === undefined || (key === '' && values.length === 1)) {
    const message = 'Send an Idempotency-Key header: 1 to 255 printable ASCII characters.';
    throw new Refusal('idempotency_key_required', message);
  }
  if (values.length > 1 || key.length > KEY_LENGTH_MAX || !/^[\x20-\x7e]+$/.test(key)) {
    const message = 'The Idempotency-Key must be one value of 1 to 255 printable ASCII characters.';
    throw new Refusal('idempotency_key_invalid', message);
  }
  return key;
}

export interface Creation {
  idempotency: IdempotencyStore;
  claimKey: ClaimKey;
  canonical: string;
  fingerprintKey: Buffer;
  requestId: string;
  now: () => Date;
  /**
   * Checks the request, before anything is claimed, for the resource id that the claim will fix.
   * @throws Refusal: burns no key
   */
  accept: (resourceId: string) => CreationRequest | Promise<CreationRequest>;
  /**
   * Makes the resource of this id, or joins the one that is being made; answers with its body.
   * Without a request it is written already.
   */
  create: (resourceId: string, request: CreationRequest | null) => Promise<string>;
}

export interface Creating {
  status: number;
  body: string;
  replayed: boolean;
}

/** How long a first call may still be running: the request limit. */
const FIRST_CALL_MS = 8_000;

/**
 * One creation per key. The claim fixes the resource's id before anything else happens, so a second
 * caller, or a retry after a crash, lands on the same resource.
 * @throws Refusal 422 `idempotency_key_reused`, 409 `idempotency_request_in_progress`
 */
export async function createOnce(creation: Creation): Promise<Creating> {
  const { idempotency, claimKey, now, requestId } = creation;
  const fingerprint = createHmac('sha256', creation.fingerprintKey)
    .update(`${claimKey.operation}\n${creation.canonical}`)
    .digest('base64url');
  const earlier = await idempotency.find(claimKey, now());
  if (earlier !== null) return await join(creation, earlier, fingerprint);

  const resource_id = randomUUID();
  const request = await creation.accept(resource_id);
  const fresh = { ...claimKey, fingerprint, resource_id, request, request_id: requestId };
  const claim = await idempotency.claim(fresh, now());
  if (claim.resource_id !== resource_id) return await join(creation, claim, fingerprint);
  return await finish(creation, claim, request, false);
}

/** The first answer again; or the first call's work, taken up where it stands. */
async function join(
  creation: Creation,
  claim: ClaimDocument,
  fingerprint: string,
): Promise<Creating> {
  if (claim.fingerprint !== fingerprint) {
    const message = `This Idempotency-Key was used with another body, for ${claim.resource_id}.`;
    throw new Refusal('idempotency_key_reused', message);
  }
  const { status, body, request } = claim;
  if (status !== null && body !== null) return { status, body, replayed: true };
  const firstMayRun = creation.now().getTime() - claim.created_at.getTime() < FIRST_CALL_MS;
  try {
    return await finish(creation, claim, request, true);
  } catch (error) {
    const late = error instanceof Refusal && error.code === 'temporarily_unavailable';
    if (!late || !firstMayRun) throw error;
    const message = 'The first call with this Idempotency-Key is still running.';
    const headers = { 'Retry-After': '1' };
    throw new Refusal('idempotency_request_in_progress', message, { headers });
  }
}

async function finish(
  creation: Creation,
  claim: ClaimDocument,
  request: CreationRequest | null,
  replayed: boolean,
): Promise<Creating> {
  const body = await creation.create(claim.resource_id, request);
  const kept = await creation.idempotency.complete(claim, 201, body);
  return { ...kept, replayed };
}
