/** Null: any. */
export interface RuleScope {
  livemode: boolean;
  /** Method, rail, or asset pair such as `eth_ethereum`. */
  method: string;
  currency: string | null;
  account_id: string | null;
}

/** Applies to new resources. @see docs/connectors.md#route-by-rules */
export interface RoutingRule extends RuleScope {
  connector: string;
}

/** Keyed by `getRuleId`. */
export type RuleMap<Rule extends RoutingRule> = ReadonlyMap<string, Rule>;

/** A scope has one rule. */
export function getRuleId({ livemode, method, currency, account_id }: RuleScope): string {
  return [livemode ? 'live' : 'sandbox', method, currency ?? ANY, account_id ?? ANY].join(':');
}

const ANY = '*';

/** Order: account and currency, account, currency, neither. */
export function findRule<Rule extends RoutingRule>(
  rules: RuleMap<Rule>,
  resource: {
    livemode: boolean;
    method: string;
    currency?: string | undefined;
    account_id: string;
  },
): Rule | undefined {
  const { livemode, method, currency = null, account_id } = resource;
  const scopes = [
    { account_id, currency },
    { account_id, currency: null },
    { account_id: null, currency },
    { account_id: null, currency: null },
  ];
  for (const scope of scopes) {
    const rule = rules.get(getRuleId({ livemode, method, ...scope }));
    if (rule !== undefined) return rule;
  }
  return undefined;
}
