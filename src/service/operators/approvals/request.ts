import { createHash, randomUUID } from 'node:crypto';
import type { ClientSession, MongoClient } from 'mongodb';
import { inTransaction, isDuplicateKey } from '../../../base/mongo';
import type { CallbackResource } from '../../../domain/banks/callback';
import { omitUndefined } from '../../../domain/defined';
import { ServiceError } from '../../../domain/errors';
import {
  APPROVAL_MS,
  type ApprovalLimits,
  type ApprovalRequired,
  type Credited,
  computeCredit,
  listScopes,
  type NamedFacts,
  readApprovalLimits,
  requireApproval,
  type Scope,
  type SumOwners,
} from '../../../domain/operators/approval';
import type { CountedAct, VerifiedOperator } from '../../../domain/operators/operator-act';
import { LIFECYCLES, type Resource } from '../../../lifecycles';
import type { Stores } from '../../../store';
import type { ApprovalDocument, PlannedAct } from '../../../store/approvals';
import type { Audit } from '../../../store/audit';
import { toMovement } from '../../../store/movements';
import type { WriteDeps } from '../../access';

export interface ApprovalDeps {
  mongo: MongoClient;
  stores: Stores;
  now: () => Date;
}

export interface ApprovalRequest {
  act: string;
  /** Null where a plan has several, or where the act concerns none. */
  account_id: string | null;
  /** Null where no money moves. */
  amount: bigint | null;
  currency: string | null;
  resource: CallbackResource | null;
  target: string;
  input: ApprovalDocument['input'];
  plan?: readonly PlannedAct[];
  /** Proves nothing without a verified operator. */
  operator: string;
  verified?: VerifiedOperator | undefined;
  reason: string;
}

/**
 * Requests an approval once: a repeat with the same input finds the open one.
 * @throws ServiceError `operation_id_used` when another act waits under this id
 */
export async function requestApproval(
  { mongo, stores, now }: ApprovalDeps,
  audit: Audit,
  request: ApprovalRequest,
): Promise<string> {
  const at = now();
  await stores.approvals.expire(at);
  const { operator, verified, amount: units, ...subject } = request;
  const { act, account_id, target, currency } = subject;
  const [_id, open] = [`appr_${randomUUID()}`, nameSubject(subject)];
  const amount = units === null ? null : String(units);
  const document: ApprovalDocument = {
    _id,
    ...subject,
    amount,
    state: 'requested',
    open,
    requested_by: verified?.name ?? operator,
    requester_id: verified?.operator_id ?? null,
    created_at: at.toISOString(),
    expires_at: new Date(at.getTime() + APPROVAL_MS).toISOString(),
    decided_by: null,
    decided_at: null,
    decision_reason: null,
    refusal: null,
  };
  try {
    await inTransaction(mongo, async (session) => {
      await stores.approvals.insert(document, session);
      const change = { act: 'approval.requested', account_id: null, livemode: true } as const;
      const about = { act, account_id, target, amount, currency };
      await audit({ ...change, target: _id, after: about }, session);
    });
    return _id;
  } catch (error) {
    if (!isDuplicateKey(error, 'open')) throw error;
    const waiting = await stores.approvals.findOpen(open);
    // It was decided meanwhile.
    if (waiting === null) return await requestApproval({ mongo, stores, now }, audit, request);
    if (hashInput(waiting.input) === hashInput(document.input)) return waiting._id;
    const message = `Another ${act} has this id: see the approval ${waiting._id}.`;
    throw new ServiceError('operation_id_used', message);
  }
}

/** Acts on one resource differ by their input; an act on a balance or a line has an id. */
function nameSubject({
  act,
  resource,
  target,
  input,
}: Pick<ApprovalRequest, 'act' | 'resource' | 'target' | 'input'>): string {
  return resource === null ? `${act}:${target}` : `${act}:${target}:${hashInput(input)}`;
}

export function hashInput(input: ApprovalDocument['input']): string {
  return hash(Object.entries(omitUndefined(input)).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function hash(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}

/** Names a plan by its ids and amounts. */
export function namePlan(plan: readonly PlannedAct[]): string {
  return `plan:${hash(plan.map(({ id, amount }) => [id, amount]))}`;
}

interface LimitedAct<Result> extends Pick<ApprovalRequest, 'act' | 'target' | 'input' | 'reason'> {
  credited: Credited;
  verified: VerifiedOperator;
  limits: ApprovalLimits;
  /** A repeat credits nothing. */
  isRepeat?: boolean;
  /** @param count counts what it credits, in the same transaction */
  post: (count: (session: ClientSession) => Promise<void>) => Promise<Result>;
}

/** Posts an act within the limits, or else requests the approval of a second operator. */
export async function postOrRequest<Result>(
  deps: WriteDeps,
  { credited, verified, limits, isRepeat = false, post, ...subject }: LimitedAct<Result>,
): Promise<Result | ApprovalRequired> {
  const both = [limits, await readLimits(deps)];
  const operator = verified.name;
  const owners = { operator, account_id: credited.account_id };
  try {
    if (isRepeat || !(await isAboveLimit(deps, both, operator, [credited]))) {
      return await post((session) => countCredit(deps, both, owners, credited, session));
    }
  } catch (error) {
    if (!(error instanceof LimitReached)) throw error;
  }
  const request = { ...subject, ...credited, resource: null, operator, verified };
  return requireApproval(await requestApproval(deps, deps.audit, request));
}

/**
 * Ends an approval in the transaction of its act.
 * @param done what would have been, as part of a sentence
 * @throws ServiceError `approval_decided`
 */
export async function finishApproval(
  { approvals }: Pick<Stores, 'approvals'>,
  id: string | undefined,
  done: string,
  session: ClientSession,
): Promise<void> {
  if (id === undefined || (await approvals.finish(id, session))) return;
  const message = `The approval ${id} has ended meanwhile; nothing was ${done}.`;
  throw new ServiceError('approval_decided', message);
}

/** Received by the workflow. */
export interface ResourceActRequest {
  resource: CallbackResource;
  resource_id: string;
  what: string;
  operator: string;
  reason: string;
  named: NamedFacts;
  bank_confirmed_not_executed?: boolean;
  approval_id?: string;
}

export type ActDecision =
  /** `credited` in minor units, counted with the act. */
  | { outcome: 'allowed'; credited?: CountedAct; operator?: string; approved_by?: string }
  | { outcome: 'approval_required'; approval_id: string }
  | { outcome: 'refused'; code: string; message: string };

/** Measures an act by what is stored. @throws Error when nothing is */
export async function measureAct(
  stores: Stores,
  { resource, resource_id, what }: Pick<ResourceActRequest, 'resource' | 'resource_id' | 'what'>,
  named: NamedFacts = {},
): Promise<{ document: Resource; credited: Credited }> {
  const document = await LIFECYCLES[resource].get(stores, resource_id);
  if (document === null) throw new Error(`The record of ${resource_id} is not there.`);
  const movements = (await stores.movements.forResource(resource_id)).map(toMovement);
  const disputes = resource === 'payment' ? await stores.disputes.forPayment(resource_id) : [];
  const chargebacks = disputes.filter(({ kind }) => kind === 'clawed_back');
  const credited = computeCredit(resource, what, { ...document, movements, chargebacks }, named);
  return { document, credited };
}

/**
 * Requests the approval of a second operator where a live act needs one; a sum that another act
 * reaches meanwhile undoes the transaction of this one, which then asks again. The requester is not
 * verified, since the sender of an update may have typed any name.
 * @see docs/operators.md#approvals
 */
export async function authorizeAct(
  deps: ApprovalDeps,
  limits: ApprovalLimits,
  audit: Audit,
  request: ResourceActRequest,
): Promise<ActDecision> {
  const { resource, resource_id, what, named, operator, reason, approval_id } = request;
  const { document, credited } = await measureAct(deps.stores, request, named);
  const subject = {
    act: `${resource}.${what}`,
    resource,
    target: resource_id,
    input: {
      ...omitUndefined(named),
      ...(request.bank_confirmed_not_executed ? { bank_confirmed_not_executed: true } : {}),
    },
  };
  if (approval_id !== undefined) {
    const approval = await deps.stores.approvals.get(approval_id);
    return checkApproval(approval, { subject, credited, now: deps.now() });
  }
  const { amount, currency } = credited;
  if (!document.livemode || amount === 0n) return { outcome: 'allowed' };
  if (!(await isAboveLimit(deps, [limits], operator, [credited]))) {
    return { outcome: 'allowed', credited: { amount: Number(amount), currency } };
  }
  const full = { ...subject, ...credited, operator, reason };
  return { outcome: 'approval_required', approval_id: await requestApproval(deps, audit, full) };
}

interface Use {
  subject: Pick<ApprovalRequest, 'act' | 'resource' | 'target' | 'input'>;
  credited: Credited;
  now: Date;
}

function checkApproval(
  approval: ApprovalDocument | null,
  { subject, credited, now }: Use,
): ActDecision {
  const refuse = (code: string, message: string) =>
    ({ outcome: 'refused', code, message }) as const;
  if (approval === null) return refuse('approval_not_found', 'There is no such approval.');
  const { _id, state, expires_at, open, requested_by: operator, decided_by } = approval;
  if (state === 'expired' || expires_at <= now.toISOString()) {
    return refuse('approval_expired', `The approval ${_id} expired at ${expires_at}.`);
  }
  if (state !== 'approved') {
    return refuse('approval_decided', `The approval ${_id} is ${state}; nothing was done.`);
  }
  const part = approval.plan?.find(({ id }) => id === subject.target);
  const target = part === undefined ? subject.target : approval.target;
  if (open !== nameSubject({ ...subject, target })) {
    return refuse('approval_differs', `The approval ${_id} is for another act.`);
  }
  if (part?.is_done) {
    return refuse('approval_decided', `This act of the approval ${_id} is done already.`);
  }
  const { amount } = part ?? approval;
  if (amount !== String(credited.amount) || approval.currency !== credited.currency) {
    const amounts = `${amount}, and it is ${credited.amount} now`;
    return refuse('approval_differs', `The approval ${_id} is for ${amounts}; request it again.`);
  }
  return { outcome: 'allowed', operator, ...(decided_by && { approved_by: decided_by }) };
}

interface SumDeps {
  stores: Pick<Stores, 'approvals'>;
  now: () => Date;
}

/** Undoes the transaction of an act that would exceed a limit. */
export class LimitReached extends Error {
  override readonly name = 'LimitReached';
  readonly credited: Credited;

  constructor(message: string, credited: Credited) {
    super(message);
    this.credited = credited;
  }
}

/** The worker's limits count: no environment of a command raises them. */
export async function readLimits(
  { stores }: Pick<SumDeps, 'stores'>,
  session?: ClientSession,
): Promise<ApprovalLimits> {
  return readApprovalLimits(await stores.approvals.readLimits(session));
}

/** Whether acts, together, need a second operator. */
export async function isAboveLimit(
  { stores, now }: SumDeps,
  limits: readonly ApprovalLimits[],
  operator: string,
  credits: readonly Credited[],
): Promise<boolean> {
  const sums = new Map<string, { scope: Scope; amount: bigint }>();
  for (const { account_id, currency, amount } of credits) {
    if (amount === 0n) continue;
    for (const scope of listScopes({ operator, account_id }, currency, limits)) {
      const sum = amount + (sums.get(scope.id)?.amount ?? 0n);
      sums.set(scope.id, { scope, amount: sum });
    }
  }
  for (const { scope, amount } of sums.values()) {
    if (amount > BigInt(await stores.approvals.readAllowance([scope], now()))) return true;
  }
  return false;
}

/**
 * Counts what an act credits or writes off without a second operator, in its transaction.
 * @param at when it was done, by default now
 * @throws LimitReached
 * @see docs/operators.md#approvals
 */
export async function countCredit(
  { stores, now }: SumDeps,
  limits: readonly ApprovalLimits[],
  owners: SumOwners,
  credited: Credited,
  session: ClientSession,
  at: Date = now(),
): Promise<void> {
  const { amount, currency } = credited;
  if (amount === 0n) return;
  for (const { id, limit } of listScopes(owners, currency, limits)) {
    const counted = { amount: Number(amount), at, now: now() };
    const sum = await stores.approvals.addToSum(id, counted, session);
    if (sum <= limit) continue;
    const message = `The sum of ${id} would be ${sum}, above ${limit}.`;
    throw new LimitReached(message, credited);
  }
}
