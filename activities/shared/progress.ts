import { cancellationSignal, heartbeat } from '@temporalio/activity';

/**
 * Shows that a long activity is alive, and how far it is.
 * @param progress what the next try continues from
 * @throws CancelledFailure once its worker, which is stopping, waits for it no longer
 */
export function reportProgress(progress?: unknown): void {
  heartbeat(progress);
  cancellationSignal().throwIfAborted();
}
