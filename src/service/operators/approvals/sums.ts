import type { ClientSession } from 'mongodb';
import {
  type ApprovalLimits,
  type Credited,
  listScopes,
  readApprovalLimits,
  type Scope,
  type SumOwners,
} from '../../../domain/approval';
import type { Stores } from '../../../store';

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
