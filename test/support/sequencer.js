const { default: Sequencer } = require('@jest/test-sequencer');

/** Files of the others between two of the system's. */
const BETWEEN = 7;

/**
 * Spreads the system tests over the run, from its start: each brings up a whole stack, two of which
 * at once would take both cores, and one that began last would leave the other core idle.
 */
module.exports = class SystemSpread extends Sequencer {
  async sort(tests) {
    const sorted = await super.sort(tests);
    const isSystem = ({ context }) => context.config.displayName?.name === 'system';
    const others = sorted.filter((test) => !isSystem(test));
    const spread = sorted
      .filter(isSystem)
      .flatMap((test, n) => [test, ...others.slice(n * BETWEEN, (n + 1) * BETWEEN)]);
    return [...spread, ...others.filter((test) => !spread.includes(test))];
  }
};
