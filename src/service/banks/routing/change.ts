import { inTransaction } from '../../../base/mongo';
import {
  type Capabilities,
  CONTRACT_VERSION,
  getRuleId,
  isSilent,
  listMissing,
  type RoutingRule,
  type RuleScope,
} from '../../../domain/banks/capabilities';
import { ENVIRONMENTS, type Env, isLive, toEnv } from '../../../domain/environment';
import { ServiceError } from '../../../domain/errors';
import { isPaymentMethodId, methodRules } from '../../../domain/payment/catalog';
import { isRailId, railRules } from '../../../domain/payout/rails';

import { type Connectors, isKnownMethod, isServedBy, METHODS, type Routes } from '../../../routing';
import { getPauseId, type RoutingRuleDocument } from '../../../store/connectors';
import type { WriteDeps } from '../../access';
import { findAccount } from '../../merchants/accounts';
import { assertNoted, assertServes, parseConnectors, type RuleNote } from '../connectors';

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
  assertNoted(scope, note, 'changes the routing');
  assertScope(scope);
  if (scope.account_id !== null) await findAccount(stores, scope.account_id);
  assertNamed(deps, scope, connector);
  const report = await stores.capabilities.get(connector);
  if (report !== null) assertCapable(scope, connector, report);
  else if (!unseen) {
    const message = `No process of ${connector} has reported what it serves: start it first, or add --unseen.`;
    throw new ServiceError('connector_never_seen', message);
  }
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
  assertNoted(scope, note, 'changes the routing');
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

function assertScope({ method, currency }: RuleScope): void {
  if (!isKnownMethod(method)) {
    const message = `There is no method, rail or asset ${method}: \`routing show\` lists them.`;
    throw new ServiceError('method_unknown', message);
  }
  if (currency === null) return;
  // Assets have none: settlements are paid from what payments in any currency received.
  const ofRail = isRailId(method) ? railRules(method).currencies : [];
  const currencies = isPaymentMethodId(method) ? methodRules(method).currencies : ofRail;
  if (currencies.includes(currency)) return;
  const message =
    currencies.length === 0
      ? `${method} is an asset, whose rules have no currency.`
      : `${method} has no ${currency}, only ${currencies.join(', ')}.`;
  throw new ServiceError('currency_not_supported', message);
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

/** The sandbox bank serves what no rule or variable routes. */
type Source = 'rule' | 'LIVE_CONNECTORS' | 'SANDBOX_CONNECTORS' | 'sandbox_bank';

export interface RoutingLine extends RoutingRule {
  source: Source;
  /** False when the variables do not name the rule's connector: it refuses what it is about. */
  served: boolean;
  set_at: string | null;
  operator: string | null;
  reason: string | null;
  /** Null unless an operator has paused it. */
  paused_at: string | null;
  /** Last report; null before the first. */
  seen_at: string | null;
  /** No process reports any more. */
  silent: boolean;
  /** Functions that the method needs; empty before a report. */
  missing: string[];
  /** Null before a report. */
  contract: number | null;
  /** False: `routing set` refuses the version. */
  contract_known: boolean;
}

type Route = Pick<
  RoutingLine,
  keyof RoutingRule | 'source' | 'served' | 'set_at' | 'operator' | 'reason'
>;

interface RoutingQuery {
  /** Undefined: both. */
  env?: Env | undefined;
  /** Lines that apply to it alone; undefined: all lines. */
  account_id?: string | undefined;
}

/** @throws ServiceError `account_not_found`, `setting_invalid` */
export async function listRouting(
  deps: Pick<WriteDeps, 'stores' | 'now'> & Routes,
  { env, account_id }: RoutingQuery,
): Promise<RoutingLine[]> {
  const { stores } = deps;
  if (account_id !== undefined) await findAccount(stores, account_id);
  const connectors = parseConnectors(deps);
  const rules = [...(await stores.routingRules.read()).values()];
  const reports = new Map((await stores.capabilities.list()).map((each) => [each._id, each]));
  const pauses = await stores.connectorPauses.read();
  const at = deps.now();
  const environments = ENVIRONMENTS.filter((each) => env === undefined || each === env);
  const routes = environments.map(isLive).flatMap((livemode) =>
    METHODS.flatMap((method) => {
      const own = rules.filter((rule) => rule.livemode === livemode && rule.method === method);
      const lines = own.map(({ _id, ...rule }) => {
        return { ...rule, source: 'rule' as const, served: isServedBy(connectors, rule) };
      });
      return selectLines([...presentBase(connectors, method, livemode), ...lines], account_id);
    }),
  );
  return routes.map((line) => {
    const report = reports.get(line.connector);
    const contract = report?.contract ?? null;
    return {
      ...line,
      seen_at: report?.seen_at.toISOString() ?? null,
      silent: report === undefined || isSilent(report.seen_at, at),
      missing: report === undefined ? [] : listMissing(line.method, report),
      contract,
      contract_known: contract === null || contract === CONTRACT_VERSION,
      paused_at: pauses.get(getPauseId(line))?.paused_at ?? null,
    };
  });
}

function presentBase(
  { findConnector, sandbox }: Connectors,
  method: string,
  livemode: boolean,
): Route[] {
  const connector = findConnector(method, livemode);
  if (connector === undefined) return [];
  const testSystem = connector === sandbox ? 'sandbox_bank' : 'SANDBOX_CONNECTORS';
  const source = livemode ? 'LIVE_CONNECTORS' : testSystem;
  const scope = { livemode, method, currency: null, account_id: null };
  return [
    { ...scope, connector, source, served: true, set_at: null, operator: null, reason: null },
  ];
}

/** Drops lines that decide nothing, since a rule or an account's own rule overrides them. */
function selectLines(lines: readonly Route[], account_id: string | undefined): Route[] {
  const hasRule = lines.some(
    ({ source, ...scope }) =>
      source === 'rule' && scope.currency === null && scope.account_id === null,
  );
  const general = lines.filter((line) => line.source === 'rule' || !hasRule);
  if (account_id === undefined) return general.toSorted(compareLines);
  const own = general.filter((line) => line.account_id === account_id);
  const decides = ({ currency }: Route) =>
    !own.some((line) => line.currency === null || line.currency === currency);
  const others = general.filter((line) => line.account_id === null && decides(line));
  return [...others, ...own].toSorted(compareLines);
}

/** The more general line first. */
function compareLines(a: Route, b: Route): number {
  const sortBy = ({ account_id, currency }: Route) => `${account_id ?? ''} ${currency ?? ''}`;
  return sortBy(a) < sortBy(b) ? -1 : 1;
}
