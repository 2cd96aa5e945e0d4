import { randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { OperationalError } from '../../src/base/errors';
import { freePort, LOOPBACK } from '../../stack/ports';
import { buildSettledEvents } from '../product/documents';
import type { Setting } from '../servers/config';
import { type Supervised, superviseProcesses } from '../servers/supervised';
import { isHealthy, outpostParts } from './parts';
import type { Programs } from './provision';
import { type Ports, TOPIC } from './settings';
import { interleave, MERCHANTS, type System } from './system';

/** Events for each of the product's: about the ratio of their rates. */
const SHARE = 20;
const CALL_MS_MAX = 10_000;
/** Time after which the attempts of a run are in PostgreSQL. */
const LOGGED_MS = 2_000;
const HEALTH_POLL_MS = 500;
const HEALTHY_MS_MAX = 240_000;

/** Liveness probe of Outpost's Helm chart, at Kubernetes' default of three failures. */
const LIVENESS = { everyMs: 30_000, failuresMax: 3 };

/** Runs `work` with Outpost, Redis, RabbitMQ and PostgreSQL, of which nothing is left afterwards. */
export async function withOutpost<T>(
  { dir: parent, env, progress, signal, broken }: Setting,
  { programs, receiverUrl }: { programs: Programs; receiverUrl: string },
  work: (system: System) => Promise<T>,
): Promise<T> {
  const dir = join(parent, 'outpost');
  mkdirSync(dir, { recursive: true });
  const ports = await choosePorts();
  const secrets = { apiKey: randomUUID(), jwt: randomUUID(), encryption: createKey() };
  const processes = superviseProcesses(signal);
  const pool = new Pool(`http://${LOOPBACK}:${ports.api}`, { headersTimeout: CALL_MS_MAX });
  let liveness: NodeJS.Timeout | undefined;
  try {
    for (const stage of outpostParts({ programs, ports, secrets, dir, env })) {
      const names = stage.map(({ name }) => name).join(', ');
      await progress.during(`Starting ${names}`, () => processes.start(stage));
    }
    liveness = restartWhenUnhealthy(ports.api, processes, (text) => progress.line(text));
    const call = createClient(pool, secrets.apiKey);
    const tenants = await openTenants(call, receiverUrl);
    const { pids } = processes;
    const system = buildSystem({ call, tenants, pids, apiPort: ports.api, signal });
    return await Promise.race([work(system), broken]);
  } finally {
    clearInterval(liveness);
    await progress.during('Stopping Outpost', () => processes.stop());
    await pool.destroy();
  }
}

async function choosePorts(): Promise<Ports> {
  return {
    api: await freePort(),
    redis: await freePort(),
    postgres: await freePort(),
    rabbitmq: await freePort(),
    distribution: await freePort(),
    epmd: await freePort(),
  };
}

function createKey(): string {
  return randomBytes(16).toString('hex');
}

type Call = (method: 'PUT' | 'POST', path: string, body: unknown) => Promise<void>;

/** Builds what calls Outpost's API. It throws unless the answer is a success. */
function createClient(pool: Pool, apiKey: string): Call {
  return async (method, path, body) => {
    const { statusCode, body: answer } = await pool.request({
      method,
      path: `/api/v1${path}`,
      body: JSON.stringify(body),
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    });
    const text = await answer.text();
    if (statusCode >= 300)
      throw new OperationalError(`${method} ${path} answers ${statusCode} ${text}`);
  };
}

async function openTenants(call: Call, url: string): Promise<string[]> {
  const tenants = Array.from({ length: MERCHANTS }, (_, n) => `merchant-${n}`);
  for (const tenant of tenants) {
    await call('PUT', `/tenants/${tenant}`, {});
    const destination = { type: 'webhook', topics: [TOPIC], config: { url } };
    await call('POST', `/tenants/${tenant}/destinations`, destination);
  }
  return tenants;
}

interface Deps {
  call: Call;
  tenants: readonly string[];
  pids: System['pids'];
  apiPort: number;
  signal: AbortSignal;
}

function buildSystem({ call, tenants, pids, apiPort, signal }: Deps): System {
  return {
    name: 'outpost',
    pids,
    parts: ['Outpost', 'Redis', 'RabbitMQ', 'PostgreSQL'],
    share: SHARE,
    // The body is the product's, so that both post as many bytes.
    buildEvents: (count) =>
      interleave(count, (n, each) => buildSettledEvents(tenants[n] ?? '', each)),
    publish: ({ _id: id, account_id: tenant_id, body }) =>
      call('POST', '/publish', { id, tenant_id, topic: TOPIC, data: JSON.parse(body) }),
    settle: async () => {
      const giveUpAt = Date.now() + HEALTHY_MS_MAX;
      while (!(await isWell(apiPort))) {
        if (Date.now() > giveUpAt) throw new OperationalError('Outpost does not recover.');
        await sleep(HEALTH_POLL_MS, undefined, { signal });
      }
      await sleep(LOGGED_MS, undefined, { signal });
    },
  };
}

function isWell(port: number): Promise<boolean> {
  return isHealthy(port).then(
    () => true,
    () => false,
  );
}

/** Restarts Outpost as its orchestrator would. */
function restartWhenUnhealthy(
  port: number,
  { restart }: Pick<Supervised, 'restart'>,
  say: (line: string) => void,
): NodeJS.Timeout {
  let failures = 0;
  return setInterval(async () => {
    failures = (await isWell(port)) ? 0 : failures + 1;
    if (failures < LIVENESS.failuresMax) return;
    failures = 0;
    say('Outpost: unhealthy three times in a row, restarting it');
    await restart('Outpost');
  }, LIVENESS.everyMs);
}
