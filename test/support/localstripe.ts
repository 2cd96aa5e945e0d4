import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { freePort } from '../../stack/ports';
import { eventually } from './eventually';
import { installPythonTools } from './python-tools';

const REQUIREMENTS = resolve('test/connectors/stripe/requirements.txt');

/**
 * Starts a stateful fake of Stripe that we did not write, as a program of its own. It listens on all
 * addresses and has no setting for that: it must end with its tests.
 */
export async function startLocalstripe() {
  const packages = await installPythonTools(REQUIREMENTS);
  const folder = mkdtempSync(join(tmpdir(), 'localstripe-'));
  const port = await freePort();
  const args = ['-m', 'localstripe', '--from-scratch', '--port', String(port)];
  const env = { ...process.env, PYTHONPATH: packages };
  const child = spawn('python3', args, { cwd: folder, env, stdio: 'ignore' });
  const url = `http://127.0.0.1:${port}`;
  const post = async (path: string, params: Record<string, string>): Promise<void> => {
    const headers = { Authorization: 'Bearer sk_test_local' };
    const init = { method: 'POST', headers, body: new URLSearchParams(params) };
    const { status } = await fetch(`${url}${path}`, init);
    if (status !== 200) throw new Error(`localstripe answered ${status} to ${path}.`);
  };
  await eventually('localstripe', () => fetch(url).catch(() => undefined));
  return {
    url,
    /** Creates a customer, of which there is an event. */
    createCustomer: () => post('/v1/customers', { description: 'Of another system' }),
    /** Has each further event posted. */
    listen: (to: string, secret: string) =>
      post('/_config/webhooks/connector', { url: to, secret }),
    stop: async (): Promise<void> => {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true });
    },
  };
}
