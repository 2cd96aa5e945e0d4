import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DestinationStream } from 'pino';
import { createLogger, type Logger } from '../../src/base/log';
import { logFolder } from './servers';

/** The log of the test file that runs; the reporter shows its end when the file fails. */
const testLog: DestinationStream = {
  write: (line) => {
    const { testPath = '' } = expect.getState();
    appendFileSync(join(logFolder(), `${testPath.replace(/\W+/g, '-')}.log`), line);
  },
};

/** Writes a line, such as a seed, to the log that the reporter shows when the file fails. */
export function noteForFailure(line: string): void {
  testLog.write(`${line}\n`);
}

/** A log of the product in this process: for the report of a failure, not for the screen. */
export function createTestLogger(name: string): Logger {
  // Outside of Jest the process has a log file of its own.
  return 'expect' in globalThis
    ? createLogger(name, 'error', testLog)
    : createLogger(name, 'error');
}
