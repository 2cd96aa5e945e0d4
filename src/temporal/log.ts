import { DefaultLogger } from '@temporalio/worker';
import type { Logger } from '../base/log';
import { omitUndefined } from '../domain/defined';

/** Writes Temporal's log lines in our format. */
export function temporalLogger(log: Logger): DefaultLogger {
  return new DefaultLogger('WARN', ({ level, message, meta }) => {
    const err = meta?.['error'];
    const fields = omitUndefined({
      workflow_id: meta?.['workflowId'],
      attempt: meta?.['attempt'],
      err: err instanceof Error ? err : undefined,
    });
    if (level === 'ERROR') log.error(fields, message);
    else log.warn(fields, message);
  });
}
