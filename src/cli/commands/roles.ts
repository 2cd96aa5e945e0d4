import type { Command } from 'commander';
import { connectorRole, type MongoRole, serviceRoles } from '../../store/mongo-roles';
import { assertConnectorName } from '../connectors';
import type { CliContext } from '../context';

/** Connector of the sandbox, by the name that its database has. */
const SANDBOX = 'sandbox_bank';

const HELP = `
Prints the role that each process needs in a MongoDB of your own, as lines for mongosh: reads of the
service's database, writes of the collections that are its own, and nothing else. Give each process a
user with its role, and print the roles again for each new version. An operator, who runs \`migrate\`
and the other commands, needs readWrite. \`npm start\` makes roles and users by itself.

Examples:
  npm run -s cli -- roles | mongosh "$MONGODB_ADMIN_URI"
  npm run -s cli -- roles --connectors evm --json
  {"api": {"role": "payments_api", "privileges": [{"resource", "actions"}]}, "worker": {…},
   "connectors": {"sandbox_bank": {…}, "evm": {…}}}`;

export function addRolesCommand(program: Command, context: CliContext): void {
  program
    .command('roles')
    .description('print the MongoDB role of each process')
    .option('--connectors <a,b>', 'connectors of live banks, beside that of the sandbox')
    .addHelpText('after', HELP)
    .action(({ connectors: listed }: { connectors?: string }) => {
      const names = [SANDBOX, ...(listed?.split(',') ?? [])].map((name) => name.trim());
      for (const name of names) assertConnectorName(name);
      const { db } = context.settings().mongodb;
      const connectors = new Map(names.map((name) => [name, connectorRole(db, name)]));
      const service = serviceRoles(db);
      context.print({
        json: { ...service, connectors: Object.fromEntries(connectors) },
        text: scriptOf([...Object.values(service), ...connectors.values()]),
      });
    });
}

/** Lines that make each role, or give one that is there what it needs now. */
function scriptOf(roles: readonly MongoRole[]): string {
  const lines = roles.map(({ role, privileges }) => {
    const name = JSON.stringify(role);
    const needed = JSON.stringify({ privileges, roles: [] });
    const made = `admin.createRole({ role: ${name}, ...${needed} })`;
    return `admin.getRole(${name}) === null ? ${made} : admin.updateRole(${name}, ${needed});`;
  });
  return ["admin = db.getSiblingDB('admin');", ...lines].join('\n');
}
