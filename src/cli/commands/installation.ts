import { z } from 'zod';
import { assertConnectorName } from '../../service/banks/connectors';
import { migrate } from '../../service/installation/migrate';
import { connectorRole, serviceRoles } from '../../service/installation/mongo-roles';
import { defineCommand } from '../command';
import { textOption } from '../options';
import { fields } from '../output';

export const migrateCommand = defineCommand({
  name: 'migrate',
  description: 'create the indexes, validators and search attributes that this version needs',
  options: z.object({ dry_run: z.boolean().default(false).describe('only list what is missing') }),
  notes: `
Run it before the processes of a new version start, which only check. Reads and writes continue. It may take
hours and be repeated. If Temporal refuses search attributes, it prints the commands that register them.`,
  example: 'migrate --dry-run',
  run: async (context, { dry_run: dryRun }) => {
    const { mongodb } = context.settings();
    const [builder, temporal] = [await context.indexBuilder(), await context.temporal()];
    const deps = { db: builder.db(mongodb.db), temporal, progress: context.progress };
    const migration = await migrate(deps, dryRun);
    const { indexes, search_attributes } = migration;
    const rows = fields([
      ['Indexes', indexes.join(', ') || 'none'],
      ['Search attributes', search_attributes.join(', ') || 'none'],
    ]);
    const isComplete = indexes.length + search_attributes.length === 0;
    const text = `${dryRun ? 'Missing:' : 'Created:'}\n${rows}`;
    context.print({ json: migration, text: isComplete ? 'Nothing is missing.' : text });
  },
});

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
    const lines = [...Object.values(service), ...connectors.values()].map(
      ({ role, privileges }) => {
        const name = JSON.stringify(role);
        const body = JSON.stringify({ privileges, roles: [] });
        const createCall = `admin.createRole({ role: ${name}, ...${body} })`;
        return `admin.getRole(${name}) === null ? ${createCall} : admin.updateRole(${name}, ${body});`;
      },
    );
    context.print({
      json: { ...service, connectors: Object.fromEntries(connectors) },
      text: ["admin = db.getSiblingDB('admin');", ...lines].join('\n'),
    });
  },
});
