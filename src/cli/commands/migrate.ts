import type { Command } from 'commander';
import type { CliContext } from '../context';
import { type Migration, migrate } from '../migrate';
import { fields } from '../output';

const HELP = `
Makes the indexes of MongoDB and the search attributes of Temporal that this version needs and that
are not there. Reads and writes go on meanwhile; it waits until all is made, hours where a collection
is very large. It may be run at any time, and again. Run it before the processes of a new version
start: they only check. \`npm start\` does all this by itself.

Where Temporal does not let it register search attributes, as on Temporal Cloud, it prints the
commands that do. With --dry-run it only says what is missing, with exit code 0.

Examples:
  npm run -s cli -- migrate
  npm run -s cli -- migrate --dry-run --json
  {"indexes": ["payments.status_position"], "search_attributes": ["ServiceStatus"]}`;

export function addMigrateCommand(program: Command, context: CliContext): void {
  program
    .command('migrate')
    .description('make the indexes and search attributes that this version needs')
    .option('--dry-run', 'only say which are missing')
    .addHelpText('after', HELP)
    .action(async ({ dryRun = false }: { dryRun?: boolean }) => {
      const { mongodb } = context.settings();
      const [builder, temporal] = [await context.indexBuilder(), await context.temporal()];
      const deps = { db: builder.db(mongodb.db), temporal, progress: context.progress };
      const made = await migrate(deps, dryRun);
      context.print({ json: made, text: textOf(made, dryRun) });
    });
}

function textOf({ indexes, search_attributes }: Migration, dryRun: boolean): string {
  if (indexes.length + search_attributes.length === 0) return 'Nothing is missing.';
  const listed = (names: readonly string[]) => (names.length === 0 ? 'none' : names.join(', '));
  return [
    dryRun ? 'Missing:' : 'Made:',
    fields([
      ['Indexes', listed(indexes)],
      ['Search attributes', listed(search_attributes)],
    ]),
  ].join('\n');
}
