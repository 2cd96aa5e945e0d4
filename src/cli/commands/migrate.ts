import { z } from 'zod';
import { type Migration, migrate } from '../../service/installation/migrate';
import { defineCommand } from '../command';
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
    context.print({ json: migration, text: formatMigration(migration, dryRun) });
  },
});

function formatMigration({ indexes, search_attributes }: Migration, dryRun: boolean): string {
  if (indexes.length + search_attributes.length === 0) return 'Nothing is missing.';
  const rows = fields([
    ['Indexes', indexes.join(', ') || 'none'],
    ['Search attributes', search_attributes.join(', ') || 'none'],
  ]);
  return `${dryRun ? 'Missing:' : 'Created:'}\n${rows}`;
}
