/** Who may import whom: `npm run lint` holds these rules. */

/** Rooms of the house, from the ground up: each imports only itself and those before it. */
const ROOMS = [
  'src/(?!cli/main[.]ts)',
  'connectors/contract/',
  'activities/',
  'workflows/',
  'worker/',
  // Door of the command line: it hands the worker's steps to the one command that repeats them.
  'src/cli/main[.]ts',
  'connectors/(?!contract/)',
  'stack/',
  'bench/',
  'test/',
];

/** Rooms of src, in the same order; files beside them, such as the configuration, serve them all. */
const ROOMS_OF_SRC = [
  'src/(domain/|json[.]ts)',
  'src/os/',
  'src/keys/',
  'src/ledger/(book|documents|integers|legs|open|postings)[.]ts',
  'src/store/',
  'src/ledger/(?!(book|documents|integers|legs|open|postings)[.])',
  'src/webhooks/',
  'src/tracing/',
  'src/connectors/',
  'src/temporal/',
  'src/reconcile/',
  'src/merchants/',
  'src/pages/',
  'src/dashboard/',
  'src/api/',
  'src/cli/',
];

const VALUES = { dependencyTypesNot: ['type-only'] };
const npm = (name) => `node_modules/${name}/`;
const inOneOf = (rooms) => rooms.map((room) => `^${room}`);

function rule(name, comment, from, to) {
  return { name, comment, severity: 'error', from, to };
}

function downwardsOnly(rooms) {
  return rooms
    .slice(0, -1)
    .map((room, step) =>
      rule(
        'rooms-stand-on-earlier-ones',
        'A room imports only rooms that stand before it in its list, types included.',
        { path: `^${room}` },
        { path: inOneOf(rooms.slice(step + 1)) },
      ),
    );
}

module.exports = {
  forbidden: [
    ...downwardsOnly(ROOMS),
    ...downwardsOnly(ROOMS_OF_SRC),
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
      { pathNot: ['^src/domain/', '^src/json[.]ts$', npm('zod'), npm('ibantools')] },
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
      'stores-load-the-database',
      'Stores load the domain, the database and one another.',
      { path: '^src/store/' },
      {
        ...VALUES,
        pathNot: [
          '^src/domain/',
          '^src/store/',
          '^src/mongo(-indexes)?[.]ts$',
          '^src/keys/seal[.]ts$',
          '^src/ledger/book[.]ts$',
          '^crypto$',
          npm('mongodb'),
          npm('zod'),
        ],
      },
    ),
    rule(
      'one-door-to-temporal',
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
    enhancedResolveOptions: {
      extensions: ['.ts', '.tsx', '.js', '.json', '.d.ts'],
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
