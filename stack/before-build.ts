import './node-version';
import { resolve } from 'node:path';
import { lockDataDir } from './data-dir';
import { failureLine } from './terminal';

/**
 * Refuses a second start on the same data before it builds: the build would replace the code that
 * commands and restarting parts of the first one load.
 */
try {
  lockDataDir(resolve(process.env['DATA_DIR'] || '.data'))();
} catch (error) {
  console.error(failureLine(error));
  process.exitCode = 1;
}
