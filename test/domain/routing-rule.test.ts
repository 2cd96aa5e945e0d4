import { getRuleId, type RoutingRule } from '../../src/domain/routing-rule';
import { availableMethods, availableRails, createConnectors, routeBy } from '../../src/routing';

const RAIL = 'sepa_credit_transfer';
const connectors = createConnectors(
  'sandbox',
  `north=${RAIL}|visa,south=${RAIL},west=${RAIL}|visa,east=${RAIL},last=${RAIL}|visa`,
);

function rule(connector: string, changes: Partial<RoutingRule> = {}): RoutingRule {
  const scope = { livemode: true, method: RAIL, currency: null, account_id: null };
  return { ...scope, connector, ...changes };
}

function route(rules: RoutingRule[], account_id = 'acct_1', livemode = true) {
  const map = new Map(rules.map((each) => [getRuleId(each), each]));
  return routeBy(connectors, map, { account_id, livemode });
}

const BY_BOTH = rule('north', { account_id: 'acct_1', currency: 'EUR' });
const BY_ACCOUNT = rule('south', { account_id: 'acct_1' });
const BY_CURRENCY = rule('west', { currency: 'EUR' });
const FOR_ALL = rule('east');

test.each([
  ['account and currency', [BY_BOTH, BY_ACCOUNT, BY_CURRENCY, FOR_ALL], 'north'],
  ['the account', [BY_ACCOUNT, BY_CURRENCY, FOR_ALL], 'south'],
  ['the currency', [BY_CURRENCY, FOR_ALL], 'west'],
  ['everything', [FOR_ALL], 'east'],
  ['nothing: the variables decide', [], 'last'],
])('the most specific rule decides, here that for %s', (_name, rules, connector) => {
  expect(route(rules)(RAIL, 'EUR')).toBe(connector);
  expect(route(rules.toReversed())(RAIL, 'EUR')).toBe(connector);
});

test('a rule decides nothing beyond its account, currency, method and environment', () => {
  expect(route([BY_BOTH, BY_ACCOUNT], 'acct_2')(RAIL, 'EUR')).toBe('last');
  expect(route([BY_BOTH, BY_CURRENCY])(RAIL, 'SEK')).toBe('last');
  expect(route([BY_BOTH, BY_CURRENCY])(RAIL)).toBe('last');
  expect(route([FOR_ALL])('visa', 'EUR')).toBe('last');
  expect(route([FOR_ALL], 'acct_1', false)(RAIL, 'EUR')).toBe('sandbox');
});

test('a rule whose connector no variable names for the method serves nobody', () => {
  const gone = rule('gone', { account_id: 'acct_1' });
  const other = rule('east', { method: 'visa', account_id: 'acct_1', currency: 'USD' });
  const find = route([gone, other]);
  expect([find(RAIL, 'EUR'), find('visa', 'USD'), find('visa', 'EUR')]).toEqual([
    ...[undefined, undefined, 'last'],
  ]);
  expect(availableRails(find, [])).toEqual([]);
  // Another currency of the method is still served.
  expect(availableMethods(find, ['visa', 'ideal'])).toEqual(['visa']);
  expect(availableRails(route([gone], 'acct_2'), [])).toEqual([RAIL]);
});

test('a connector that the variables name before the last one serves nothing until a rule says so', () => {
  expect(connectors.findConnector(RAIL, true)).toBe('last');
  expect(connectors.listConnectors('visa', true)).toEqual(['north', 'west', 'last']);
  expect(connectors.liveNames).toEqual(['north', 'south', 'west', 'east', 'last']);
  const tests = createConnectors('sandbox', '', 'trial=ideal,sandbox=ideal|visa');
  expect(tests.listConnectors('ideal', false)).toEqual(['trial', 'sandbox']);
  expect(tests.findConnector('ideal', false)).toBe('sandbox');
  expect(tests.listConnectors('toString', false)).toEqual([]);
});
