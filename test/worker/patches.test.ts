import { randomUUID } from 'node:crypto';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { createPatchActivation } from '../../worker/patches';
import { useFixture } from '../support/fixture';
import { eventually } from '../support/http';
import { quietTemporal } from '../support/quiet';
import { runWhile } from '../support/run-while';
import { temporalAddress } from '../support/servers';
import type { changing } from './patched-workflow';

quietTemporal();
const server = useFixture(
  async () => ({
    env: await TestWorkflowEnvironment.createFromExistingServer({ address: temporalAddress() }),
  }),
  ({ env }) => env.teardown(),
);

test('a patch is inactive in its first release, active in the next, and stays active after a rollback in workflows that have met it', async () => {
  const taskQueue = `patches-${randomUUID()}`;
  const handle = await server.env.client.workflow.start<typeof changing>('changing', {
    taskQueue,
    workflowId: taskQueue,
  });
  /** Lets workers of a release take one step. @returns what all steps did */
  const release = async (state: 'active' | 'inactive', steps: number): Promise<string[]> => {
    const worker = await Worker.create({
      connection: server.env.nativeConnection,
      taskQueue,
      workflowsPath: require.resolve('./patched-workflow'),
      patchActivationCallback: createPatchActivation({ 'new-behavior': state }),
    });
    return await runWhile(worker, async () => {
      await handle.signal('step');
      return await eventually(`${steps} steps`, async () => {
        const branches = await handle.query<string[]>('taken');
        return branches.length === steps && branches;
      });
    });
  };
  const hasMarker = async () =>
    (await handle.fetchHistory()).events?.some(({ markerRecordedEventAttributes: marker }) =>
      Boolean(marker),
    );

  expect(await release('inactive', 1)).toEqual(['old']);
  expect(await hasMarker()).toBe(false);
  expect(await release('active', 2)).toEqual(['old', 'new']);
  expect(await hasMarker()).toBe(true);
  // Back to the first release, which knows the change.
  expect(await release('inactive', 3)).toEqual(['old', 'new', 'new']);
  expect(await handle.result()).toEqual(['old', 'new', 'new']);
});
