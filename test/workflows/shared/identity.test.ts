import { randomUUID } from 'node:crypto';
import { useWorkflowSetting } from '../../support/workflow-setting';

const setting = useWorkflowSetting();

describe.each(['payment', 'refund', 'payout'])('a %s started by hand', (type) => {
  const start = (workflowId: string, input: object) =>
    setting.env.client.workflow.start(type, {
      workflowId,
      taskQueue: setting.queues.lifecycle,
      args: [{ resume: true, request_id: 'r', ...input }],
    });

  test.each([
    ['with its id misspelt', { [`${type}Id`]: randomUUID() }, 'is required'],
    ['with an id that is none', { [`${type}_id`]: 'first' }, 'must be a UUID'],
    ['under the id of another', { [`${type}_id`]: randomUUID() }, 'must be the id that'],
  ])('%s ends before it reads anything', async (_, input, fault) => {
    const handle = await start(`${type}:${randomUUID()}`, input);
    await expect(handle.result()).rejects.toMatchObject({
      cause: { type: 'invalid_request', message: expect.stringContaining(fault) },
    });
    const { events = [] } = await handle.fetchHistory();
    expect(events?.filter((event) => event.activityTaskScheduledEventAttributes)).toEqual([]);
  });
});
