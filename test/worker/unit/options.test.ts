import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { noopMetricMeter } from '@temporalio/common';
import { DefaultLogger } from '@temporalio/worker';
import { compileWorkerOptions } from '@temporalio/worker/lib/worker-options';
import { NODE_PARTS } from '../../../stack/parts';
import { createPatchActivation, PATCHES } from '../../../worker/patches';
import { WORKER_OPTIONS } from '../../../worker/tuning';
import { readVersion, versionOptions } from '../../../worker/versioning';

describe('a worker', () => {
  test('has time to end an attempt of ten seconds before anything kills it', () => {
    const grace = Number.parseInt(WORKER_OPTIONS.shutdownGraceTime, 10);
    const force = Number.parseInt(WORKER_OPTIONS.shutdownForceTime, 10);
    const compose = readFileSync('docker-compose.yml', 'utf8');
    expect(grace).toBeGreaterThan(10);
    expect(force).toBeGreaterThan(grace);
    expect(NODE_PARTS.worker.graceMs / 1_000).toBeGreaterThan(force);
    expect(Number(/stop_grace_period: (\d+)s/.exec(compose)?.[1])).toBeGreaterThan(force);
  });

  test.each(['docker-compose.yml', 'docs/operations.md'])(
    'starts with the same flags in %s as by npm start',
    (file) => {
      const commands = readFileSync(file, 'utf8').match(/^.*\bnode\b.*dist\/worker\/main\.js.*$/gm);
      expect(commands).not.toBeNull();
      for (const flag of NODE_PARTS.worker.flags) {
        expect(commands).toEqual(commands?.map(() => expect.stringContaining(flag)));
      }
    },
  );

  test('passes the longest time of a workflow task to the SDK, which has no type for it', () => {
    const options = { taskQueue: 'any', ...WORKER_OPTIONS };
    const log = new DefaultLogger('ERROR');
    const { isolateExecutionTimeoutMs } = compileWorkerOptions(options, log, noopMetricMeter);
    expect(isolateExecutionTimeoutMs).toBe(60_000);
  });

  test('has a version only if both its deployment and its build have a name', () => {
    const read = (TEMPORAL_DEPLOYMENT_NAME: string, TEMPORAL_WORKER_BUILD_ID: string) =>
      readVersion({ TEMPORAL_DEPLOYMENT_NAME, TEMPORAL_WORKER_BUILD_ID });
    expect(read('', '')).toBeUndefined();
    expect(read('payments', '1.4.0')).toEqual({ deploymentName: 'payments', buildId: '1.4.0' });
    expect(() => read('payments', '')).toThrow(/belong together/);
    expect(() => read('', '1.4.0')).toThrow(/belong together/);
    expect(versionOptions(undefined, 'PINNED')).toEqual({});
  });
});

describe('the table of patches', () => {
  test('has every change behind `patched()`, as a text or as a constant, and no other', () => {
    const folder = join(__dirname, '../../../workflows');
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    const code = files
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(join(folder, name), 'utf8'))
      .join('\n');
    const calls = [...code.matchAll(/\bpatched\((?:'([^']+)'|(\w+))\)/g)];
    const ids = calls.map(([, text, constant]) => {
      return text ?? new RegExp(`const ${constant} = '([^']+)'`).exec(code)?.[1] ?? '';
    });
    expect(Object.keys(PATCHES).sort()).toEqual([...new Set(ids)].sort());
  });

  test('decides which changes are active', () => {
    const isActive = createPatchActivation({ new: 'inactive', old: 'active' });
    const workflowInfo = Object();
    expect(isActive({ workflowInfo, patchId: 'new' })).toBe(false);
    expect(isActive({ workflowInfo, patchId: 'old' })).toBe(true);
  });
});
