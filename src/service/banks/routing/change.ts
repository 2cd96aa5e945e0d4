import { inTransaction } from '../../../base/mongo';
import {
  type Capabilities,
  CONTRACT_VERSION,
  isSilent,
  listMissing,
} from '../../../domain/capabilities';
import { toEnv } from '../../../domain/environment';
import { ServiceError } from '../../../domain/errors';
import { isPaymentMethodId, methodRules } from '../../../domain/payment/catalog';
import { isRailId, railRules } from '../../../domain/payout/rails';
import { getRuleId, type RuleScope } from '../../../domain/routing-rule';
import { isKnownMethod, type Routes } from '../../../routing';
import type { RoutingRuleDocument } from '../../../store/routing-rules';
import type { WriteDeps } from '../../deps';
import { findAccount } from '../../merchants/accounts';
import { assertServes, parseConnectors } from '../connectors';

/** Required on live. */
export interface RuleNote {
  operator?: string | undefined;
  reason?: string | undefined;
}

export interface RuleChange {
  scope: RuleScope;
  /** Null without a rule. */
  before: string | null;
  after: string | null;
  /** Last report of the chosen connector's process, and whether none reports any more. */
  seen?: { seen_at: string | null; silent: boolean };
}

interface Choice {
  connector: string;
  /** Accepts a connector whose process has never reported. */
  unseen: boolean;
}

/** All are read at once. */
const RULES_MAX = 10_000;

/**
 * Routes new resources of a scope to a connector. Concurrent changes happen one after the other; a
 * repeat changes nothing.
 * @throws ServiceError `method_unknown`, `currency_not_supported`, `account_not_found`,
 * `connector_unknown`, `connector_never_seen`, `contract_unknown`, `method_not_served`,
 * `too_many_rules`, `operator_required`
 * @see docs/connectors.md#route-by-rules
 */
export async function setRule(
  deps: WriteDeps & Routes,
  scope: RuleScope,
  { connector, unseen }: Choice,
  note: RuleNote,
): Promise<RuleChange> {
  const { mongo, stores, now } = deps;
  assertNoted(scope, note);
  assertScope(scope);
  if (scope.account_id !== null) await findAccount(stores, scope.account_id);
  assertNamed(deps, scope, connector);
  const report = await stores.capabilities.get(connector);
  if (report !== null) assertCapable(scope, connector, report);
  else if (!unseen) throw refuseUnseen(connector);
  const seen = {
    seen_at: report?.seen_at.toISOString() ?? null,
    silent: report === null || isSilent(report.seen_at, now()),
  };
  const set_at = now().toISOString();
  const { operator = null, reason = null } = note;
  return await inTransaction(mongo, async (session) => {
    const rules = await stores.routingRules.read(session);
    const before = rules.get(getRuleId(scope))?.connector ?? null;
    if (before === connector) return { scope, before, after: connector, seen };
    if (before === null && rules.size >= RULES_MAX) {
      const message = `There are ${RULES_MAX} rules already, which every process reads: remove some.`;
      throw new ServiceError('too_many_rules', message);
    }
    await stores.routingRules.set({ ...scope, connector, set_at, operator, reason }, session);
    const change = { act: 'routing.set', ...describeTarget(scope) } as const;
    const after = { ...toFacts(scope), connector, ...note };
    await deps.audit({ ...change, before: { connector: before }, after }, session);
    return { scope, before, after: connector, seen };
  });
}

/**
 * Removes a rule: the next less specific one decides, or else the variables.
 * @throws ServiceError `rule_not_found`, `operator_required`
 */
export async function removeRule(
  { mongo, stores, audit }: WriteDeps,
  scope: RuleScope,
  note: RuleNote,
): Promise<RuleChange> {
  assertNoted(scope, note);
  return await inTransaction(mongo, async (session) => {
    const removed: RoutingRuleDocument | null = await stores.routingRules.remove(scope, session);
    if (removed === null) {
      const message = `There is no rule ${getRuleId(scope)}: \`routing show\` shows those there are.`;
      throw new ServiceError('rule_not_found', message);
    }
    const { connector } = removed;
    const change = { act: 'routing.removed', ...describeTarget(scope) } as const;
    const before = { ...toFacts(scope), connector };
    await audit({ ...change, before, after: { connector: null, ...note } }, session);
    return { scope, before: connector, after: null };
  });
}

/** No account, since no merchant reads which bank serves it. */
function describeTarget(scope: RuleScope) {
  return { account_id: null, livemode: scope.livemode, target: getRuleId(scope) };
}

function toFacts({ method, currency, account_id: account }: RuleScope) {
  return { method, currency, account };
}

export function assertNoted(
  { livemode }: Pick<RuleScope, 'livemode'>,
  { operator, reason }: RuleNote,
): void {
  if (!livemode || (operator !== undefined && reason !== undefined)) return;
  const message = 'On live, OPERATOR_KEY and --reason say who changes the routing and why.';
  throw new ServiceError('operator_required', message);
}

function assertScope({ method, currency }: RuleScope): void {
  if (!isKnownMethod(method)) {
    const message = `There is no method, rail or asset ${method}: \`routing show\` lists them.`;
    throw new ServiceError('method_unknown', message);
  }
  if (currency === null) return;
  const currencies = listCurrencies(method);
  if (currencies.includes(currency)) return;
  const message =
    currencies.length === 0
      ? `${method} is an asset, whose rules have no currency.`
      : `${method} has no ${currency}, only ${currencies.join(', ')}.`;
  throw new ServiceError('currency_not_supported', message);
}

/** Assets have none: settlements are paid from what payments in any currency received. */
function listCurrencies(method: string): readonly string[] {
  if (isPaymentMethodId(method)) return methodRules(method).currencies;
  return isRailId(method) ? railRules(method).currencies : [];
}

function assertNamed(routes: Routes, { livemode, method }: RuleScope, connector: string): void {
  assertServes(routes, { connector, livemode });
  const named = parseConnectors(routes).listConnectors(method, livemode);
  if (named.includes(connector)) return;
  const variable = livemode ? 'LIVE_CONNECTORS' : 'SANDBOX_CONNECTORS';
  const others = named.length === 0 ? 'none' : named.join(', ');
  throw new ServiceError(
    'method_not_served',
    `${variable} does not name ${connector} for ${method}, which in ${toEnv(livemode)} has ${others}: ` +
      `add ${connector}=${method} before the connector that serves it now.`,
  );
}

function assertCapable({ method }: RuleScope, connector: string, report: Capabilities): void {
  const { contract } = report;
  if (contract !== CONTRACT_VERSION) {
    const message =
      `${connector} reports version ${contract} of the contract, and this service has only ` +
      `version ${CONTRACT_VERSION}: run a connector of that version, or upgrade the service first.`;
    throw new ServiceError('contract_unknown', message);
  }
  const missing = listMissing(method, report);
  if (missing.length === 0) return;
  const message = missing.includes(method)
    ? `${connector} reports that it serves ${report.serves.join(', ') || 'nothing'}, and not ${method}.`
    : `${connector} reports that it has no ${missing.join(', no ')}, which ${method} needs.`;
  throw new ServiceError('method_not_served', message);
}

function refuseUnseen(connector: string): ServiceError {
  const message = `No process of ${connector} has reported what it serves: start it first, or add --unseen.`;
  return new ServiceError('connector_never_seen', message);
}
