import { DefaultLogger } from '@temporalio/worker';
import type { Logger } from '../log';

/** Temporal's own lines in the form of ours, without the fields that we don't know. */
export function temporalLogger(log: Logger): DefaultLogger {
  return new DefaultLogger('WARN', ({ level, message, meta }) => {
    const err = meta?.['error'];
    const fields = {
      workflow_id: meta?.['workflowId'],
      attempt: meta?.['attempt'],
      ...(err instanceof Error ? { err } : {}),
    };
    if (level === 'ERROR') log.error(fields, message);
    else log.warn(fields, message);
  });
}
