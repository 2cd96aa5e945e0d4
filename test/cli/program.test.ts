import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { msToTs } from '@temporalio/common/lib/time';
import type { Command, Option } from 'commander';
import { Registry } from 'prom-client';
import { checkConnector } from '../../connectors/conformance/check';
import { createLogger } from '../../src/base/log';
import { createContext } from '../../src/cli/context';
import { createProgram } from '../../src/cli/program';
import { FORMAT } from '../../src/domain/format';
import { SCOPES } from '../../src/domain/merchants/api-key';
import { AUTHORITY } from '../../src/domain/operators/authority';
import { PAYMENT_METHOD_IDS } from '../../src/domain/payment/catalog';
import { RAIL_IDS } from '../../src/domain/payout/rails';
import { SEARCH_ATTRIBUTES } from '../../src/domain/search-attributes';
import { taskQueues } from '../../src/domain/task-queues';
import { watchEpochs } from '../../src/service/installation/epoch';
import { checkDatabase } from '../../src/store';
import { connectTemporal } from '../../src/temporal/access';
import { checkTemporal } from '../../src/temporal/attributes';
import { createTemporalClient } from '../../src/temporal/client';
import { connectConnector } from '../connectors/process';
import { eventually } from '../support/eventually';
import { useFixture } from '../support/fixture';
import { openRebuilder } from '../support/rebuilder';
import { temporalAddress } from '../support/servers';
import { asOperator, CliError, commandsIn, run, splitWords, useProvisioning } from './cli';

const MAIN = join(__dirname, '..', '..', 'dist', 'src', 'cli', 'main.js');
const service = useProvisioning();

test('--json is accepted before and after the command, and prints one document', async () => {
  await service.account();
  const list = ['account', 'list'];
  const answers = [
    await service.cli('--json', ...list),
    await service.cli('account', '--json', 'list'),
    await service.cli(...list, '--json'),
  ];
  for (const { exit, stdout, stderr } of answers) {
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' });
    expect(JSON.parse(stdout)).toMatchObject({ has_more: false });
  }
});

/** Four or five seconds, and time for a busy machine; the driver's own limit is 30, waited for twice. */
const IN_TIME_MS = 60_000;

test('a MongoDB that is away or never answers is reported in time, and a wrong address, without its password', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = Object(silent.address());
  const sockets = new Set<{ destroy(): void }>();
  silent.on('connection', (socket) => sockets.add(socket.on('error', () => undefined)));
  const list = (at: string, ...more: string[]) =>
    run({ ...service.env, MONGODB_URI: at }, 'account', 'list', ...more);
  const startedAt = performance.now();
  const [away, late] = await Promise.all(
    [1, port].map((number) => list(`mongodb://me:secret@127.0.0.1:${number}/`)),
  );
  expect(performance.now() - startedAt).toBeLessThan(IN_TIME_MS);
  expect(away?.exit).toBe(1);
  expect(away?.stderr).toMatch(/^MongoDB does not answer at 127\.0\.0\.1:1 \(address from the env/);
  expect(late?.stderr).toContain('MongoDB does not answer');
  for (const uri of ['localhost', 'mongodb://me:secret@', 'mongodb://me:secret@h/?what=1']) {
    const { stderr } = await list(uri, '--json');
    expect(stderr).toContain('"code":"mongodb_uri_invalid"');
    expect(stderr + away?.stderr + late?.stderr).not.toContain('secret');
  }
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => silent.close(resolve));
});

// What else is wrong with such files is in test/encryption.
test('a key file is needed for encryption alone; what is wrong with it is reported, and a warning where others can read it, except with --json', async () => {
  const { account_id } = await service.account();
  const set = ['webhook', 'set', account_id, '--env', 'sandbox', '--url', 'http://localhost:1/'];
  const at = (name: string) => join(service.folder, name);
  const runWith = (KEYS_FILE: string | undefined, ...args: string[]) =>
    run({ ...service.env, KEYS_FILE }, ...args);
  writeFileSync(at('broken.json'), '{"seal": "confidential"}');
  for (const [path, code] of [
    [undefined, 'keys_file_missing'],
    [at('none.json'), 'keys_file_missing'],
    [at('broken.json'), 'keys_file_invalid'],
  ] as const) {
    const { exit, stderr } = await runWith(path, ...set, '--json');
    expect({ exit, ...JSON.parse(stderr).error }).toMatchObject({ exit: 1, code });
    expect(stderr).not.toContain('confidential');
    expect((await runWith(path, 'key', 'list', account_id)).exit).toBe(0);
  }
  const shared = at('shared.json');
  copyFileSync(service.env['KEYS_FILE'] ?? '', shared);
  chmodSync(shared, 0o644);
  const stderr = `${shared}: others can read the key file\n`;
  expect(await runWith(shared, ...set)).toMatchObject({ exit: 0, stderr });
  expect(await runWith(shared, ...set, '--json')).toMatchObject({ exit: 0, stderr: '' });
});

test('the process prints JSON on stdout with exit code 0, or errors on stderr with 1, and ends', async () => {
  const [made, ...refused] = await Promise.all([
    spawned('account', 'create', '--name', 'Process', '--json'),
    spawned('account', 'show', 'acct_1', '--json'),
    // It has begun a check.
    spawned('connector', 'check', 'sandbox', '--only', 'payout.pays', '--json'),
  ]);
  expect({ exit: made.exit, stderr: made.stderr }).toEqual({ exit: 0, stderr: '' });
  expect(JSON.parse(made.stdout)).toHaveProperty('sandbox_key');
  const codes = refused.map(({ exit, stdout, stderr }) => {
    expect({ exit, stdout }).toEqual({ exit: 1, stdout: '' });
    return JSON.parse(stderr).error.code;
  });
  expect(codes).toEqual(['account_not_found', 'invalid_usage']);
});

function spawned(...args: string[]) {
  const env = { PATH: process.env['PATH'], ...service.env };
  return new Promise<{ exit: unknown; stdout: string; stderr: string }>((resolve) => {
    execFile(process.execPath, [MAIN, ...args], { env }, (error, stdout, stderr) =>
      resolve({ exit: error === null ? 0 : error.code, stdout, stderr }),
    );
  });
}

/** Lists a command with all commands below it that help lists, each with the words that call it. */
function listBelow(
  command: Command,
  words: string[] = [],
): { words: string[]; line: string; command: Command }[] {
  const below = command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => command.commands.includes(each))
    .flatMap((each) => listBelow(each, [...words, each.name()]));
  return [{ words, line: words.join(' '), command }, ...below];
}

const io = { env: {}, stdout: () => undefined, stderr: () => undefined };
const { context } = createContext(io, false, { openRebuilder, checkConnector });
const ALL = listBelow(createProgram(context, io, false));
const COMMANDS = ALL.filter(({ command }) => command.commands.length === 0);

const EXAMPLE = /\nExamples?:\n {2}npm run -s cli -- (.*?)(?=\n {2}npm|\n\n)/s;

/** Output of `--help`, which several tests read. */
const helps = new Map<string, ReturnType<typeof run>>();
function readHelp(words: readonly string[]): ReturnType<typeof run> {
  const help = helps.get(words.join()) ?? run({}, ...words, '--help');
  helps.set(words.join(), help);
  return help;
}

test.each(ALL)(
  '"$line --help" prints usage, examples and exit codes, and exits with 0',
  async ({ words }) => {
    const { exit, stdout, stderr } = await readHelp(words);
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: '' });
    expect(stdout).toContain(`Usage: ${['npm run -s cli --', ...words].join(' ')} `);
    expect(stdout).toContain('--json');
    expect(stdout).toContain('Exit codes: 0 done; 1 refused or failed');
    expect(stdout).toMatch(EXAMPLE);
  },
);

test('every command says in the table what it needs on live, and the table names no other', () => {
  expect(COMMANDS.map(({ line }) => line).sort()).toEqual(Object.keys(AUTHORITY).sort());
});

// Nothing listens there: a command that connected would be refused for that.
const ENV = {
  ...{ DATA_DIR: 'none', KEYS_FILE: 'none.json', KEYS_DIR: 'none' },
  ...{ MONGODB_URI: 'mongodb://127.0.0.1:1/', TEMPORAL_ADDRESS: '127.0.0.1:1' },
};
/** Reads the example of a command from its help. */
async function readExample(words: readonly string[]): Promise<string[]> {
  const { stdout } = await readHelp(words);
  return splitWords(EXAMPLE.exec(stdout)?.[1] ?? '');
}

/** Expects that a command is refused, whose exit code and output another test has in words, too. */
async function expectRefused(args: string[], words: string, code = 'invalid_usage') {
  const { exit, stdout, stderr } = await run(ENV, ...args, '--json');
  expect({ exit, stdout }).toEqual({ exit: 1, stdout: '' });
  const message = expect.stringContaining(words);
  expect(CliError.parse(JSON.parse(stderr)).error).toEqual({ code, message });
}

describe('before it connects to any server, the program refuses', () => {
  test.each(['account', 'nonsense', 'account nonsense', ''])(
    'a command that is incomplete or unknown: "%s"',
    async (line) => {
      const inWords = await run({}, ...splitWords(line));
      expect(inWords).toEqual({ exit: 1, stdout: '', stderr: expect.stringMatching(/./) });
      await expectRefused(splitWords(line), '');
    },
  );

  /** Options of one meaning, with a value that no command takes, and words of the refusal. */
  const WRONG: Record<string, [value: string, words: string]> = {
    '--email': ['ana', 'It must be an e-mail address'],
    '--operator': [' ', 'It must have 1 to 100 characters.'],
    '--reason': ['x'.repeat(501), 'It must have 1 to 500 characters.'],
    '--hours': ['721', 'It must be more than 0 and at most 720.'],
  };
  const findWrong = ({ long, argChoices, description }: Option) => {
    if (argChoices !== undefined) return ['x', `Allowed choices are ${argChoices.join(', ')}.`];
    const [, max] = /how many, 1 to (\d+)/.exec(description) ?? [];
    if (max === undefined) return WRONG[long ?? ''];
    return [`${Number(max) + 1}`, `It must be an integer from 1 to ${max}.`];
  };

  test.each(COMMANDS)(
    'an unknown option or a wrong value of `$line`, and the lack of each option and argument that it needs',
    async ({ words: path, command }) => {
      const example = await readExample(path);
      const leaveOut = (long = '') => {
        const at = example.indexOf(long);
        return at === -1 ? example : example.toSpliced(at, 2);
      };
      const unknown = "unknown option '--what'";
      const wrong: [string[], string][] = [[[...example, '--what'], unknown]];
      // In words as in JSON.
      expect(await run(ENV, ...example, '--what')).toEqual({
        ...{ exit: 1, stdout: '', stderr: expect.stringContaining(unknown) },
      });
      for (const option of command.options) {
        const { flags, long, mandatory } = option;
        const rest = leaveOut(long);
        if (mandatory) wrong.push([rest, `required option '${flags}' not specified`]);
        const [value, words = ''] = findWrong(option) ?? [];
        if (value !== undefined) wrong.push([[...rest, `${long}=${value}`], words]);
      }
      const [first] = command.registeredArguments;
      if (first?.required) {
        const end = example.findIndex((word, at) => at >= path.length && word.startsWith('--'));
        const count = (end === -1 ? example.length : end) - path.length;
        const message = `missing required argument '${first.name()}'`;
        wrong.push([example.toSpliced(path.length, count), message]);
      }
      for (const [args, message] of wrong) await expectRefused(args, message);
    },
  );

  const FUND =
    'balance fund acct_1 --env live --balance-account main --currency EUR --amount 5 --reason Wire';
  const MAIN = 'balance adjust acct_1 --env live --balance-account main --reason Why --amount 5';
  const ADJUST = `${MAIN} --operator mia --currency EUR`;
  const ASSET = `${MAIN} --operator mia --asset ETH`;
  const UPDATE = 'account update acct_1';
  const BY = '--operator mia --reason Why';
  const QUERY = 'payout act mark_failed --query "a = 1"';
  const SNOOZE = 'payout act snooze --query "a = 1"';
  const HOOK = 'webhook set acct_1 --env sandbox --url http://localhost:4000/hook --events';
  const REDELIVER =
    'event redeliver --account acct_1 --env live --since 2026-03-01T12:00:00Z --dry-run';

  const AMOUNT = 'It must be an integer from 1 to 99999999999, in minor units: 10.50 EUR is 1050.';
  const UNITS = 'It must be an integer, in the smallest unit of the asset.';
  const NAME = 'It must be 1 to 64 letters, digits, hyphens and underscores';
  const ID = 'It must be 1 to 100 letters, digits, hyphens and underscores.';
  const MONEY = 'Give --currency, or a crypto asset by --asset and --network.';
  const FEE = 'It must be RAIL=MINOR, each rail once';
  const LIMIT = 'It must be CURRENCY=MINOR, each currency once';
  const METHODS = `Allowed: ${[...PAYMENT_METHOD_IDS, ...RAIL_IDS].join(', ')}.`;
  const SCOPE = `Allowed, separated by commas: ${SCOPES.join(', ')}.`;
  const KEY_RING = 'recipients.sandbox, recipients.live or recipients.live-CONNECTOR';
  const RENAMED = '`balance resolve` is now `movement resolve MOVEMENT_ID`';
  const TIMESTAMP = 'It must be an ISO 8601 timestamp with an offset';
  const DAY = 'It must be a day, or an ISO 8601 time with an offset';
  const PLACE = 'It must be a place that a run has named';
  const LIMITS = ['EUR', 'eur=5', 'EUR=5.5', 'EUR=-1', 'EUR=1=2', 'EUR=1,EUR=2'];

  /** Beginning of a line, the last values with which it is refused, and words of the refusal. */
  const VALUES: [line: string, values: string[], words: string][] = [
    ['account create --name', [' ', 'x'.repeat(101)], 'It must have 1 to 100 characters.'],
    [`${UPDATE} --crypto on --enable-method`, ['Visa'], METHODS],
    [`${UPDATE} --payer-data-months`, ['0', '121', '1.5', '-1', 'x', ''], 'from 1 to 120'],
    [`${UPDATE} --payout-fee`, ['sepa_instant', 'sepa_instant=', 'sepa_instant=-1', '=5'], FEE],
    [`${UPDATE} --payout-fee`, ['sepa_instant=1.5', 'sepa_instant=1e3', 'ideal=5', ''], FEE],
    [`${UPDATE} --payout-fee`, ['sepa_instant=100000000000', 'sepa_instant=1=2'], FEE],
    [`${UPDATE} --payout-fee`, ['toString=1', 'sepa_instant:JPY=1', 'card_payout:=1'], FEE],
    [`${UPDATE} --payout-fee card_payout=1 --payout-fee`, ['card_payout=2', 'x=offf'], FEE],
    [`${UPDATE} --payout-limit`, LIMITS, LIMIT],
    [`${UPDATE} --owed-limit EUR=1 --owed-limit`, ['EUR=2'], LIMIT],
    ['crypto-payment act x', ['mark_sent_back', 'write_off'], 'is now `movement resolve'],
    ['key create acct_1 --env live --scopes', ['payments:read,payments', ''], SCOPE],
    ['key create acct_1 --env live --allow-cidr', ['203.0.113.0/33'], 'It must be a network'],
    ['key create acct_1 --env live --expires-at', ['2020-01-01T00:00:00Z'], 'in the future.'],
    ['keys rotate --ring', ['pay_token', 'fingerprint'], KEY_RING],
    [`${FUND} --amount`, ['0', '-1', '10.5', '1e3', '0x10', 'ten', '', '100000000000'], AMOUNT],
    [`${FUND} --currency`, ['eur', 'EU', 'XXX', 'XAU', ''], 'an ISO 4217 code in capitals'],
    [`${FUND} --balance-account`, ['', 'a.b', '__proto__', 'é', 'x'.repeat(65)], NAME],
    [`${FUND} --operation-id`, ['', 'a b', 'a:b', 'funded:', 'x'.repeat(101)], ID],
    [`${ADJUST} --amount`, ['0', '-0', '1.5', '-100000000000'], AMOUNT],
    [`${ADJUST} --asset ETH --network`, ['ethereum'], MONEY],
    [MAIN, ['--operator=mia'], MONEY],
    [ASSET, ['--network=dogecoin'], MONEY],
    [ASSET, ['--reason=x'], MONEY],
    [`${ASSET} --network ethereum --amount`, ['1.5', '0', '-0', '01'], UNITS],
    [`${ASSET} --network ethereum --against`, ['receivable'], 'No merchant owes a crypto asset.'],
    [`${FUND} --reason`, [''], 'It must have 1 to 500 characters.'],
    ['movement list --limit', ['0', '1.5'], 'It must be an integer from 1 to 1000.'],
    [`payout act x snooze ${BY} --hours`, ['0'], 'It must be more than 0'],
    [`${FUND} --bank-reference`, ['W-1'], 'A bank reference needs --connector.'],
    [`${ADJUST} --against`, ['clearing:a.b', 'clearing:', 'clearing'], 'or clearing:CONNECTOR.'],
    [`${ADJUST} --bank-reference`, ['ACCT-7'], 'needs --against clearing:CONNECTOR'],
    [`${ADJUST} --against suspense --bank-reference`, ['A'], 'needs --against clearing:CONNECTOR'],
    ['balance resolve payment_held:a:b --as loss --operator mia --reason', ['Loss'], RENAMED],
    ['bank-account add --connector a --env live --iban A --currency', ['ETH'], 'ISO 4217'],
    ['ledger trial-balance --at', ['2999-01-01T00:00:00Z'], 'That time is in the future.'],
    ['sandbox statement --date', ['today'], 'A day is written YYYY-MM-DD.'],
    [HOOK, ['payment.paid', '', 'payment.settled,', 'all,payment.settled'], 'separated by commas'],
    ['event list acct_1 --env sandbox --before', ['yesterday'], TIMESTAMP],
    ['event', ['redeliver'], 'Give an event id, or --account, --env and --since.'],
    ['event redeliver --account acct_1 --env', ['live'], 'Give an event id, or --account'],
    ['event redeliver evt_1', ['--dry-run'], 'Give an event id or options, not both.'],
    [`${REDELIVER} --status`, ['lost'], 'Allowed, separated by commas'],
    [`${REDELIVER} --type`, ['payment'], 'Allowed, separated by commas'],
    ['reconcile --from', ['payment:xy', 'shop', 'payment:123'], PLACE],
    ['reconcile --since', ['now', '2026-03-01T09:00:00', '2026-02-30'], DAY],
    [`payout act x ${BY}`, ['mark_settled'], 'are resubmit, mark_failed, mark_completed'],
    [`refund act x ${BY}`, ['resubmit'], 'mark_failed, resolve_movement, snooze, acknowledge.'],
    [`payout act x ${BY}`, ['snooze'], 'A snooze, and nothing else, takes --hours.'],
    [`payout act x resubmit ${BY} --hours`, ['1'], 'A snooze, and nothing else, takes --hours.'],
    [`payout act x snooze ${BY} --hours 1`, ['--bank-confirmed-not-executed'], 'Only mark_failed'],
    [`refund act x mark_failed ${BY}`, ['--bank-confirmed-not-executed'], 'unknown option'],
    ['payout act x resubmit', ['--operator=mia'], "'--reason <text>' not specified"],
    ['payout act x resubmit', ['--reason=Why'], "'--operator <name>' not specified"],
    ['payout act snooze --query', ['a = 1'], 'give either --plan or --apply'],
    [`${SNOOZE} --plan`, ['--apply'], 'give either --plan or --apply'],
    [`${SNOOZE} --plan --expect`, ['1'], 'Only --apply takes --expect.'],
    ['payout act snooze --plan --query', [' '], 'It must have 1 to 60000 characters.'],
    [`${SNOOZE} ${BY}`, ['--apply'], 'A snooze, and nothing else, takes --hours.'],
    [`${SNOOZE} --apply --hours`, ['1'], "'--reason <text>' not specified"],
    ['payout act resubmit --query a --apply', ['--reason=A'], "'--operator <name>' not specified"],
    [`${QUERY} --plan --amount`, ['1'], '--amount goes with an id'],
    [`${QUERY} --apply ${BY}`, ['--bank-confirmed-not-executed'], 'not-executed goes with an id'],
    ['payout act x resubmit --plan --query', ['a = 1'], 'give an act and no id'],
    [`payout act x resubmit ${BY}`, ['--plan'], 'Only --query takes --plan'],
    [`payout act ${BY}`, ['x'], "missing required argument 'act'"],
  ];

  test.each(
    VALUES.flatMap(([line, values, words]) =>
      values.map((value): [string, string, string] => [line, value, words]),
    ),
  )('%s %j', (line, value, words) => expectRefused([...splitWords(line), value], words));

  test.each([
    [UPDATE, 'nothing_to_change', 'Say what to change: --crypto on|off, '],
    [`${UPDATE} --enable-method visa --disable-method visa`, 'contradiction', "visa can't be"],
    ['reconcile --from payout:3f --apply', 'invalid_request', 'without --from'],
    [`${ADJUST} --against clearing:acme`, 'connector_unknown', 'no connector acme'],
    [`${FUND} --connector sandbox`, 'connector_unknown', 'nothing on live'],
    [`${ADJUST} --against clearing:sandbox`, 'connector_unknown', 'nothing on live'],
  ])('%s as %s', (line, code, words) => expectRefused(splitWords(line), words, code));
});

describe('a command about what does not exist', () => {
  /** Codes of refusals, by the first argument or by the command, that do not follow from its name. */
  const CODES: Record<string, string> = {
    ...{ email: 'user_not_found', id: 'statement_not_found', file_id: 'sepa_file_not_found' },
    ...{ 'name or id': 'operator_not_found', 'event redeliver': 'account_not_found' },
    'orphan restart': 'not_an_orphan',
  };
  /** Their examples name what exists or is created, or a connector, which variables name. */
  const OTHERS = ['keys retire', 'callback deliver', 'name', 'method', 'file'];
  const service = useProvisioning();
  const approver = useFixture(() =>
    asOperator(service, 'ada', 'approver', { LIVE_CONNECTORS: 'acme=visa' }),
  );

  test('is refused by its code, as its example shows, and with the same words without --json', async () => {
    const rows = COMMANDS.flatMap(({ words, line, command }) => {
      const name = command.registeredArguments[0]?.name() ?? 'name';
      const code = CODES[line] ?? CODES[name] ?? `${name.replace(/_id$/, '')}_not_found`;
      return OTHERS.includes(line) || OTHERS.includes(name) ? [] : [{ words, line, code }];
    });
    const readCode = async ({ words, line }: (typeof rows)[number]) => {
      const example = await readExample(words);
      const { code, message } = await approver.refusal(...example);
      const stderr = expect.stringContaining(message);
      expect(await approver.cli(...example)).toEqual({ exit: 1, stdout: '', stderr });
      return [line, code];
    };
    const codes = await Promise.all(rows.map(readCode));
    expect(codes).toEqual(rows.map(({ line, code }) => [line, code]));
    expect(codes.length).toBeGreaterThan(55);
  });
});

/** Needs neither a server nor a stack. */
describe('connector new', () => {
  const folder = mkdtempSync(join(tmpdir(), 'connector-new-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const create = (name: string, dir: string, ...more: string[]) =>
    run({ DATA_DIR: folder }, 'connector', 'new', name, '--dir', join(folder, dir), ...more);

  test('copies the example under its name, and leaves an existing directory as it is', async () => {
    const dir = join(folder, 'acme');
    const { exit, stdout: out } = await create('acme', 'acme', '--json');
    const files = ['acme.ts', 'main.ts', 'fake-bank.ts', 'test.ts'];
    expect([exit, JSON.parse(out)]).toEqual([0, { name: 'acme', dir, files }]);
    const text = files.map((file) => readFileSync(join(dir, file), 'utf8')).join('\n');
    expect(text).not.toMatch(/example/i);
    expect(text).toContain("} from 'durable-payments/connectors/kit';");
    expect(text).toContain("name: 'acme',");
    expect(text).toContain('ACME_API_URL: z.url()');
    const stderr = `${dir} exists: nothing was written. Give another name, or --dir.\n`;
    expect(await create('other', 'acme')).toEqual({ exit: 1, stdout: '', stderr });
    expect(readdirSync(dir).toSorted()).toEqual(files.toSorted());
    const { stdout: words } = await create('mine', 'mine');
    expect(words).toMatch(/^Before `connector check` can run, compile .*\nand start both/m);
  });

  const SHAPE = 'must be 2 to 31 lowercase letters and digits';
  test.each([
    ...['Acme', 'a', 'my-bank', '../acme'].map((name) => [name, SHAPE] as const),
    ...['sandbox', 'class', 'main', 'test', 'bank', 'settings', 'id', 'do'].map(
      (name) => [name, 'has a meaning already'] as const,
    ),
  ])('%s is no name of a connector', async (name, why) => {
    const stderr = `"${name}" cannot be the name of a new connector: it ${why}.\n`;
    expect(await create(name, 'never')).toMatchObject({ exit: 1, stderr });
    expect(readdirSync(folder)).not.toContain('never');
  });
});

const warnings: string[] = [];
const log = createLogger('migrate', 'warn', { write: (line) => void warnings.push(line) });
const namespace = `migrate-${randomUUID().slice(0, 8)}`;
const ATTRIBUTES = Object.keys(SEARCH_ATTRIBUTES).sort();
const DAY_MS = 86_400_000;

const shop = useProvisioning();
// Each command checks the stores again.
const fresh = useFixture(async () => commandsIn(shop.env, run));
const temporal = connectTemporal({ address: temporalAddress(), namespace });
const where = { connection: temporal.connection, namespace };

beforeAll(async () => {
  shop.env['TEMPORAL_NAMESPACE'] = namespace;
  await temporal.workflowService.registerNamespace({
    namespace,
    workflowExecutionRetentionPeriod: msToTs(DAY_MS),
  });
});
afterAll(() => temporal.connection.close());

/** Checks Temporal as a process does, again where it does not answer in time, which is no fault. */
const checkAttributes = () =>
  eventually('an answer of Temporal', async () => {
    warnings.length = 0;
    await checkTemporal(where, log);
    return warnings.length === 0;
  });

test('processes refuse a database and a namespace without `migrate`, and say how to prepare them', async () => {
  await expect(checkDatabase(shop.stores, log)).rejects.toThrow(/idempotency.*cli -- migrate/s);
  await expect(checkAttributes()).rejects.toMatchObject({
    name: 'ConfigFault',
    message: expect.stringMatching(/lacks search attributes.*migrate.*temporal operator.*tcld/s),
  });
});

test('migrate creates what is missing once, and processes start then', async () => {
  const missing = await fresh.json('migrate', '--dry-run');
  expect(missing).toEqual({
    indexes: expect.arrayContaining(['api_keys.hash', 'payments.status_position']),
    search_attributes: expect.arrayContaining(ATTRIBUTES),
  });
  expect(await fresh.json('migrate', '--dry-run')).toEqual(missing);
  expect((await fresh.cli('migrate')).stdout).toContain('api_keys.hash');
  expect(await fresh.json('migrate')).toEqual({ indexes: [], search_attributes: [] });
  await checkDatabase(shop.stores, log);
  await checkAttributes();
});

test('a missing index that only speeds up lists is a warning, and no process starts without a validator', async () => {
  await shop.db.collection('payments').dropIndex('status_position');
  warnings.length = 0;
  await checkDatabase(shop.stores, log);
  expect(warnings.map((line) => JSON.parse(line))).toMatchObject([
    { count: 1, msg: expect.stringContaining('payments.status_position') },
  ]);
  for (const collection of ['journal_entries', 'ledger_books']) {
    await shop.db.command({ collMod: collection, validationAction: 'warn' });
    const fault = `validators without which a book could be wrong: ${collection}. Make them`;
    await expect(checkDatabase(shop.stores, log)).rejects.toThrow(fault);
    const { indexes } = Object(await fresh.json('migrate'));
    expect(indexes).toContain(`${collection}.validator`);
    await checkDatabase(shop.stores, log);
  }
  expect(await fresh.json('migrate')).toMatchObject({ indexes: [] });
});

const OTHER = FORMAT + 1;
const NEEDS = /reads only format \d+. Set both MONGODB_DB and TEMPORAL_NAMESPACE to new names/;

/** Connects as connectors do, and as the sandbox bank. */
const connectBank = () =>
  connectConnector('sandbox', {
    ...{ database: shop.db.databaseName, prefix: '', keysDir: '', settings: {}, namespace },
  });

test.each([
  [`format ${OTHER}`, { format: OTHER }],
  ['data without a format number', {}],
])('every command and process refuses a database with %s', async (found, epoch) => {
  const epochs = shop.db.collection<{ _id: string }>('service_epoch');
  await epochs.replaceOne({ _id: 'epoch' }, epoch, { upsert: true });
  const state = `The database ${shop.db.databaseName} has ${found}`;
  for (const args of [['migrate'], ['migrate', '--dry-run'], ['account', 'list']]) {
    const { code, message } = await fresh.refusal(...args);
    expect(code).toBe('other_format');
    expect(message).toContain(state);
    expect(message).toMatch(NEEDS);
  }
  await expect(checkDatabase(shop.stores, log)).rejects.toThrow(state);
  await expect(connectBank()).rejects.toThrow(state);
  await epochs.replaceOne({ _id: 'epoch' }, { format: FORMAT });
});

test.each(['payments', 'payouts'])('a database with %s and no epoch is refused', async (kind) => {
  const epochs = shop.db.collection<{ _id: string }>('service_epoch');
  const resources = shop.db.collection<{ _id: string }>(kind);
  await epochs.deleteOne({ _id: 'epoch' });
  await checkDatabase(shop.stores, log);
  await resources.insertOne({ _id: 'paid' });
  await expect(checkDatabase(shop.stores, log)).rejects.toThrow('data without a format number');
  await resources.deleteOne({ _id: 'paid' });
  await epochs.insertOne(Object.assign({ _id: 'epoch' }, { format: FORMAT }));
});

describe('the format of a namespace', () => {
  const { lifecycleQueue } = taskQueues('');
  const scheduleId = `service-format:${lifecycleQueue}`;
  const watch = async (advances: boolean) => {
    const { epoch } = shop.stores;
    const deps = { epoch, temporal, lifecycleQueue, now: () => new Date() };
    const guard = await watchEpochs(deps, { registry: new Registry(), log, advances });
    guard.close();
    return guard.fault();
  };

  test('is noted by the first worker, and processes start then', async () => {
    expect(await watch(true)).toBeUndefined();
    const { state } = await temporal.schedule.getHandle(scheduleId).describe();
    expect(state).toMatchObject({
      paused: true,
      note: expect.stringContaining(`format ${FORMAT}`),
    });
    expect(await watch(false)).toBeUndefined();
  });

  test('is another one: no process starts, and no command acts', async () => {
    const handle = temporal.schedule.getHandle(scheduleId);
    await handle.update((schedule) => ({ ...schedule, state: { note: `format ${OTHER}` } }));
    const stated = `The namespace ${namespace} of Temporal has format ${OTHER}`;
    const { code, message } = await fresh.refusal('migrate');
    expect(code).toBe('other_format');
    expect(message).toContain(stated);
    expect(message).toMatch(NEEDS);
    for (const advances of [true, false]) await expect(watch(advances)).rejects.toThrow(stated);
    await expect(connectBank()).rejects.toThrow(stated);
    await handle.delete();
  });
});

test('an unknown namespace is reported as a fault of the settings', async () => {
  const elsewhere = commandsIn({ ...shop.env, TEMPORAL_NAMESPACE: 'elsewhere' });
  expect(await elsewhere.refusal('migrate')).toEqual({
    code: 'temporal_refused',
    message: expect.stringContaining('TEMPORAL_NAMESPACE'),
  });
});

test('the API does not ask callers to try again what only an operator can fix', async () => {
  const client = connectTemporal({ address: temporalAddress(), namespace: 'elsewhere' });
  const { stores } = shop;
  const deps = { client, stores, lifecycleQueue: 'none', now: () => new Date() };
  const cancelled = createTemporalClient(deps).cancelPayment(
    { _id: randomUUID(), version: 2 },
    'customer',
  );
  await expect(cancelled).rejects.toMatchObject({ name: 'ConfigFault' });
  await client.connection.close();
});

test('remote servers without TLS are refused unless ALLOW_CLEAR_TEXT allows it', async () => {
  const remote = { MONGODB_URI: 'mongodb://192.0.2.1/?serverSelectionTimeoutMS=100' };
  const env = { ...shop.env, ...remote };
  expect((await commandsIn(env).refusal('account', 'list')).code).toBe('clear_text_refused');
  const { exit, stderr } = await run({ ...env, ALLOW_CLEAR_TEXT: 'yes' }, 'account', 'list');
  expect({ exit, stderr }).toEqual({ exit: 1, stderr: expect.stringContaining('does not answer') });
});
