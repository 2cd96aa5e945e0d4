import {
  type Capabilities,
  CONTRACT_VERSION,
  isSilent,
  listMissing,
} from '../../../domain/capabilities';
import { ENVIRONMENTS, type Env, isLive } from '../../../domain/environment';
import type { RoutingRule } from '../../../domain/routing-rule';
import { type Connectors, isServedBy, METHODS, type Routes } from '../../../routing';
import { getPauseId } from '../../../store/connector-pauses';
import type { RoutingRuleDocument } from '../../../store/routing-rules';
import type { WriteDeps } from '../../deps';
import { findAccount } from '../../merchants/accounts';
import { parseConnectors } from '../connectors';

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

type Route = Omit<
  RoutingLine,
  'paused_at' | 'seen_at' | 'silent' | 'missing' | 'contract' | 'contract_known'
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
      const lines = own.map((rule) => presentRule(connectors, rule));
      return selectLines([...presentBase(connectors, method, livemode), ...lines], account_id);
    }),
  );
  return routes.map((line) => ({
    ...addReport(line, reports.get(line.connector), at),
    paused_at: pauses.get(getPauseId(line))?.paused_at ?? null,
  }));
}

function addReport(
  route: Route,
  report: (Capabilities & { seen_at: Date }) | undefined,
  at: Date,
): Omit<RoutingLine, 'paused_at'> {
  if (report === undefined) {
    const unknown = { contract: null, contract_known: true };
    return { ...route, seen_at: null, silent: true, missing: [], ...unknown };
  }
  const { seen_at } = report;
  const { contract } = report;
  return {
    ...{ ...route, seen_at: seen_at.toISOString(), silent: isSilent(seen_at, at) },
    ...{ missing: listMissing(route.method, report), contract },
    contract_known: contract === CONTRACT_VERSION,
  };
}

function presentRule(connectors: Connectors, { _id, ...rule }: RoutingRuleDocument): Route {
  return { ...rule, source: 'rule', served: isServedBy(connectors, rule) };
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
  const hasRule = lines.some((line) => line.source === 'rule' && isForAll(line));
  const general = lines.filter((line) => line.source === 'rule' || !hasRule);
  if (account_id === undefined) return general.toSorted(compareLines);
  const own = general.filter((line) => line.account_id === account_id);
  const decides = ({ currency }: Route) =>
    !own.some((line) => line.currency === null || line.currency === currency);
  const others = general.filter((line) => line.account_id === null && decides(line));
  return [...others, ...own].toSorted(compareLines);
}

function isForAll({ currency, account_id }: Route): boolean {
  return currency === null && account_id === null;
}

/** The more general line first. */
function compareLines(a: Route, b: Route): number {
  const sortBy = ({ account_id, currency }: Route) => `${account_id ?? ''} ${currency ?? ''}`;
  return sortBy(a) < sortBy(b) ? -1 : 1;
}
