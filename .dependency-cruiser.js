/** Who may import whom: `npm run lint` holds these rules. */

/** Modules of the codebase, from the bottom up: each imports only itself and those before it. */
const MODULES = [
  'src/(?!cli/main[.]ts)',
  'connectors/contract/',
  'connectors/kit/',
  'activities/',
  'workflows/',
  'worker/',
  'connectors/conformance/',
  // Door of the command line: it hands the steps of the modules above to the commands that need them.
  'src/cli/main[.]ts',
  'connectors/(?!contract/|kit/|conformance/)',
  'stack/',
  'bench/',
  'test/',
];

/** Modules of src, in the same order; files next to them, such as the configuration, serve them all. */
const MODULES_OF_SRC = [
  'src/base/',
  'src/domain/',
  'src/encryption/',
  'src/ledger/',
  'src/store/',
  'src/ledger-check/',
  'src/webhooks/',
  'src/temporal/',
  'src/callbacks/',
  'src/statements/',
  'src/service/',
  'src/pages/',
  'src/dashboard/',
  'src/api/',
  'src/cli/',
];

/** Entry points that reach what is stored through the service alone. */
const ENTRY_POINTS = ['src/api/', 'src/pages/', 'src/dashboard/', 'src/cli/'];

const VALUES = { dependencyTypesNot: ['type-only'] };
const npm = (name) => `node_modules/${name}/`;
const inOneOf = (modules) => modules.map((module) => `^${module}`);

function rule(name, comment, from, to) {
  return { name, comment, severity: 'error', from, to };
}

function downwardsOnly(modules) {
  return modules
    .slice(0, -1)
    .map((module, step) =>
      rule(
        'imports-point-downward',
        'A module imports only modules before it in its list, types included.',
        { path: `^${module}` },
        { path: inOneOf(modules.slice(step + 1)) },
      ),
    );
}

module.exports = {
  forbidden: [
    ...downwardsOnly(MODULES),
    ...downwardsOnly(MODULES_OF_SRC),
    rule(
      'no-circles',
      'Files that import one another cannot be understood one by one, types included.',
      {},
      { circular: true },
    ),
    rule(
      'domain-is-pure',
      'The domain imports itself, zod, IBAN checks and the lossless JSON reader, types included.',
      { path: '^src/domain/' },
      { pathNot: ['^src/domain/', '^src/base/json[.]ts$', npm('zod'), npm('ibantools')] },
    ),
    rule(
      'workflows-load-only-the-domain',
      'Workflows load the domain and the workflow SDK, since their code is replayed.',
      { path: '^workflows/' },
      {
        ...VALUES,
        pathNot: [
          '^workflows/',
          '^src/domain/',
          npm('@temporalio/workflow'),
          npm('@temporalio/common'),
        ],
      },
    ),
    rule(
      'workflows-know-types-of-activities',
      'Workflows know activities and the contract of connectors by their types, and nothing else.',
      { path: '^workflows/' },
      {
        pathNot: [
          '^workflows/',
          '^src/domain/',
          '^activities/',
          '^connectors/contract/',
          npm('@temporalio/workflow'),
          npm('@temporalio/common'),
        ],
      },
    ),
    rule(
      'the-contract-is-types',
      'Activities load nothing of a connector: they know the types of its contract.',
      { path: '^activities/' },
      { ...VALUES, path: '^connectors/' },
    ),
    rule(
      'connectors-stand-alone',
      'A connector is a process of its own, over src and the contract.',
      { path: '^connectors/' },
      { path: ['^activities/', '^workflows/', '^worker/'] },
    ),
    rule(
      'the-example-knows-the-kit',
      'A connector on the kit imports nothing else of the service, so that it can live elsewhere.',
      { path: '^connectors/example/' },
      {
        path: inOneOf(MODULES),
        pathNot: ['^connectors/example/', '^connectors/kit/index[.]ts$'],
      },
    ),
    rule(
      'stores-load-the-database',
      'Stores load the domain, the database and one another.',
      { path: '^src/store/' },
      {
        ...VALUES,
        pathNot: [
          '^src/domain/',
          '^src/store/',
          '^src/base/(ids|mongo|mongo-indexes)[.]ts$',
          '^src/encryption/encrypter[.]ts$',
          '^src/ledger/book[.]ts$',
          '^crypto$',
          npm('mongodb'),
          npm('zod'),
        ],
      },
    ),
    rule(
      'entry-points-call-the-service',
      'An entry point parses, calls the service and presents; it reads and writes nothing itself.',
      { path: inOneOf(ENTRY_POINTS) },
      { path: inOneOf(['src/store/', 'src/ledger/', 'src/ledger-check/']) },
    ),
    rule(
      'service-has-no-entry-point',
      'The service knows neither HTTP nor the command line nor pages: each entry point calls it.',
      { path: '^src/service/' },
      { path: [npm('koa'), npm('@koa/[^/]+'), npm('commander'), npm('preact')] },
    ),
    rule(
      'one-client-of-temporal',
      'The API and the pages reach Temporal through src/temporal alone.',
      { path: '^src/(api|pages|dashboard)/' },
      { ...VALUES, path: npm('@temporalio/[^/]+') },
    ),
    rule(
      'product-needs-no-tools',
      'The product runs without the packages of its developers.',
      { path: '^(src|workflows|activities|worker|connectors)/' },
      { ...VALUES, dependencyTypes: ['npm-dev'] },
    ),
    rule(
      'clients-stand-alone',
      'A client is a package of its own, without dependencies.',
      { path: '^clients/' },
      { pathNot: '^clients/', dependencyTypesNot: ['core'] },
    ),
    rule(
      'clients-are-for-merchants',
      'The product knows nothing of its clients; tests use them.',
      { pathNot: '^(clients|test)/' },
      { path: '^clients/' },
    ),
    rule(
      'imports-exist',
      'An import that cannot be resolved escapes every other rule.',
      {},
      { couldNotResolve: true },
    ),
    rule(
      'packages-are-listed',
      'A package that package.json does not list may vanish with the one that brought it.',
      {},
      { dependencyTypes: ['npm-no-pkg', 'npm-unknown'] },
    ),
  ],
  options: {
    // TypeScript 7 has no parser for JavaScript programs to call.
    parser: 'swc',
    // Sees type-only imports too.
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    // Programs of a merchant's own project; test/guides compiles them in one.
    exclude: { path: '^docs/snippets/' },
    enhancedResolveOptions: {
      extensions: ['.ts', '.tsx', '.js', '.json', '.d.ts'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
