import { eventually } from '../support/http';
import { commandsIn } from './cli';
import { useResourceSetting } from './resource-setting';

const setting = useResourceSetting();

test('health of a connector that runs counts what it has, and what needs an operator', async () => {
  const { connector } = setting.service;
  const routes = { SANDBOX_CONNECTORS: `${connector}=sepa_credit_transfer`, TASK_QUEUE_PREFIX: '' };
  const { cli, json } = commandsIn({ ...setting.env, ...routes });
  const health = ['connector', 'health', connector];
  await setting.payout({ amount: 66_623 });
  const running = { running: 1, attention: 0 };
  const seen = await eventually('a process and a payout', async () => {
    const { exit, stdout } = await cli('--json', ...health);
    const answer = JSON.parse(stdout);
    return exit === 0 && answer.resources.payout.running === 1 && answer;
  });
  expect(seen).toMatchObject({
    ...{ connector, env: 'sandbox', healthy: true, faults: [], callbacks_waiting: 0 },
    instructions: { pollers: expect.any(Number), waiting: 0 },
    resources: { payout: running, refund: { running: 0, attention: 0 } },
  });
  const { stdout } = await cli(...health);
  expect(stdout).toContain('take instructions\nInstructions:');
  expect(stdout).toMatch(/Running payouts: +1\n/);
  expect(stdout).toContain('It is healthy.');
  await json('connector', 'pause', connector, '--reason', 'Ticket 42');
  expect(await json(...health)).toMatchObject({ healthy: true, pause: { reason: 'Ticket 42' } });
});
