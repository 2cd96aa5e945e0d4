import { Contention } from '../base/mongo';
import type { AuditFacts } from '../domain/account/audit-log';
import { Refusal, ServiceError } from '../domain/errors';
import type { Audit, Change } from '../store/audit';
import { describeError } from '../temporal/in-time';

/** Each attempt fails after 5 s of write conflicts. */
const ATTEMPTS_MAX = 6;

/**
 * Performs an act outside MongoDB and writes its audit line with the outcome: `done`, the code of
 * the refusal, or `unknown`. If the process dies between the two, there is no line.
 * @param describe facts of the result for the line; they may replace the outcome
 * @throws errors of the act; ServiceError `audit_line_missing` when it succeeded without its line
 */
export async function withAuditLine<Result>(
  audit: Audit,
  change: Change,
  act: () => Promise<Result>,
  describe: (result: Result) => AuditFacts = () => ({}),
): Promise<Result> {
  const write = (facts: AuditFacts) => audit({ ...change, after: { ...change.after, ...facts } });
  let result: Result;
  try {
    result = await act();
  } catch (error) {
    const isRefused = error instanceof ServiceError || error instanceof Refusal;
    // The caller must get the error of the act, even when its line cannot be written.
    await write({ outcome: isRefused ? error.code : 'unknown' }).catch(() => undefined);
    throw error;
  }
  try {
    await writeWithRetry(() => write({ outcome: 'done', ...describe(result) }));
  } catch (error) {
    const message = `The act is complete, but the audit log has no line of it: ${describeError(error)}`;
    throw new ServiceError('audit_line_missing', message);
  }
  return result;
}

async function writeWithRetry(write: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof Contention) || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}
