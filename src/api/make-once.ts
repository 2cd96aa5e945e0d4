import type { z } from 'zod';
import type { ClaimedRequest } from '../domain/creation';
import type { Endpoint } from '../domain/wire/endpoint';
import { stringifyJson } from '../json';
import type { ClaimMark } from '../keys/claim-mark';
import type { ClaimDocument, ClaimKey } from '../store/idempotency';
import type { KeyOwner } from '../store/keys';
import type { ApiDeps } from './context';
import { createOnce, whileFirstRuns } from './idempotency';

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
  { stores, keys, now }: Pick<ApiDeps, 'stores' | 'keys' | 'now'>,
  { claimKey, canonical, requestId, handlers, body, status }: CreateRequest<E>,
): Promise<FirstAnswer> {
  const { idempotency } = stores;
  const { account_id, livemode } = claimKey;
  const key = { account_id, livemode };
  const call = { claimKey, canonical, fingerprintKey: keys.fingerprint, requestId, now };
  const once = await createOnce(idempotency, call, async (id) =>
    handlers.accept({ key, body: body(), id }),
  );
  if ('replay' in once) return { ...once.replay, isReplayed: true };
  const { claim, mark, joined, firstMayRun } = once;
  try {
    const made = await handlers.create({ key, requestId, mark }, claim.resource_id, claim);
    const text = stringifyJson(made.answer);
    const first =
      made.isKept === true
        ? { status, body: text }
        : await idempotency.complete(claim, status, text);
    return { ...first, isReplayed: joined };
  } catch (error) {
    throw firstMayRun ? whileFirstRuns(error) : error;
  }
}
