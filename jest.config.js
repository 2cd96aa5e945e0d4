const { jsc } = require('./test/support/swc');

/**
 * A test file's folder decides its project. Unit tests have no servers and end in seconds. All
 * others share real servers, started once for a run, and take their own database and task queues.
 */
const UNIT = ['*', '{docs,domain,encryption,webhooks}/**/*', '**/unit/**/*'].map(testsIn);
/** Tests of whole processes, of the service as a person sees it, and of what it survives. */
const SYSTEM = ['{browser,chaos,leaks,operators,stack}/**/*'].map(testsIn);
const ALL = ['**/*'].map(testsIn);

/** Restores of both stores in every order take six minutes; `connectors/sepa/bank-days` has one of each run. */
const RESTORES = process.env['RESTORES'] === 'all';

/** An absolute glob: `<rootDir>` is not known behind a `!`. */
function testsIn(glob) {
  return `${__dirname.replaceAll('\\', '/')}/test/${glob}.test.{ts,tsx}`;
}

const not = (glob) => `!${glob}`;

const shared = {
  runtime: '<rootDir>/test/support/runtime.js',
  transform: {
    '^.+\\.(t|j|mj)sx?$': [
      '@swc/jest',
      {
        jsc,
        module: { type: 'commonjs' },
      },
    ],
  },
  // These ship ES modules only, and the last imports as it runs.
  transformIgnorePatterns: [
    '/node_modules/(?!(jose|preact|preact-render-to-string|qr|@opentelemetry/otlp-exporter-base)/)',
  ],
  modulePathIgnorePatterns: ['<rootDir>/dist/'],
};

/** The same file in two projects is run once. */
const servers = {
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
};

module.exports = {
  projects: [
    {
      ...shared,
      displayName: 'unit',
      testMatch: UNIT,
      setupFiles: ['<rootDir>/test/support/unit-setup.ts'],
    },
    {
      ...shared,
      ...servers,
      displayName: 'integration',
      testMatch: [...ALL, ...UNIT.map(not), ...SYSTEM.map(not)],
    },
    {
      ...shared,
      ...servers,
      displayName: 'system',
      testMatch: [...SYSTEM, ...UNIT.map(not)],
      testPathIgnorePatterns: ['/node_modules/', ...(RESTORES ? [] : ['/chaos/restores\\.test'])],
    },
  ],
  reporters: ['default', '<rootDir>/test/support/reporter.js'],
  // Read here only: a project's own would be passed over in silence.
  testTimeout: 240_000,
  // Two cores: files wait for conditions in between, and two keep the cores busy for 78 % only.
  maxWorkers: 3,
  // What ended files leave in memory is walked at each garbage collection.
  workerIdleMemoryLimit: '700MB',
};
