const { existsSync, readFileSync } = require('node:fs');
const { join } = require('node:path');

const LINES_MAX = 30;

/** Adds to the report of a failed file what the servers in its process logged, below the failures. */
module.exports = class LogOfFailures {
  onTestResult({ path }, { numFailingTests, testExecError }) {
    if (numFailingTests === 0 && testExecError === undefined) return;
    const folder = process.env.TEST_LOGS ?? '';
    const log = join(folder, `${path.replace(/\W+/g, '-')}.log`);
    for (const file of [log, join(folder, 'product.log')]) {
      const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
      if (lines.length > 0) process.stderr.write(`${lines.slice(-LINES_MAX).join('\n')}\n`);
    }
  }
};
