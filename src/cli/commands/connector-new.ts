import { z } from 'zod';
import { createConnector } from '../../service/connector-template';
import { defineCommand } from '../command';
import { textOption } from '../options';

function describe({ dir, files }: { dir: string; files: string[] }): string {
  return `${dir} has ${files.join(', ')}.
Next: docs/connectors.md, Write a connector.
Before \`connector check\` can run, compile the connector and its fake bank (next to the example: npm run -s build),
and start both: docs/connectors.md, Check a connector.`;
}

export const connectorNew = defineCommand({
  name: 'new',
  description: 'copy the example connector under a new name, to begin with',
  options: z.object({
    name: textOption('lowercase letters and digits, such as acme', 'name').meta({ argument: true }),
    dir: textOption('directory of the copy (default: next to the example)', 'path').optional(),
  }),
  example: 'connector new acme',
  run: ({ print }, { name, dir }) => {
    const made = createConnector(name, dir);
    print({ json: { name, ...made }, text: describe(made) });
  },
});
