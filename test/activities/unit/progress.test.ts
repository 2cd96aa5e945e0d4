import { CancelledFailure } from '@temporalio/activity';
import { MockActivityEnvironment } from '@temporalio/testing';
import { reportProgress } from '../../../activities/shared/progress';

test('a long activity reports where it is, and ends at its first report after its worker stops', async () => {
  const heartbeats: unknown[] = [];
  const environment = new MockActivityEnvironment();
  environment.on('heartbeat', (details: unknown) => heartbeats.push(details));
  const walk = async () => {
    for (const page of [1, 2, 3, 4]) {
      if (page === 3) environment.cancel();
      reportProgress(page);
    }
  };
  await expect(environment.run(walk)).rejects.toBeInstanceOf(CancelledFailure);
  expect(heartbeats).toEqual([1, 2, 3]);
});
