import { z } from 'zod';
import { assertConnectorName } from '../../service/banks/connectors';
import {
  connectorRole,
  type MongoRole,
  serviceRoles,
} from '../../service/installation/mongo-roles';
import { defineCommand } from '../command';
import { textOption } from '../options';

const SANDBOX = 'sandbox_bank';

export const rolesCommand = defineCommand({
  name: 'roles',
  description: 'print the MongoDB role of each process, as lines for mongosh',
  options: z.object({
    connectors: textOption(
      'connectors of live banks, in addition to that of the sandbox',
      'a,b',
    ).optional(),
  }),
  notes: `
Give each process and the command line a user with its role, and print the roles again for each new version.
\`migrate\` and \`connector check\`, which alter collections, need readWrite and dbAdmin. \`npm start\` makes roles and users by itself.`,
  example: 'roles --connectors evm | mongosh "$MONGODB_ADMIN_URI"',
  run: (context, { connectors: list }) => {
    const names = [SANDBOX, ...(list?.split(',') ?? [])].map((name) => name.trim());
    for (const name of names) assertConnectorName(name);
    const { db } = context.settings().mongodb;
    const connectors = new Map(names.map((name) => [name, connectorRole(db, name)]));
    const service = serviceRoles(db);
    context.print({
      json: { ...service, connectors: Object.fromEntries(connectors) },
      text: formatScript([...Object.values(service), ...connectors.values()]),
    });
  },
});

function formatScript(roles: readonly MongoRole[]): string {
  const lines = roles.map(({ role, privileges }) => {
    const name = JSON.stringify(role);
    const privilegesJson = JSON.stringify({ privileges, roles: [] });
    const createCall = `admin.createRole({ role: ${name}, ...${privilegesJson} })`;
    return `admin.getRole(${name}) === null ? ${createCall} : admin.updateRole(${name}, ${privilegesJson});`;
  });
  return ["admin = db.getSiblingDB('admin');", ...lines].join('\n');
}
