import { z } from 'zod';
import { createConnector } from '../../service/connector-template';
import { defineCommand } from '../command';
import { textOption } from '../options';

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
    const text = `${made.dir} has ${made.files.join(', ')}.\nNext: docs/connectors.md, Write a connector.`;
    print({ json: { name, ...made }, text });
  },
});
