import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { ENVIRONMENTS } from '../../../src/domain/environment';
import { RESOURCES } from '../../../src/domain/resources';
import { LIBRARY_VARIABLES } from '../../../src/variables';
import { MONGO_USERS } from '../../../stack/mongo-server';
import { NODE_PARTS } from '../../../stack/parts';
import { listVariables } from '../../../stack/usage';

const FOLDER = 'deploy/kubernetes';
const NAMES = new Set(listVariables().map(({ name }) => name));

const Probe = z.object({
  httpGet: z.object({ path: z.string(), port: z.string() }),
  periodSeconds: z.int(),
  timeoutSeconds: z.int().default(1),
  failureThreshold: z.int().default(3),
});
/** Times of a missing probe. */
const NEVER = { periodSeconds: 3_600, timeoutSeconds: 1, failureThreshold: 1 };
const Source = z.object({ secretKeyRef: z.object({ name: z.string(), key: z.string() }) });
const Variable = { name: z.string(), value: z.string().optional(), valueFrom: Source.optional() };
const Container = z.object({
  command: z.array(z.string()),
  ports: z.array(z.object({ name: z.string(), containerPort: z.int() })).default([]),
  env: z.array(z.looseObject(Variable)),
  startupProbe: Probe.optional(),
  livenessProbe: Probe.optional(),
  readinessProbe: Probe.optional(),
  resources: z.object({ limits: z.object({ memory: z.string() }) }),
  securityContext: z.object({
    allowPrivilegeEscalation: z.literal(false),
    readOnlyRootFilesystem: z.literal(true),
    capabilities: z.object({ drop: z.tuple([z.literal('ALL')]) }),
  }),
});
const Pods = z.object({
  automountServiceAccountToken: z.literal(false),
  terminationGracePeriodSeconds: z.int().optional(),
  securityContext: z.looseObject({ runAsNonRoot: z.literal(true) }),
  containers: z.tuple([Container]),
  volumes: z.array(z.object({ secret: z.object({ secretName: z.string() }).optional() })),
});
const Resource = z.looseObject({ kind: z.string() });

const files = readdirSync(FOLDER, { encoding: 'utf8', recursive: true }).filter(
  (file) => file.endsWith('.yaml') && basename(file) !== 'kustomization.yaml',
);
const resources = files
  .flatMap((file) => parseAllDocuments(readFileSync(join(FOLDER, file), 'utf8')))
  .map((document) => Resource.parse(document.toJS()));
const configMap = resources.find(({ kind }) => kind === 'ConfigMap');
const { data: shared } = z.looseObject({ data: z.record(z.string(), z.string()) }).parse(configMap);

/** Reads the pods of the one workload in a file, and their container. */
function readPods(file: string) {
  const [first] = parseAllDocuments(readFileSync(join(FOLDER, file), 'utf8'));
  const spec = Pods.parse(first?.toJS().spec.template.spec);
  const [container] = spec.containers;
  const own = container.env.map(({ name, value }) => [name, value] as const);
  const env = new Map([...Object.entries(shared), ...own]);
  const secrets = container.env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? []);
  const port = (name: string) =>
    container.ports.find((each) => each.name === name)?.containerPort.toString();
  return { ...spec, container, env, secrets, port };
}

const WORKLOADS = [
  ['api.yaml', 'api', 'PORT', 'http'],
  ['worker/base/worker.yaml', 'worker', 'METRICS_PORT', 'metrics'],
  ['sandbox-bank.yaml', 'sandbox_bank', 'SANDBOX_BANK_PORT', 'http'],
  ['sepa.yaml', 'sepa', 'METRICS_PORT', 'metrics'],
] as const;

test.each(WORKLOADS)(
  '%s runs the command of the launcher, has probes on its port, and enough time to end',
  (file, part, variable, port) => {
    const { container, env, ...pods } = readPods(file);
    const { flags, script, graceMs } = NODE_PARTS[part];
    expect(container.command).toEqual(['node', ...flags, `dist/${script}`]);
    expect(env.get(variable)).toBe(pods.port(port));
    const { startupProbe, livenessProbe, readinessProbe } = container;
    const probes = [startupProbe, livenessProbe, readinessProbe];
    expect(probes.map((probe) => probe?.httpGet.port)).toEqual([port, port, port]);
    expect(livenessProbe?.httpGet.path).toBe('/healthz');
    const needed = graceMs + Number(env.get('DRAIN_MS') ?? 0);
    const { terminationGracePeriodSeconds = 0 } = pods;
    expect(terminationGracePeriodSeconds * 1_000).toBeGreaterThanOrEqual(needed);
  },
);

test('the api drains for longer than its readiness probe takes to fail', () => {
  const { env, container } = readPods('api.yaml');
  const { periodSeconds, timeoutSeconds, failureThreshold } = container.readinessProbe ?? NEVER;
  const seenAfter = (periodSeconds + timeoutSeconds) * failureThreshold;
  expect(Number(env.get('DRAIN_MS')) / 1_000).toBeGreaterThan(seenAfter);
  expect(container.readinessProbe?.httpGet.path).toBe('/readyz?only=api');
});

test('migrate is a command, without a port, which is applied alone with the image to run', () => {
  const { container } = readPods('migrate.yaml');
  expect(container.command).toEqual(['node', 'dist/src/cli/main.js', 'migrate']);
  expect(container.ports).toEqual([]);
  const labels = { app: 'migrate' };
  const labeled = resources.filter(({ metadata }) => Object(metadata).labels?.app === labels.app);
  expect(labeled).toMatchObject([{ kind: 'Job', metadata: { labels } }]);
  // Only the kustomization names the image: `-f migrate.yaml` would run none.
  const applied = `\nkubectl apply -k ${FOLDER} -l app=${labels.app}\n`;
  expect(readFileSync('docs/operations.md', 'utf8')).toContain(applied);
});

test.each([
  ['api.yaml', 'payments-keys', 'payments-keys-api'],
  ['worker/base/worker.yaml', 'payments-keys', 'payments-keys-worker'],
  ['sandbox-bank.yaml', 'payments-recipients-sandbox'],
  ['sepa.yaml', 'payments-recipients-sandbox'],
  ['migrate.yaml'],
])('%s has its own user, certificate and keys only, and variables that exist', (file, ...keys) => {
  const { env, secrets, volumes } = readPods(file);
  const name = basename(file, '.yaml');
  const mounted = volumes.flatMap(({ secret }) => secret?.secretName ?? []);
  expect(mounted).toEqual([...keys, 'payments-servers', `payments-temporal-${name}`]);
  expect(env.has('KEYS_FILE')).toBe(keys.includes('payments-keys'));
  expect(env.has('MONGODB_URI')).toBe(true);
  expect(secrets).toEqual([{ name: 'payments-mongodb', key: name }]);
  const isKnown = (variable: string) => NAMES.has(variable) || variable.startsWith('TEMPORAL_');
  expect([...env.keys()].filter((variable) => !isKnown(variable))).toEqual([]);
});

test('Temporal’s authorizer knows the ids, types and signals of all resources', () => {
  const source = readFileSync('deploy/temporal/authorizer.go', 'utf8');
  const rows = source.matchAll(
    /^\t"([\w-]+)": +\{"(\w+)", "(\w+)", strings\.Fields\(([^)]+)\)\}/gm,
  );
  const known = [...rows].map(([, id, type, field, text = '']) => {
    const signals = [...text.matchAll(/[a-z_]+/g)].map(([name]) => name);
    return { id, type, field, signals };
  });
  const all = Object.entries(RESOURCES).map(([kind, { workflowId, workflowType, callbacks }]) => {
    const [id] = workflowId('').split(':');
    return { id, type: workflowType, field: `${kind}_id`, signals: [...callbacks] };
  });
  expect(known).toEqual(all);
});

test('the kustomization names every file', () => {
  const text = readFileSync(join(FOLDER, 'kustomization.yaml'), 'utf8');
  for (const file of files) {
    if (dirname(file) === '.') expect(text).toContain(`- ${file}`);
  }
});

test.each(ENVIRONMENTS)('the workers of %s serve no other environment', (env) => {
  const read = (file: string) => readFileSync(join(FOLDER, file), 'utf8');
  const value = `{ name: WORKER_ENVIRONMENTS, value: ${env} }`;
  expect(parse(read(`worker/${env}/kustomization.yaml`))).toMatchObject({
    ...{ resources: ['../base'], nameSuffix: `-${env}` },
    labels: [{ pairs: { environment: env }, includeSelectors: true }],
    patches: [{ patch: expect.stringContaining(value) }],
  });
  expect(read('kustomization.yaml')).toContain(`- worker/${env}\n`);
});

const LOCAL = 'durable-payments:local';

describe('the compose files', () => {
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
    command: z.array(z.string()).default([]),
    environment: z.record(z.string(), z.string()).default({}),
    healthcheck: z.object({ test: z.array(z.string()) }).optional(),
  });
  const Compose = z.object({
    services: z.record(z.string(), Service),
    networks: z.object({ core: z.object({ internal: z.literal(true) }) }),
  });

  const compose = readFileSync('docker-compose.yml', 'utf8');
  const { services } = Compose.parse(parse(compose, { merge: true }));
  const ours = Object.entries(services).filter(([, { image }]) => image === LOCAL);

  test('only the api and the bank are published, on this machine, and the servers reach nothing else', () => {
    const published = Object.entries(services).filter(([, { ports }]) => ports.length > 0);
    expect(published.map(([name]) => name).sort()).toEqual(['api', 'sandbox-bank']);
    const ports = published.flatMap(([, service]) => service.ports);
    expect(ports.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([]);
    for (const name of ['mongodb', 'temporal']) expect(services[name]?.networks).toEqual(['core']);
  });

  test('each process has only the keys that it needs, and the command line alone writes them', () => {
    const volumes = Object.fromEntries(ours.map(([name, service]) => [name, service.volumes]));
    expect(volumes).toEqual({
      keys: [
        ...['keys:/data', 'recipients:/data/keys', 'keys-api:/keys/api'],
        ...['keys-worker:/keys/worker', 'keys-bank:/keys/bank'],
      ],
      users: MONGO_USERS.map((user) => `login-${user.replace('_', '-')}:/login/${user}`),
      cli: ['keys:/data', 'recipients:/data/keys', 'login-operator:/login:ro'],
      migrate: ['login-operator:/login:ro'],
      worker: ['keys:/data:ro', 'keys-worker:/keys:ro', 'login-worker:/login:ro'],
      // No database is on the volume of its state file.
      'sandbox-bank': ['keys-bank:/keys:ro', 'connectors:/state', 'login-sandbox-bank:/login:ro'],
      api: ['keys:/data:ro', 'keys-api:/keys:ro', 'login-api:/login:ro'],
    });
  });

  test.each(['docker-compose.sepa.yml', 'docker-compose.ui.yml'])(
    '%s is one that compose reads: each service once, and texts as commands',
    (path) => {
      const Changed = Service.pick({ command: true, healthcheck: true, environment: true });
      const Changes = z.object({ services: z.record(z.string(), Changed) });
      const changes = parse(readFileSync(path, 'utf8'), { logLevel: 'error' });
      expect(Changes.safeParse(changes).error).toBeUndefined();
    },
  );

  test('MongoDB asks for a password, and no file has one', () => {
    const command = services['mongodb']?.command.join(' ');
    expect(command).toContain('--keyFile /data/configdb/key');
    const texts = compose + readFileSync('docker-compose.sepa.yml', 'utf8');
    expect(texts).not.toMatch(/mongodb:\/\/|PASSWORD/);
    const made = readFileSync('Dockerfile', 'utf8').match(/for user in ([a-z_ ]+);/)?.[1];
    expect(made?.split(' ')).toEqual([...MONGO_USERS]);
  });

  test('every image but Temporal’s is named by its digest', () => {
    const images = Object.values(services).map(({ image }) => image);
    const named = images.filter((image) => !/@sha256:[0-9a-f]{64}$/.test(image));
    const temporal = expect.stringMatching(/^temporalio\/temporal:\d/);
    expect([...new Set(named)].sort()).toEqual([LOCAL, temporal]);
  });

  test.each(ours)('%s has only variables that exist', (_name, { environment }) => {
    const known = new Set([...NAMES, ...Object.keys(LIBRARY_VARIABLES.shape)]);
    expect(Object.keys(environment).filter((name) => !known.has(name))).toEqual([]);
  });

  test.each([
    ['api', 'api', 'PORT', '/readyz'],
    ['worker', 'worker', 'METRICS_PORT', '/readyz'],
    ['sandbox-bank', 'sandbox_bank', 'SANDBOX_BANK_PORT', '/healthz'],
  ] as const)(
    '%s runs the command of the launcher, whose health check calls its own port',
    (name, part, variable, path) => {
      const { environment, healthcheck, command } = services[name] ?? {};
      const { flags, script } = NODE_PARTS[part];
      expect(command).toEqual(['node', ...flags, `dist/${script}`]);
      const url = `http://127.0.0.1:${environment?.[variable]}${path}'`;
      expect(healthcheck?.test.at(-1)).toContain(url);
    },
  );

  test('a build sends only the files that the image copies, and runs no script of a package', () => {
    const dockerfile = readFileSync('Dockerfile', 'utf8');
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(
      ([, sources = '']) => sources.split(' '),
    );
    const [comment, all, ...sent] = readFileSync('.dockerignore', 'utf8').trim().split('\n');
    expect([comment?.[0], all]).toEqual(['#', '*']);
    expect(sent).toEqual(copied.map((source) => `!${source}`));
    const pages = readFileSync('docs/site/pages.mjs', 'utf8').matchAll(/^ {2}'([^']+\.md)': /gm);
    const isCopied = (path: string) => copied.some((source) => `${path}/`.startsWith(`${source}/`));
    expect([...pages].flatMap(([, path = '']) => (isCopied(path) ? [] : [path]))).toEqual([]);
    const installs = dockerfile.match(/npm (?:ci|prune)[^\\\n]*/g) ?? [];
    expect(installs.filter((command) => !command.includes('--ignore-scripts'))).toEqual([]);
  });
});
