import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { freePort } from '../../stack/ports';
import { needTool, runCommand } from '../../stack/provision/command';
import { PLATFORM } from '../../stack/provision/download';
import type { Server } from '../../stack/provision/provision';
import { eventually } from './eventually';
import { provisionQuietly } from './programs';
import { describeWith } from './python-tools';

/** Has the version of the API that the connector pins; a newer one refuses it. */
const VERSION = '0.203.0';
const EXECUTABLE = 'stripe-mock';
const MODULE = 'github.com/stripe/stripe-mock';
const DOCUMENT = 'embedded/openapi/spec3.json';

const stripeMock: Server = {
  name: EXECUTABLE,
  // One on PATH would lack its OpenAPI document.
  installed: async () => undefined,
  routes: [
    {
      name: `stripe-mock ${VERSION} from its Go module`,
      folder: `stripe-mock-${VERSION}-${PLATFORM}`,
      executable: EXECUTABLE,
      megabytes: 300,
      fetch: async (folder, task, { env, signal }) => {
        const go = needTool('go');
        task.say('building with Go');
        const paths = { GOBIN: folder, GOPATH: join(folder, 'path'), GOFLAGS: '-modcacherw' };
        const options = { cwd: folder, env: { ...env, ...paths }, signal, timeoutMs: 300_000 };
        await runCommand(go, ['install', `${MODULE}@v${VERSION}`], options);
      },
    },
  ],
  help: ['install Go'],
};

/** Describes tests that need Stripe's own mock, which is built with Go. Without it, they are skipped. */
export function describeWithStripeMock(title: string, tests: () => void): void {
  describeWith('go', title, tests);
}

/** Starts Stripe's mock, which knows no state, and checks the form of each request. */
export async function startStripeMock() {
  const path = await provisionQuietly(stripeMock);
  const [http, https] = [await freePort(), await freePort()];
  const own = (port: number) => `127.0.0.1:${port}`;
  const args = ['-strict-version-check', '-http-addr', own(http), '-https-addr', own(https)];
  const child = spawn(path, args, { stdio: 'ignore' });
  const url = `http://${own(http)}`;
  await eventually('stripe-mock', () => fetch(url).catch(() => undefined));
  const document = join(dirname(path), 'path/pkg/mod', `${MODULE}@v${VERSION}`, DOCUMENT);
  return {
    url,
    openApi: () => JSON.parse(readFileSync(document, 'utf8')),
    stop: async (): Promise<void> => {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}
