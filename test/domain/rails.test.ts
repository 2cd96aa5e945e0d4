import { CURRENCIES } from '../../src/domain/currencies';
import { PAYMENT_METHOD_IDS } from '../../src/domain/payment/catalog';
import { isRailId, RAIL_IDS, railEntry, railRules } from '../../src/domain/payout/rails';
import { availableRails, type Connectors, createConnectors, routeBy } from '../../src/routing';
import { RAIL_ENTRIES } from '../support/promises';

test('the rails are those of docs/api.md#rails, each with exactly its fields', () => {
  expect(RAIL_IDS.map(railEntry)).toEqual(RAIL_ENTRIES);
});

test('currencies and what a recipient must have are those of docs/api.md#rails and docs/api.md#recipients', () => {
  const address = ['address_line1', 'city', 'postal_code'];
  const rules = Object.fromEntries(
    RAIL_IDS.map((id) => [id, [railRules(id).currencies, railRules(id).required_fields]]),
  );
  expect(rules).toEqual({
    card_payout: [CURRENCIES, ['card_number', 'date_of_birth', ...address]],
    sepa_credit_transfer: [['EUR'], ['iban', ...address]],
    sepa_instant: [['EUR'], ['iban', ...address]],
    faster_payments: [['GBP'], ['sort_code', 'account_number']],
  });
});

test.each(['card', 'CARD_PAYOUT', 'toString', '__proto__', 'ideal', ''])('%j is no rail', (id) => {
  expect(isRailId(id)).toBe(false);
});

test('no id is one of a rail and of a payment method: connectors serve both by it', () => {
  expect(PAYMENT_METHOD_IDS.filter(isRailId)).toEqual([]);
});

test.each(['acme.eu', '', 'a b', '$acme'])('%j cannot be the name of a live connector', (name) => {
  expect(() => createConnectors('sandbox', `${name}=visa`)).toThrow(/cannot be the name/);
});

const routes = (connectors: Connectors, livemode: boolean) =>
  routeBy(connectors, new Map(), { account_id: 'acct_1', livemode });

describe('which rails an account can use', () => {
  test('all in the sandbox but those it has disabled, in the order of the list', () => {
    const connectors = createConnectors('sandbox');
    expect(availableRails(routes(connectors, false), [])).toEqual(RAIL_IDS);
    expect(availableRails(routes(connectors, false), ['sepa_instant', 'card_payout'])).toEqual([
      'sepa_credit_transfer',
      'faster_payments',
    ]);
    expect(availableRails(routes(connectors, true), [])).toEqual([]);
  });

  test('live, those that LIVE_CONNECTORS names beside methods', () => {
    const live = 'acme=ideal|sepa_instant, other = faster_payments';
    const connectors = createConnectors('sandbox', live);
    expect(availableRails(routes(connectors, true), [])).toEqual([
      'sepa_instant',
      'faster_payments',
    ]);
    expect(availableRails(routes(connectors, true), ['sepa_instant'])).toEqual(['faster_payments']);
    expect(connectors.findConnector('sepa_instant', true)).toBe('acme');
    expect(connectors.findConnector('faster_payments', true)).toBe('other');
    expect(connectors.findConnector('ideal', true)).toBe('acme');
    expect(connectors.findConnector('sepa_instant', false)).toBe('sandbox');
    expect(connectors.findConnector('card_payout', true)).toBeUndefined();
  });

  test('in the sandbox, a test system of a bank goes before the sandbox bank', () => {
    const connectors = createConnectors('sandbox', 'acme=visa', 'test-acme=visa|sepa_instant');
    expect(connectors.findConnector('visa', false)).toBe('test-acme');
    expect(connectors.findConnector('visa', true)).toBe('acme');
    expect(connectors.findConnector('sepa_instant', false)).toBe('test-acme');
    expect(connectors.findConnector('sepa_instant', true)).toBeUndefined();
    expect(connectors.findConnector('ideal', false)).toBe('sandbox');
    expect(connectors.names).toEqual(['sandbox', 'acme', 'test-acme']);
    expect(connectors.liveNames).toEqual(['acme']);
  });

  test('a connector serves either live or the sandbox, since it reaches one bank', () => {
    expect(() => createConnectors('sandbox', 'acme=visa', 'acme=ideal')).toThrow(
      /^SANDBOX_CONNECTORS: acme is in LIVE_CONNECTORS, too/,
    );
    expect(() => createConnectors('sandbox', '', 'acme=sepa')).toThrow(
      /^SANDBOX_CONNECTORS: acme names no method and no rail: "sepa"/,
    );
  });

  test.each(['acme=sepa', 'acme=', 'acme', 'acme=ideal|toString'])(
    'LIVE_CONNECTORS "%s" is refused, naming the connector',
    (live) => {
      expect(() => createConnectors('sandbox', live)).toThrow(/^LIVE_CONNECTORS: acme names no/);
    },
  );
});
