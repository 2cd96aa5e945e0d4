import { getRuleId, type RoutingRule } from '../../src/domain/banks/capabilities';
import { CURRENCIES } from '../../src/domain/money/money';
import { PAYMENT_METHOD_IDS } from '../../src/domain/payment/catalog';
import {
  isRailId,
  RAIL_IDS,
  type RailId,
  railEntry,
  railRules,
} from '../../src/domain/payout/rails';
import { availableMethods, availableRails, createConnectors, routeBy } from '../../src/routing';
import { RAIL_ENTRIES } from '../support/promises';

const RAIL = 'sepa_credit_transfer';
const connectors = createConnectors(
  'sandbox',
  `north=${RAIL}|visa,south=${RAIL},west=${RAIL}|visa,east=${RAIL},last=${RAIL}|visa`,
);

function buildRule(connector: string, changes: Partial<RoutingRule> = {}): RoutingRule {
  const scope = { livemode: true, method: RAIL, currency: null, account_id: null };
  return { ...scope, connector, ...changes };
}

function route(rules: RoutingRule[], account_id = 'acct_1', livemode = true, by = connectors) {
  const map = new Map(rules.map((rule) => [getRuleId(rule), rule]));
  return routeBy(by, map, { account_id, livemode });
}

describe('the rails', () => {
  test('are those of docs/api.md#rails, each with exactly its fields', () => {
    expect(RAIL_IDS.map(railEntry)).toEqual(RAIL_ENTRIES);
  });

  test('have the currencies and required fields of docs/api.md#rails and docs/api.md#recipients', () => {
    const address = ['address_line1', 'city', 'postal_code'];
    const entries = RAIL_IDS.map((id) => [id, railRules(id)] as const);
    const rules = entries.map(([id, rail]) => [id, rail.currencies, rail.required_fields]);
    expect(rules).toEqual([
      ['card_payout', CURRENCIES, ['card_number', 'date_of_birth', ...address]],
      ['sepa_credit_transfer', ['EUR'], ['iban', ...address]],
      ['sepa_instant', ['EUR'], ['iban', ...address]],
      ['faster_payments', ['GBP'], ['sort_code', 'account_number']],
    ]);
  });

  test('share no id with payment methods, since connectors serve both by it', () => {
    const others = ['card', 'CARD_PAYOUT', 'toString', '__proto__', 'ideal', ''];
    expect([...PAYMENT_METHOD_IDS, ...others].filter(isRailId)).toEqual([]);
  });
});

describe('connectors', () => {
  const listRails = (by: typeof connectors, livemode: boolean, disabled: RailId[] = []) =>
    availableRails(route([], 'acct_1', livemode, by), disabled);

  test('serve all rails in the sandbox but those that the account has disabled', () => {
    const sandbox = createConnectors('sandbox');
    expect(listRails(sandbox, false)).toEqual(RAIL_IDS);
    const others = listRails(sandbox, false, ['sepa_instant', 'card_payout']);
    expect(others).toEqual(['sepa_credit_transfer', 'faster_payments']);
    expect(listRails(sandbox, true)).toEqual([]);
  });

  test('serve live only the rails and methods that LIVE_CONNECTORS names', () => {
    const live = createConnectors('sandbox', 'acme=ideal|sepa_instant, other = faster_payments');
    expect(listRails(live, true)).toEqual(['sepa_instant', 'faster_payments']);
    expect(listRails(live, true, ['sepa_instant'])).toEqual(['faster_payments']);
    const served = ['sepa_instant', 'faster_payments', 'ideal', 'card_payout'] as const;
    const found = served.map((method) => live.findConnector(method, true));
    expect(found).toEqual(['acme', 'other', 'acme', undefined]);
    expect(live.findConnector('sepa_instant', false)).toBe('sandbox');
  });

  test('of a test system of a bank come before the sandbox bank', () => {
    const both = createConnectors('sandbox', 'acme=visa', 'test-acme=visa|sepa_instant');
    const find = (livemode: boolean) =>
      (['visa', 'sepa_instant', 'ideal'] as const).map((each) =>
        both.findConnector(each, livemode),
      );
    expect(find(false)).toEqual(['test-acme', 'test-acme', 'sandbox']);
    expect(find(true)).toEqual(['acme', undefined, undefined]);
    expect(both.names).toEqual(['sandbox', 'acme', 'test-acme']);
    expect(both.liveNames).toEqual(['acme']);
  });

  test('that are not the last ones named serve nothing until a rule names them', () => {
    expect(connectors.findConnector(RAIL, true)).toBe('last');
    expect(connectors.listConnectors('visa', true)).toEqual(['north', 'west', 'last']);
    expect(connectors.liveNames).toEqual(['north', 'south', 'west', 'east', 'last']);
    const trial = createConnectors('sandbox', '', 'trial=ideal,sandbox=ideal|visa');
    expect(trial.listConnectors('ideal', false)).toEqual(['trial', 'sandbox']);
    expect(trial.findConnector('ideal', false)).toBe('sandbox');
    expect(trial.listConnectors('toString', false)).toEqual([]);
  });

  test.each([
    ['acme.eu=visa', '', /cannot be the name/],
    ['=visa', '', /cannot be the name/],
    ['a b=visa', '', /cannot be the name/],
    ['$acme=visa', '', /cannot be the name/],
    ['acme=sepa', '', /^LIVE_CONNECTORS: acme names no/],
    ['acme=', '', /^LIVE_CONNECTORS: acme names no/],
    ['acme', '', /^LIVE_CONNECTORS: acme names no/],
    ['acme=ideal|toString', '', /^LIVE_CONNECTORS: acme names no/],
    ['acme=visa', 'acme=ideal', /^SANDBOX_CONNECTORS: acme is in LIVE_CONNECTORS, too/],
    ['', 'acme=sepa', /^SANDBOX_CONNECTORS: acme names no method and no rail: "sepa"/],
  ])('are refused as LIVE_CONNECTORS "%s" and SANDBOX_CONNECTORS "%s"', (live, sandbox, fault) => {
    expect(() => createConnectors('sandbox', live, sandbox)).toThrow(fault);
  });
});

describe('a routing rule', () => {
  const BY_BOTH = buildRule('north', { account_id: 'acct_1', currency: 'EUR' });
  const BY_ACCOUNT = buildRule('south', { account_id: 'acct_1' });
  const BY_CURRENCY = buildRule('west', { currency: 'EUR' });
  const FOR_ALL = buildRule('east');

  test.each([
    ['account and currency', [BY_BOTH, BY_ACCOUNT, BY_CURRENCY, FOR_ALL], 'north'],
    ['the account', [BY_ACCOUNT, BY_CURRENCY, FOR_ALL], 'south'],
    ['the currency', [BY_CURRENCY, FOR_ALL], 'west'],
    ['everything', [FOR_ALL], 'east'],
    ['nothing, so that the variables decide', [], 'last'],
  ])('decides where it is the most specific one, here for %s', (_name, rules, connector) => {
    expect(route(rules)(RAIL, 'EUR')).toBe(connector);
    expect(route(rules.toReversed())(RAIL, 'EUR')).toBe(connector);
  });

  test('decides nothing beyond its account, currency, method and environment', () => {
    expect(route([BY_BOTH, BY_ACCOUNT], 'acct_2')(RAIL, 'EUR')).toBe('last');
    const inEuros = route([BY_BOTH, BY_CURRENCY]);
    expect([inEuros(RAIL, 'SEK'), inEuros(RAIL)]).toEqual(['last', 'last']);
    expect(route([FOR_ALL])('visa', 'EUR')).toBe('last');
    expect(route([FOR_ALL], 'acct_1', false)(RAIL, 'EUR')).toBe('sandbox');
  });

  test('serves nothing when the variables do not name its connector for the method', () => {
    const gone = buildRule('gone', { account_id: 'acct_1' });
    const other = buildRule('east', { method: 'visa', account_id: 'acct_1', currency: 'USD' });
    const find = route([gone, other]);
    expect(find(RAIL, 'EUR')).toBeUndefined();
    expect(find('visa', 'USD')).toBeUndefined();
    expect(find('visa', 'EUR')).toBe('last');
    expect(availableRails(find, [])).toEqual([]);
    // Another currency of the method is still served.
    expect(availableMethods(find, ['visa', 'ideal'])).toEqual(['visa']);
    expect(availableRails(route([gone], 'acct_2'), [])).toEqual([RAIL]);
  });
});
