import { Refusal } from '../../domain/errors';
import {
  type ClockStart,
  type ClockTarget,
  readAccountTime,
  toAccountTime,
} from '../../domain/merchants/clock';
import { type ClockRequest, planAdvance } from '../../domain/merchants/clock-request';
import { KINDS, LIFECYCLES } from '../../lifecycles';
import type { Connectors } from '../../routing';
import type { AccountDocument } from '../../store/accounts';
import type { Owner, ServiceDeps } from '../access';

type ClockDeps = Pick<ServiceDeps, 'stores' | 'now'>;

interface StopDeps extends ClockDeps {
  temporal: { stopAdvance: (clock: ClockStart) => Promise<void> };
  connectors: Pick<Connectors, 'sandbox'>;
}

interface AdvanceDeps extends ClockDeps {
  temporal: { startAdvance: (clock: ClockStart, target: ClockTarget) => Promise<void> };
  connectors: Pick<Connectors, 'sandbox'>;
}

/** An advance asks each of them several times, on servers that it shares with other accounts. */
const IN_FLIGHT_MAX = 5_000;

export async function accountNow(
  { stores, now }: { stores: Pick<ClockDeps['stores'], 'accounts'>; now: () => Date },
  { account_id, livemode }: Owner,
): Promise<Date> {
  const at = now();
  if (livemode) return at;
  const account = await stores.accounts.getCached(account_id);
  return toAccountTime(readAccountTime(livemode, account?.clock), at);
}

/** @throws Refusal 403 `sandbox_only` */
export function refuseLiveClock({ livemode }: Owner): void {
  if (livemode) throw new Refusal('sandbox_only', 'Only the sandbox has a clock that moves.');
}

/** @see docs/api.md#sandbox-clock */
export async function getClock({ stores, now }: ClockDeps, account_id: string) {
  const { clock } = (await stores.accounts.get(account_id)) ?? {};
  const { offset_ms = 0, target, behind = [] } = clock ?? {};
  return {
    object: 'clock',
    now: new Date(now().getTime() + offset_ms).toISOString(),
    offset_seconds: Math.round(offset_ms / 1_000),
    state: target === undefined ? 'standing' : 'advancing',
    target: target?.at ?? null,
    behind,
  };
}

/**
 * @throws Refusal 400; 409 `clock_advancing`; 422 `clock_too_busy`; 503 `temporarily_unavailable`:
 *   outcome unknown
 */
export async function advanceClock(deps: AdvanceDeps, account_id: string, request: ClockRequest) {
  const stored: Pick<AccountDocument, 'clock'> | null = await deps.stores.accounts.get(account_id);
  const target = planAdvance(request, stored?.clock, deps.now());
  if ('fault' in target) {
    const { field, fault: message } = target;
    const details = [{ code: 'invalid', field, message }];
    throw new Refusal('invalid_request', `${field}: ${message}.`, { details });
  }
  let count = 0;
  for (const kind of KINDS) {
    count += await LIFECYCLES[kind].countOf(deps.stores, account_id, IN_FLIGHT_MAX + 1 - count);
    if (count > IN_FLIGHT_MAX) {
      const message = `More than ${IN_FLIGHT_MAX} resources of the account are in progress.`;
      throw new Refusal('clock_too_busy', message);
    }
  }
  const connector = deps.connectors.sandbox;
  await deps.temporal.startAdvance({ account_id, connector }, target);
  return await getClock(deps, account_id);
}

/** Lets the clock stand where it is. @throws Refusal 503 `temporarily_unavailable`: try again */
export async function stopClock(deps: StopDeps, account_id: string) {
  const stored = await deps.stores.accounts.get(account_id);
  if (stored?.clock?.target !== undefined) {
    await deps.temporal.stopAdvance({ account_id, connector: deps.connectors.sandbox });
  }
  return await getClock(deps, account_id);
}
