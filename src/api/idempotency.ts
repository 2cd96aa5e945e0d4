import { randomUUID } from 'node:crypto';
import type { Context } from 'koa';
import type { ClaimedRequest } from '../domain/creation';
import { Refusal } from '../domain/errors';
import { type ClaimMark, claimKeyHashes, claimMark, isOfBody } from '../keys/claim-mark';
import type { KeyRing } from '../keys/ring';
import type { ClaimDocument, ClaimKey, IdempotencyStore } from '../store/idempotency';

const KEY_LENGTH_MAX = 255;

/** Reads the Idempotency-Key header. @throws Refusal 400. @see docs/api.md#idempotency-key */
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

/** Creating request under its key. */
export interface CreateCall {
  claimKey: ClaimKey;
  /** Body in a form that equal bodies share. */
  canonical: string;
  fingerprints: KeyRing;
  requestId: string;
  now: () => Date;
}

/** First answer of a key, as it was sent. */
export interface StoredAnswer {
  status: number;
  body: string;
}

/** Work left for a creating request: to send the first answer again, or to make the resource. */
export interface CreateOnce {
  claim: ClaimDocument;
  /** Mark for the workflow that makes the resource. */
  mark: ClaimMark;
  /** Whether another call made the claim, so that its work goes on here. */
  joined: boolean;
  /** Whether that call may still be running. */
  firstMayRun: boolean;
  /** First answer as it is kept; undefined where none is. */
  replay?: StoredAnswer;
}

/** Time that a first call may take: the request limit. */
const FIRST_CALL_MS = 8_000;

/**
 * Claims the key, or joins the claim that it has. The claim fixes the resource's id before anything
 * else happens, so a second caller, or a retry after a crash, lands on the same resource.
 * @param accept checks the request for the id that the claim will fix; a Refusal burns no key
 * @throws Refusal 422 `idempotency_key_reused`
 */
export async function createOnce(
  idempotency: IdempotencyStore,
  call: CreateCall,
  accept: (resourceId: string) => Promise<ClaimedRequest>,
): Promise<CreateOnce> {
  const { claimKey, now, requestId: request_id } = call;
  const mark = claimMark(call.fingerprints, claimKey, call.canonical);
  const hashes = claimKeyHashes(call.fingerprints, claimKey);
  const resource_id = randomUUID();
  let request: ClaimedRequest;
  try {
    request = await accept(resource_id);
  } catch (error) {
    // A repeat is not judged anew: its first call may be why it is refused now.
    const earlier = await idempotency.find(claimKey, now(), hashes);
    if (earlier === null) throw error;
    return join(earlier, mark, call);
  }
  const fresh = { ...claimKey, fingerprint: mark.body, resource_id, request, request_id };
  const claim = await idempotency.claim(fresh, now(), hashes);
  if (claim.resource_id !== resource_id) return join(claim, mark, call);
  return { claim, mark, joined: false, firstMayRun: false };
}

function join(claim: ClaimDocument, mark: ClaimMark, call: CreateCall): CreateOnce {
  if (!isOfBody(call.fingerprints, call.claimKey, call.canonical, claim.fingerprint)) {
    const message = `This Idempotency-Key was used with another body, for ${claim.resource_id}.`;
    throw new Refusal('idempotency_key_reused', message);
  }
  const { status, body, created_at } = claim;
  const isAnswered = status !== null && body !== null;
  const firstMayRun = !isAnswered && call.now().getTime() - created_at.getTime() < FIRST_CALL_MS;
  const joined = { claim, mark, joined: true, firstMayRun };
  return isAnswered ? { ...joined, replay: { status, body } } : joined;
}

/** Error of a call that joined the first one while that may still be running. */
export function whileFirstRuns(error: unknown): unknown {
  if (!(error instanceof Refusal) || error.code !== 'temporarily_unavailable') return error;
  const message = 'The first call with this Idempotency-Key is still running.';
  return new Refusal('idempotency_request_in_progress', message);
}
