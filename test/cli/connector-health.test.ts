import { randomUUID } from 'node:crypto';
import { eventually } from '../support/http';
import { commandsIn } from './cli';
import { useResourceSetting } from './resource-setting';

const prefix = `health-${randomUUID().slice(0, 8)}`;
const setting = useResourceSetting({ live: { connectors: '', prefix } });

test('health of a connector that runs counts what it has, and what needs an operator', async () => {
  const { connector } = setting.service;
  const routes = { SANDBOX_CONNECTORS: `${connector}=sepa_credit_transfer` };
  const { cli, json } = commandsIn({ ...setting.env, ...routes });
  const health = ['connector', 'health', connector];
  // One by SEPA Instant would need an operator after a minute.
  const recipient_id = setting.shop.recipients.card_payout;
  await setting.payout({ amount: 66_623, method: 'card_payout', recipient_id });
  const running = { running: 1, attention: 0 };
  const seen = await eventually('a process and a payout', async () => {
    const { exit, stdout } = await cli('--json', ...health);
    const answer = JSON.parse(stdout);
    const { instructions, resources } = answer;
    const isQuiet = instructions.waiting === 0 && resources.payout.running === 1;
    return exit === 0 && isQuiet && answer;
  });
  expect(seen).toMatchObject({
    ...{ connector, env: 'sandbox', healthy: true, faults: [], callbacks_waiting: 0 },
    instructions: { pollers: expect.any(Number), waiting: 0 },
    resources: { payout: running, refund: { running: 0, attention: 0 } },
  });
  const { stdout } = await cli(...health);
  expect(stdout).toContain('take instructions\nInstructions:');
  expect(stdout).toMatch(/Running payouts: +1\n/);
  expect(stdout).toContain('No fault is known.');
  await json('connector', 'pause', connector, '--reason', 'Ticket 42');
  expect(await json(...health)).toMatchObject({ healthy: true, pause: { reason: 'Ticket 42' } });
});
