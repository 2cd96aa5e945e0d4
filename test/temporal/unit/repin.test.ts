import { createRepin } from '../../../src/temporal/status';

test('a delivery is moved to the current version though Temporal gave no answer about the delivery before it', async () => {
  const version = (buildId: string) => ({ deploymentName: 'payments', buildId });
  const describeTaskQueue = jest
    .fn()
    .mockRejectedValueOnce(new Error('busy'))
    .mockResolvedValue({});
  const current = { currentDeploymentVersion: version('new') };
  const update = jest.fn().mockResolvedValue({});
  const client = Object.assign(Object.create(null), {
    options: { namespace: 'default', identity: 'test' },
    workflowService: {
      describeTaskQueue,
      describeWorkerDeployment: async () => ({ workerDeploymentInfo: { routingConfig: current } }),
      updateWorkflowExecutionOptions: update,
    },
  });
  const repin = createRepin(client, () => new Date());
  const run = {
    ...{ status: 'RUNNING', runId: 'run', taskQueue: 'webhooks', pinnedTo: version('old') },
    ...{ hasTask: false, activityIds: [] },
  };
  await expect(repin('webhook:1', run)).rejects.toThrow('busy');
  for (const id of ['webhook:2', 'webhook:3']) await repin(id, run);
  expect(update.mock.calls.map(([{ workflowExecution }]) => workflowExecution.workflowId)).toEqual([
    'webhook:2',
    'webhook:3',
  ]);
  expect(describeTaskQueue).toHaveBeenCalledTimes(2);
});
