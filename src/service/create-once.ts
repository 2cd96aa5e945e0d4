import { randomUUID } from 'node:crypto';
import { type RawJson, stringifyJson } from '../base/json';
import type { AcceptedRequest } from '../domain/creation';
import { Refusal } from '../domain/errors';
import { DecryptionError, Encrypted, type Encrypter } from '../encryption/encrypter';
import { hashRequest, type RequestHashes } from '../encryption/request-fingerprint';
import type { IdempotencyRecord } from '../store/idempotency';
import { type MerchantDeps, type Owner, refuseFrozen } from './access';

export interface CreateRequest<Body> {
  caller: Owner;
  idempotencyKey: string;
  /** Equal for equal bodies. */
  canonical: string;
  requestId: string;
  /** Validated; a refusal of them yields to the first answer under the key. */
  fields: Body | Refusal;
}

export interface CreateAnswer {
  id: string;
  /** JSON text. */
  body: string;
  /** Another call created the resource. */
  isReplayed: boolean;
}

/** The resource of the key must still be created or answered. */
export interface Reservation {
  record: IdempotencyRecord;
  /** Stored with the workflow. */
  hashes: RequestHashes;
  /** This call continues the work of another. */
  joined: boolean;
  /** The other call may still be running. */
  firstMayRun: boolean;
  firstAnswer?: CreateAnswer;
}

export interface CreatedResource {
  answer: object;
  /** The stored resource holds everything from which the response is built. */
  isStored?: true;
  /** Personal data or a page token: stored encrypted. */
  isPersonal?: true;
}

type OnceDeps = Pick<MerchantDeps, 'stores' | 'keys' | 'encrypter' | 'now'>;

/** Time limit of a request. */
const FIRST_CALL_MS = 8_000;
/** @see docs/decisions.md#requests */
const CREATED = 201;

interface Creation<Body> {
  operation: string;
  /** Absent: a UUID. */
  makeId?: () => string;
  /** Checks the rules that a schema cannot express; after a Refusal, the key is still unused. */
  accept: (body: Body, id: string) => AcceptedRequest | Promise<AcceptedRequest>;
  /** Creates the accepted resource, unless an earlier call has. */
  open: (reservation: Reservation) => Promise<CreatedResource>;
}

/**
 * Creates a resource once per idempotency key.
 * @returns the first response under the key
 * @throws Refusal 403 `account_frozen`; 409 `idempotency_request_in_progress` when the outcome is
 * unknown and the first call may still be running; 422 `idempotency_key_reused`; errors of `accept`
 * and `open`
 */
export async function createOnce<Body>(
  deps: OnceDeps,
  request: CreateRequest<Body>,
  creation: Creation<Body>,
): Promise<CreateAnswer> {
  const { stores, encrypter } = deps;
  const reservation = await reserveKey(deps, request, creation);
  if (reservation.firstAnswer !== undefined) return reservation.firstAnswer;
  const { record, joined: isReplayed, firstMayRun } = reservation;
  const { resource_id: id } = record;
  try {
    const { answer, isStored, isPersonal } = await creation.open(reservation);
    const body = stringifyJson(answer);
    if (isStored === true) return { id, body, isReplayed };
    const storedBody =
      isPersonal === true ? await encrypter.encrypt(body, getAnswerOwner(id)) : body;
    const first = await stores.idempotency.complete(record, CREATED, storedBody);
    return { id, body: (await decryptAnswer(encrypter, id, first.body)) ?? body, isReplayed };
  } catch (error) {
    const isUnknown = error instanceof Refusal && error.code === 'temporarily_unavailable';
    if (!firstMayRun || !isUnknown) throw error;
    const message = 'The first call with this Idempotency-Key is still running.';
    throw new Refusal('idempotency_request_in_progress', message);
  }
}

/**
 * Reserves the key, or joins its reservation, which fixes the id before anything else happens: a
 * second caller, or a retry after a crash, gets the same resource.
 */
async function reserveKey<Body>(
  deps: OnceDeps,
  request: CreateRequest<Body>,
  { operation, accept, makeId = randomUUID }: Creation<Body>,
): Promise<Reservation> {
  const { caller, idempotencyKey, canonical, requestId: request_id, fields } = request;
  refuseFrozen(await deps.stores.accounts.getCached(caller.account_id));
  const { account_id, livemode } = caller;
  const key = { account_id, livemode, operation, key: idempotencyKey };
  const hashes = hashRequest(deps.keys.fingerprint, key, canonical);
  const { idempotency } = deps.stores;
  const resource_id = makeId();
  let accepted: AcceptedRequest;
  try {
    if (fields instanceof Refusal) throw fields;
    accepted = await accept(fields, resource_id);
  } catch (error) {
    // The first call itself may be the reason for a refusal of a repeat.
    const existing = await idempotency.find(key, deps.now(), hashes.key);
    if (existing === null) throw error;
    return await joinRecord(deps, existing, hashes);
  }
  const fingerprint = hashes.body;
  const newRecord = { ...key, fingerprint, resource_id, request: accepted, request_id };
  const record = await idempotency.reserveKey(newRecord, deps.now(), hashes.key);
  if (record.resource_id === resource_id) {
    return { record, hashes, joined: false, firstMayRun: false };
  }
  return await joinRecord(deps, record, hashes);
}

async function joinRecord(
  { encrypter, now }: OnceDeps,
  record: IdempotencyRecord,
  hashes: RequestHashes,
): Promise<Reservation> {
  const { resource_id: id, status, body, created_at } = record;
  if (record.fingerprint !== hashes.body) {
    const message = `This Idempotency-Key was used with another body, for ${id}.`;
    throw new Refusal('idempotency_key_reused', message);
  }
  const isAnswered = status !== null && body !== null;
  const firstMayRun = !isAnswered && now().getTime() - created_at.getTime() < FIRST_CALL_MS;
  const reservation = { record, hashes, joined: true, firstMayRun };
  const text = isAnswered ? await decryptAnswer(encrypter, id, body) : undefined;
  if (text === undefined) return reservation;
  return { ...reservation, firstAnswer: { id, body: text, isReplayed: true } };
}

/** @returns undefined when the key was removed */
export async function decryptAnswer(encrypter: Encrypter, id: string, body: string) {
  const parsed = Encrypted.safeParse(body);
  if (!parsed.success) return body;
  try {
    return await encrypter.decrypt(parsed.data, getAnswerOwner(id));
  } catch (error) {
    if (error instanceof DecryptionError) return undefined;
    throw error;
  }
}

function getAnswerOwner(id: string): string {
  return `answer/${id}`;
}

/** Returns JSON as it was written. */
export function readMetadataText(metadata: RawJson | null | undefined): string {
  return metadata?.kind === 'object' ? metadata.text : '{}';
}
