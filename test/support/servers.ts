import { z } from 'zod';

/** How a product is found: all its other names derive from these. */
export const ProductPlace = z.object({
  /** Part of the names of its database, task queues and connector. */
  name: z.string(),
  url: z.string(),
  folder: z.string(),
});
export type ProductPlace = z.infer<typeof ProductPlace>;

/** Addresses of what `global-setup` started; jest's workers inherit them by environment. */
const NAMES = {
  temporalAddress: 'TEST_TEMPORAL_ADDRESS',
  mongodbUri: 'TEST_MONGODB_URI',
  timeSkippingServer: 'TEST_TIME_SKIPPING_SERVER',
  chromium: 'TEST_CHROMIUM',
  workflowBundles: 'TEST_WORKFLOW_BUNDLES',
  product: 'TEST_PRODUCT',
  logs: 'TEST_LOGS',
} as const;

/** Events at which the server suggests a new run: so few that one task handles their signals on any machine. */
export const LONG_HISTORY = 512;

export type TestServers = Record<keyof typeof NAMES, string>;

/** host:port of a real Temporal server, shared: each test file takes its own task queues. */
export const temporalAddress = (): string => fromEnvironment('temporalAddress');

/** URI of a real one-node replica set, shared: each test file takes its own database. */
export const mongodbUri = (): string => fromEnvironment('mongodbUri');

/** Path for `createTimeSkipping({ server: { executable: { type: 'existing-path', path } } })`. */
export const timeSkippingServer = (): string => fromEnvironment('timeSkippingServer');

export const chromium = (): string => fromEnvironment('chromium');

export const logFolder = (): string => fromEnvironment('logs');

export const sharedProduct = (): ProductPlace =>
  ProductPlace.parse(JSON.parse(fromEnvironment('product')));

export function publishServers(servers: Partial<TestServers>): void {
  for (const [key, name] of Object.entries(NAMES)) {
    const value = servers[key as keyof typeof NAMES];
    if (value !== undefined) process.env[name] = value;
  }
}

/** Takes them back from the test file that asks for it. */
export function withdrawServers(): void {
  for (const name of Object.values(NAMES)) delete process.env[name];
}

function fromEnvironment(key: keyof typeof NAMES): string {
  const value = process.env[NAMES[key]];
  if (value !== undefined) return value;
  throw new Error(
    `There is no ${NAMES[key]}. A unit test has no servers: one that needs them belongs in a folder ` +
      'of the integration or system tests (jest.config.js).',
  );
}
