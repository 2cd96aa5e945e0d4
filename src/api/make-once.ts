import type { z } from 'zod';
import type { ClaimedRequest } from '../domain/creation';
import type { Endpoint } from '../domain/wire/endpoint';
import { stringifyJson } from '../json-write';
import type { ClaimMark } from '../keys/claim-mark';
import { SealError, Sealed, type Sealer } from '../keys/seal';
import type { ClaimDocument, ClaimKey } from '../store/idempotency';
import type { KeyOwner } from '../store/keys';
import type { ApiDeps } from './context';
import { createOnce, type StoredAnswer, whileFirstRuns } from './idempotency';

export type Parsed<T> = T extends z.ZodType ? z.output<T> : undefined;

/** Steps by which a creating endpoint makes its resource. */
export interface CreateHandlers<E extends Endpoint> {
  /**
   * Checks the rules that a schema can't express.
   * @param call.id id that the claim will fix, for values that are sealed for the resource
   * @throws Refusal: nothing is created, no key burnt
   */
  accept(call: { key: KeyOwner; body: Parsed<E['body']>; id: string }): Promise<ClaimedRequest>;
  /**
   * Makes or joins the resource and gives the answer.
   * @param claim its request is null when the resource is written already, so that it is only read
   */
  create(
    call: { key: KeyOwner; requestId: string; mark: ClaimMark },
    id: string,
    claim: Pick<ClaimDocument, 'request' | 'opening'>,
  ): Promise<Made>;
}

/** Answer to a creating request. */
export interface Made {
  answer: object;
  /** The write of the resource has kept the facts that it is made of. */
  isKept?: true;
  /** It names a person, or holds the token of a page: it is kept sealed. */
  isPersonal?: true;
}

/** Creating request that has passed the checks of its door. */
interface CreateRequest<E extends Endpoint> {
  claimKey: ClaimKey;
  /** Body in a form that equal bodies share. */
  canonical: string;
  requestId: string;
  handlers: CreateHandlers<E>;
  /** Parses the body. @throws Refusal 400 */
  body: () => Parsed<E['body']>;
  /** Status of the answer. */
  status: number;
}

/** Answer as it is sent. */
interface FirstAnswer {
  status: number;
  body: string;
  /** Whether another call made the resource. */
  isReplayed: boolean;
}

/**
 * Makes the resource once under its key, or gives the first answer again. Whatever door a request
 * comes through, it passes here.
 * @throws Refusal
 */
export async function makeOnce<E extends Endpoint>(
  { stores, keys, sealer, now }: Pick<ApiDeps, 'stores' | 'keys' | 'sealer' | 'now'>,
  { claimKey, canonical, requestId, handlers, body, status }: CreateRequest<E>,
): Promise<FirstAnswer> {
  const { idempotency } = stores;
  const { account_id, livemode } = claimKey;
  const key = { account_id, livemode };
  const call = { claimKey, canonical, fingerprints: keys.fingerprint, requestId, now };
  const once = await createOnce(idempotency, call, async (id) =>
    handlers.accept({ key, body: body(), id }),
  );
  const { claim, mark, joined, firstMayRun, replay } = once;
  const again = replay === undefined ? undefined : await opened(sealer, claim, replay);
  if (again !== undefined) return { ...again, isReplayed: true };
  try {
    const made = await handlers.create({ key, requestId, mark }, claim.resource_id, claim);
    const text = stringifyJson(made.answer);
    const answer = { status, body: text };
    if (made.isKept === true) return { ...answer, isReplayed: joined };
    const kept = made.isPersonal === true ? await sealer.seal(text, ownerOf(claim)) : text;
    const first = await idempotency.complete(claim, status, kept);
    return { ...((await opened(sealer, claim, first)) ?? answer), isReplayed: joined };
  } catch (error) {
    throw firstMayRun ? whileFirstRuns(error) : error;
  }
}

/**
 * Opens a kept answer, where it is sealed; undefined when no key opens it any more, so that the
 * resource is shown as it stands.
 */
async function opened(
  sealer: Sealer,
  claim: ClaimDocument,
  { status, body }: StoredAnswer,
): Promise<StoredAnswer | undefined> {
  const sealed = Sealed.safeParse(body);
  if (!sealed.success) return { status, body };
  try {
    return { status, body: await sealer.open(sealed.data, ownerOf(claim)) };
  } catch (error) {
    if (error instanceof SealError) return undefined;
    throw error;
  }
}

function ownerOf({ resource_id }: ClaimDocument): string {
  return `answer/${resource_id}`;
}
