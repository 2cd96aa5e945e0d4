import type { Command } from 'commander';
import { createConnectorKey, revokeConnectorKey } from '../../connectors/keys';
import { assertConnectorName, isRouted } from '../connectors';
import type { CliContext } from '../context';
import { CliFailure } from '../failure';
import { fields, table, when } from '../output';

const EXAMPLES = {
  group: `
A connector signs its callbacks with a key of its own, be they signals or posts to
/connectors/NAME/callbacks: the sandbox's, or a bank's, also before LIVE_CONNECTORS names it. On live
a callback that is not signed moves nothing.

Examples:
  npm run -s cli -- connector key create sandbox
  npm run -s cli -- connector key list sandbox
  npm run -s cli -- connector key revoke cnkey_…`,
  create: `
To change a key: make another, let the bank sign with it, then revoke the old one.

Example:
  npm run -s cli -- connector key create sandbox --json
  {"key_id", "secret"}`,
  list: `
Example:
  npm run -s cli -- connector key list sandbox --json
  {"data": [{"key_id", "connector", "created_at", "revoked_at"}]}`,
};

export function addConnectorCommands(program: Command, context: CliContext): void {
  const keys = program
    .command('connector')
    .description('banks and chains that report')
    .addHelpText('after', EXAMPLES.group)
    .command('key')
    .description('keys that a connector signs its callbacks with: several each, each shown once')
    .addHelpText('after', EXAMPLES.group);
  keys
    .command('create')
    .description('make a key and show its secret once')
    .argument('<name>', 'the connector')
    .addHelpText('after', EXAMPLES.create)
    .action((name: string) => create(context, name));
  keys
    .command('list')
    .description('list the keys of a connector, oldest first, without their secrets')
    .argument('<name>', 'the connector')
    .addHelpText('after', EXAMPLES.list)
    .action((name: string) => list(context, name));
  keys
    .command('revoke')
    .description('end a key at once; again changes nothing')
    .argument('<key_id>')
    .action((id: string) => revoke(context, id));
}

async function create(context: CliContext, name: string): Promise<void> {
  assertConnectorName(name);
  const isKnown = isRouted(context.settings(), name);
  const acting = await context.acting();
  const made = await createConnectorKey({ ...acting, sealer: context.sealer() }, name);
  const text = fields([
    ['Key id', made.key_id],
    ['Secret', made.secret],
  ]);
  const keep = 'The secret is not shown again: keep it now.';
  const note = isKnown ? keep : `${keep}\nNothing is routed to ${name} yet: see LIVE_CONNECTORS.`;
  context.print({ json: made, text: `${text}\n\n${note}` });
}

async function list(context: CliContext, name: string): Promise<void> {
  assertConnectorName(name);
  const stores = await context.stores();
  const keys = await stores.connectorKeys.forConnector(name);
  const data = keys.map(({ _id: key_id, connector, created_at, revoked_at }) => ({
    key_id,
    connector,
    created_at,
    revoked_at,
  }));
  const rows = data.map(({ key_id, created_at, revoked_at }) => [
    key_id,
    when(created_at),
    when(revoked_at),
  ]);
  const heading = ['KEY', 'CREATED', 'REVOKED'];
  context.print({ json: { data }, text: table(heading, rows, 'This connector has no keys.') });
}

async function revoke(context: CliContext, id: string): Promise<void> {
  const key = await revokeConnectorKey(await context.acting(), id);
  if (key === null) throw new CliFailure('key_not_found', `There is no key ${id}.`);
  const { revoked_at } = key;
  context.print({
    json: { key_id: id, revoked_at },
    text: `The key ${id} is revoked since ${when(revoked_at)}.`,
  });
}
