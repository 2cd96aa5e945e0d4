import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { z } from 'zod';
import { LIBRARY_VARIABLES } from '../../../src/variables';
import { listVariables } from '../../../stack/usage';

const Service = z.looseObject({
  image: z.string(),
  read_only: z.literal(true),
  cap_drop: z.tuple([z.literal('ALL')]),
  security_opt: z.tuple([z.literal('no-new-privileges:true')]),
  pids_limit: z.int().positive(),
  mem_limit: z.string(),
  networks: z.array(z.enum(['core', 'edge'])).default([]),
  ports: z.array(z.string()).default([]),
  volumes: z.array(z.string()).default([]),
  environment: z.record(z.string(), z.string()).default({}),
  healthcheck: z.object({ test: z.array(z.string()) }).optional(),
});
const Compose = z.object({
  services: z.record(z.string(), Service),
  networks: z.object({ core: z.object({ internal: z.literal(true) }) }),
});

const { services } = Compose.parse(
  parse(readFileSync('docker-compose.yml', 'utf8'), { merge: true }),
);
const ours = Object.entries(services).filter(([, { image }]) => image === 'durable-payments:local');
const NAMES = new Set([
  ...listVariables().map(({ name }) => name),
  ...Object.keys(LIBRARY_VARIABLES.shape),
]);

test('only the api and the bank are published, on this machine, and the servers reach nothing else', () => {
  const published = Object.entries(services).filter(([, { ports }]) => ports.length > 0);
  expect(published.map(([name]) => name).sort()).toEqual(['api', 'sandbox-bank']);
  for (const [, { ports }] of published)
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
  expect(services['mongodb']?.networks).toEqual(['core']);
  expect(services['temporal']?.networks).toEqual(['core']);
});

test('the processes that need keys have them, and workers and banks cannot write them', () => {
  const volumes = Object.fromEntries(ours.map(([name, service]) => [name, service.volumes]));
  expect(volumes).toEqual({
    keys: ['keys:/data'],
    migrate: [],
    worker: ['keys:/data:ro'],
    'sandbox-bank': ['keys:/data:ro'],
    api: ['keys:/data'],
  });
});

test.each(ours)('%s has only variables that exist', (_name, { environment }) => {
  expect(Object.keys(environment).filter((name) => !NAMES.has(name))).toEqual([]);
});

test.each([
  ['api', 'PORT', '/readyz'],
  ['worker', 'METRICS_PORT', '/readyz'],
  ['sandbox-bank', 'SANDBOX_BANK_PORT', '/healthz'],
])('the health check of %s calls its own port', (name, variable, path) => {
  const { environment, healthcheck } = services[name] ?? {};
  expect(healthcheck?.test.at(-1)).toContain(`http://127.0.0.1:${environment?.[variable]}${path}'`);
});

test('a build sends only the files that the image copies, and runs no script of a package', () => {
  const dockerfile = readFileSync('Dockerfile', 'utf8');
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(
    ([, sources = '']) => sources.split(' '),
  );
  const [comment, all, ...sent] = readFileSync('.dockerignore', 'utf8').trim().split('\n');
  expect([comment?.[0], all]).toEqual(['#', '*']);
  expect(sent).toEqual(copied.map((source) => `!${source}`));
  const installs = dockerfile.match(/npm (?:ci|prune)[^\\\n]*/g) ?? [];
  expect(installs.filter((command) => !command.includes('--ignore-scripts'))).toEqual([]);
});
