import { Context } from '@temporalio/activity';

/** Well within the heartbeat timeout that the workflow sets. */
const HEARTBEAT_MS = 3_000;

/**
 * Shows that a try still runs, so that the next one follows soon after a lost worker. Each report
 * repeats an attempt that an earlier try could not store.
 */
export async function whileHeartbeating<T>(work: () => Promise<T>): Promise<T> {
  const context = Context.current();
  const report = () => context.heartbeat(context.info.heartbeatDetails);
  const timer = setInterval(report, HEARTBEAT_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
