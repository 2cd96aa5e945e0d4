import { DefaultLogger } from '@temporalio/worker';
import { defined } from '../domain/defined';
import type { Logger } from '../log';

/** Logger that writes Temporal's lines in our form, without fields that we don't know. */
export function temporalLogger(log: Logger): DefaultLogger {
  return new DefaultLogger('WARN', ({ level, message, meta }) => {
    const err = meta?.['error'];
    const fields = defined({
      workflow_id: meta?.['workflowId'],
      attempt: meta?.['attempt'],
      err: err instanceof Error ? err : undefined,
    });
    if (level === 'ERROR') log.error(fields, message);
    else log.warn(fields, message);
  });
}
