import { setTimeout as wait } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import type { Environment } from '../../domain/task-queues';
import { usableKeysDir, usableKeysFile } from '../connections';
import type { CliContext } from '../context';
import { CliFailure } from '../failure';
import { splitKeys } from '../key-split';
import { type KeyDeps, type Resealing, resealKeys, retireKey, rotateKeys, showKeys } from '../keys';
import {
  LINK_RINGS,
  type LinkKeyDeps,
  type LinkRing,
  retireLinkKey,
  rotateLinkKeys,
  showLinkKeys,
} from '../link-keys';
import { fields, table } from '../output';

/** Rings whose keys seal, by the names that `--ring` takes. */
const SEALING_RINGS: Record<string, Environment | undefined> = {
  seal: undefined,
  'recipients.sandbox': 'sandbox',
  'recipients.live': 'live',
};

const EXAMPLES = {
  group: `
The key file (KEYS_FILE) holds them: the current one seals, all of them open. Running processes
follow the file within a second, so nothing is restarted. Where machines have copies of it, give
each the new file before it says which key is current.

Examples:
  npm run -s cli -- keys rotate
  npm run -s cli -- keys rotate --ring pay_token
  npm run -s cli -- keys retire k1`,
  rotate: `
--ring pay_token makes a new key for the links of pages, and --ring fingerprint one for the marks of
repeated requests: at once, with nothing to seal anew. Earlier links and marks go on until their key
is retired.

--ring recipients.sandbox or recipients.live makes one for what recipients have in KEYS_DIR.

With a ring of sealing keys (seal is the default) it can be interrupted at any moment: \`keys reseal\` goes on, and a new rotation is refused until
then. Back the key file up at once. The key from before stays in the file until \`keys retire\`
removes it; a database backup from before can only be read with it.

Example:
  npm run -s cli -- keys rotate --json
  {"kid", "resealed", "remaining"}
  npm run -s cli -- keys rotate --ring pay_token --json
  {"ring", "kid"}`,
  split: `
KEYS_DIR then holds recipients.sandbox.json and recipients.live.json, which open recipients, for the
connectors of that environment; and recipients.sandbox.public.json and recipients.live.public.json,
which only seal, for the API. What is there stays, so it can be run again. \`keys reseal\` seals
recipients from before with them, once the connectors and the API have them.

Example:
  KEYS_DIR=/srv/payments/keys npm run -s cli -- keys split --json
  {"written"}`,
  show: `
Example:
  npm run -s cli -- keys show --json
  {"current", "keys": [{"kid", "recipients", "endpoints", "claims", "users", "connector_keys",
  "payer_keys"}], "pay_token": {"current", "keys": [{"kid", "in_use"}]}, "fingerprint": {…}}`,
  retire: `
Example:
  npm run -s cli -- keys retire k1 --json
  {"retired", "keys"}`,
};

export function addKeysCommands(program: Command, context: CliContext): void {
  const group = program
    .command('keys')
    .description('the keys that seal recipients, secrets and second factors in the database')
    .addHelpText('after', EXAMPLES.group);
  group
    .command('rotate')
    .description('make a new current key, and seal with it what the others hold')
    .option('--force', 'begin although an earlier rotation is not complete')
    .addOption(ringOption())
    .addHelpText('after', EXAMPLES.rotate)
    .action(({ force = false, ring }: { force?: boolean; ring: string }, command: Command) =>
      isLinkRing(ring)
        ? rotateLinks(context, command, ring)
        : report(context, command, (deps) => rotateKeys(deps, force, SEALING_RINGS[ring])),
    );
  group
    .command('split')
    .description('make rings of their own for recipients, in the folder KEYS_DIR')
    .addHelpText('after', EXAMPLES.split)
    .action((_options: object, command: Command) => split(context, command));
  group
    .command('reseal')
    .description('go on with a rotation that was interrupted; makes no key')
    .action((_options: object, command: Command) => report(context, command, resealKeys));
  group
    .command('show')
    .description('show the keys, and how much each one holds')
    .addHelpText('after', EXAMPLES.show)
    .action((_options: object, command: Command) => show(context, command));
  group
    .command('retire')
    .description('remove a key that holds nothing')
    .argument('<kid>')
    .addOption(ringOption())
    .addHelpText('after', EXAMPLES.retire)
    .action((kid: string, { ring }: { ring: string }, command: Command) =>
      retire(context, command, ring, kid),
    );
}

function ringOption(): Option {
  const option = new Option('--ring <name>', 'keys that seal, make links, or mark requests');
  return option.choices([...Object.keys(SEALING_RINGS), ...LINK_RINGS]).default('seal');
}

function isLinkRing(ring: string): ring is LinkRing {
  return LINK_RINGS.some((name) => name === ring);
}

async function split(context: CliContext, command: Command): Promise<void> {
  const { keysDir: dir } = context.settings();
  if (dir === undefined) throw new CliFailure('keys_dir_missing', 'Set KEYS_DIR to a folder.');
  const { audit, keysFile, now } = await fileDeps(context, command);
  const written = await splitKeys({ audit, keysFile, dir, now });
  const text = written.length === 0 ? 'All of them are there.' : written.join('\n');
  context.print({ json: { written }, text });
}

async function rotateLinks(context: CliContext, command: Command, ring: LinkRing): Promise<void> {
  const kid = await rotateLinkKeys(await keyDeps(context, command), ring);
  context.print({ json: { ring, kid }, text: fields([['Current key', kid]]) });
}

async function report(
  context: CliContext,
  command: Command,
  run: (deps: KeyDeps) => Promise<Resealing>,
): Promise<void> {
  const result = await run(await keyDeps(context, command));
  const text = fields([
    ['Current key', result.kid],
    ['Sealed anew', String(result.resealed)],
    ['Remaining', String(result.remaining)],
  ]);
  context.print({ json: result, text });
  if (result.remaining === 0) return;
  // The result is printed already; this sets the exit code to 1.
  throw new CliFailure(
    'rotation_unfinished',
    `Other keys still hold ${result.remaining} values: run \`keys reseal\` again. What can not be ` +
      'opened needs the key file that it was sealed with.',
  );
}

async function show(context: CliContext, command: Command): Promise<void> {
  const deps = await keyDeps(context, command);
  const shown = await showKeys(deps);
  const links = await showLinks(deps);
  const currents = [shown.current, ...Object.values(shown.recipients ?? {})];
  const rows = shown.keys.map(({ kid, recipients, endpoints, claims, users, ...more }) => [
    kid,
    currents.includes(kid) ? 'current' : '',
    ...[recipients, endpoints, claims, users, more.connector_keys, more.payer_keys].map(String),
  ]);
  const counted = ['RECIPIENTS', 'ENDPOINTS', 'CLAIMS', 'USERS', 'CONNECTOR KEYS', 'PAYER KEYS'];
  const heading = ['KEY', '', ...counted];
  const sealing = table(heading, rows, 'There are no keys.');
  context.print({ json: { ...shown, ...links }, text: `${sealing}\n\n${tableOf(links)}` });
}

type ShownLinks = Awaited<ReturnType<typeof showLinks>>;

async function showLinks(deps: LinkKeyDeps) {
  return {
    pay_token: await showLinkKeys(deps, 'pay_token'),
    fingerprint: await showLinkKeys(deps, 'fingerprint'),
  };
}

function tableOf(links: ShownLinks): string {
  const rows = LINK_RINGS.flatMap((ring) =>
    links[ring].keys.map(({ kid, in_use }) => [
      ring,
      kid,
      kid === links[ring].current ? 'current' : '',
      String(in_use),
    ]),
  );
  return table(['RING', 'KEY', '', 'IN USE'], rows, 'There are no keys.');
}

async function retire(
  context: CliContext,
  command: Command,
  ring: string,
  kid: string,
): Promise<void> {
  const deps = await keyDeps(context, command);
  const keys = isLinkRing(ring) ? await retireLinkKey(deps, ring, kid) : await retireKey(deps, kid);
  const text = `The key ${kid} is removed. Left: ${keys.join(', ')}.`;
  context.print({ json: { retired: kid, keys }, text });
}

async function keyDeps(context: CliContext, command: Command): Promise<KeyDeps & LinkKeyDeps> {
  const keysDir = usableKeysDir(context.settings());
  return { ...(await fileDeps(context, command)), keysDir };
}

/** Writes progress to stderr; with `--json` there is none, so that an error stands there alone. */
async function fileDeps(context: CliContext, command: Command) {
  const keysFile = usableKeysFile(context.settings());
  const { writeErr } = command.configureOutput();
  const { stores, audit } = await context.acting();
  return {
    stores,
    audit,
    keysFile,
    now: context.now,
    wait: async (ms: number) => {
      await wait(ms);
    },
    progress: (line: string) => writeErr?.(`${line}\n`),
  };
}
