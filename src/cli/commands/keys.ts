import { setTimeout as wait } from 'node:timers/promises';
import type { Command } from 'commander';
import { usableKeysFile } from '../connections';
import type { CliContext } from '../context';
import { CliFailure } from '../failure';
import { type KeyDeps, type Resealing, resealKeys, retireKey, rotateKeys, showKeys } from '../keys';
import { fields, table } from '../output';

const EXAMPLES = {
  group: `
The key file (KEYS_FILE) holds them: the current one seals, all of them open. Running processes
follow the file within a second, so nothing is restarted. Where machines have copies of it, give
each the new file before it says which key is current.

Examples:
  npm run -s cli -- keys rotate
  npm run -s cli -- keys retire k1`,
  rotate: `
It can be interrupted at any moment: \`keys reseal\` goes on, and a new rotation is refused until
then. Back the key file up at once. The key from before stays in the file until \`keys retire\`
removes it; a database backup from before can only be read with it.

Example:
  npm run -s cli -- keys rotate --json
  {"kid", "resealed", "remaining"}`,
  show: `
Example:
  npm run -s cli -- keys show --json
  {"current", "keys": [{"kid", "recipients", "endpoints", "claims", "users", "connector_keys",
  "payer_keys"}]}`,
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
    .addHelpText('after', EXAMPLES.rotate)
    .action((options: { force?: boolean }, command: Command) =>
      report(context, command, (deps) => rotateKeys(deps, options.force === true)),
    );
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
    .addHelpText('after', EXAMPLES.retire)
    .action((kid: string, _options: object, command: Command) => retire(context, command, kid));
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
  const shown = await showKeys(await keyDeps(context, command));
  const rows = shown.keys.map(({ kid, recipients, endpoints, claims, users, ...more }) => [
    kid,
    kid === shown.current ? 'current' : '',
    ...[recipients, endpoints, claims, users, more.connector_keys, more.payer_keys].map(String),
  ]);
  const counted = ['RECIPIENTS', 'ENDPOINTS', 'CLAIMS', 'USERS', 'CONNECTOR KEYS', 'PAYER KEYS'];
  const heading = ['KEY', '', ...counted];
  context.print({ json: shown, text: table(heading, rows, 'There are no keys.') });
}

async function retire(context: CliContext, command: Command, kid: string): Promise<void> {
  const keys = await retireKey(await keyDeps(context, command), kid);
  const text = `The key ${kid} is removed. Left: ${keys.join(', ')}.`;
  context.print({ json: { retired: kid, keys }, text });
}

/** Writes progress to stderr; with `--json` there is none, so that an error stands there alone. */
async function keyDeps(context: CliContext, command: Command): Promise<KeyDeps> {
  const keysFile = usableKeysFile(context.settings());
  const { writeErr } = command.configureOutput();
  const { stores, audit } = await context.acting();
  return {
    stores,
    audit,
    keysFile,
    now: context.now,
    wait: async (ms) => {
      await wait(ms);
    },
    progress: (line) => writeErr?.(`${line}\n`),
  };
}
