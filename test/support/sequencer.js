const { default: Sequencer } = require('@jest/test-sequencer');

/** Files of the others between two of the system's. */
const BETWEEN = 7;

/** Files of the others that take a minute or more: one that began last would be waited for alone. */
const LONG = [
  'connectors/conformance/mutants',
  'connectors/conformance/connectors',
  'workflows/audit/resume',
  'api/webhooks',
  'connectors/sepa/files',
  'api/bank-reports',
  'workflows/shared/missed',
  'workflows/payment/lifecycle',
  'connectors/http/example',
  'connectors/conformance/sepa',
  'connectors/sepa/bank-days',
  'connectors/sepa/payouts',
  'api/idempotency-outage',
  'dashboard/attacks',
  'api/limits',
  'api/clock',
].map((name) => `/test/${name}.test.ts`);

/**
 * Spreads the system tests over the run, from its start: each brings up a whole stack, of which more
 * at once would take all cores, and one that began last would leave the others idle.
 */
module.exports = class SystemSpread extends Sequencer {
  async sort(tests) {
    const sorted = await super.sort(tests);
    const isSystem = ({ context }) => context.config.displayName?.name === 'system';
    const isLong = ({ path }) => LONG.some((name) => path.replaceAll('\\', '/').endsWith(name));
    const rest = sorted.filter((test) => !isSystem(test));
    const others = [...rest.filter(isLong), ...rest.filter((test) => !isLong(test))];
    const spread = sorted
      .filter(isSystem)
      .flatMap((test, n) => [test, ...others.slice(n * BETWEEN, (n + 1) * BETWEEN)]);
    return [...spread, ...others.filter((test) => !spread.includes(test))];
  }
};
