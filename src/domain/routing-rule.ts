/** New resources that a rule is about. Null: any currency, or any account. */
export interface RuleScope {
  livemode: boolean;
  /** Payment method, rail, or pair of an asset, such as `eth_ethereum`. */
  method: string;
  currency: string | null;
  account_id: string | null;
}

/** Operator's choice of the connector for new resources. @see docs/connectors.md#route-by-rules */
export interface RoutingRule extends RuleScope {
  connector: string;
}

/** Rules by `getRuleId`. */
export type RuleMap<Rule extends RoutingRule> = ReadonlyMap<string, Rule>;

/** Names a scope, for which there is one rule. */
export function getRuleId({ livemode, method, currency, account_id }: RuleScope): string {
  return [livemode ? 'live' : 'sandbox', method, currency ?? ANY, account_id ?? ANY].join(':');
}

const ANY = '*';

/** Finds the most specific rule: of account and currency, account, currency, or neither. */
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
